//! Running the program, a network that breaks, and files to carry over it.
#![allow(dead_code, reason = "every test binary uses its own part")]

use std::{
    net::SocketAddr,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What a run left.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The program, without anything of the caller's kubeconfig.
pub fn trawlctl() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawlctl"));
    command
        .env_remove("KUBECONFIG")
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

pub async fn run(command: Command) -> Done {
    finish(command, None).await
}

pub async fn run_with_input(command: Command, input: &str) -> Done {
    finish(command, Some(input.to_owned())).await
}

async fn finish(mut command: Command, input: Option<String>) -> Done {
    let run = tokio::task::spawn_blocking(move || {
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start trawlctl");
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            std::io::Write::write_all(&mut stdin, input.as_bytes()).expect("standard input");
        }
        child.wait_with_output().expect("trawlctl")
    });
    let output = tokio::time::timeout(Duration::from_secs(90), run)
        .await
        .expect("an end in time")
        .expect("run");
    Done {
        code: output.status.code().expect("exit code"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A TCP path to the gateway that cuts connections after some bytes of answer, or is slow.
pub struct Proxy {
    address: SocketAddr,
    carried: Arc<AtomicU64>,
    connections: Arc<AtomicUsize>,
}

impl Proxy {
    /// `cuts[n]` is after how many bytes the n-th connection breaks; `pause` is the wait after each 16 KiB.
    pub async fn start(to: SocketAddr, cuts: Vec<Option<usize>>, pause: Option<Duration>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
        let address = listener.local_addr().expect("address");
        let (carried, connections) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
        let (count, number) = (carried.clone(), connections.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let cut = cuts.get(number.fetch_add(1, Ordering::SeqCst)).copied().flatten();
                tokio::spawn(carry(client, to, cut.unwrap_or(usize::MAX), pause, count.clone()));
            }
        });
        Self {
            address,
            carried,
            connections,
        }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Bytes that came back through it.
    pub fn carried(&self) -> u64 {
        self.carried.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn carry(
    client: TcpStream,
    to: SocketAddr,
    mut left: usize,
    pause: Option<Duration>,
    count: Arc<AtomicU64>,
) {
    let Ok(server) = TcpStream::connect(to).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut buffer = vec![0; 16 * 1024];
    while left > 0 {
        let most = buffer.len().min(left);
        let Ok(read @ 1..) = from_server.read(&mut buffer[..most]).await else {
            break;
        };
        if to_client.write_all(&buffer[..read]).await.is_err() {
            break;
        }
        left -= read;
        count.fetch_add(read as u64, Ordering::SeqCst);
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
    up.abort();
}

/// A pcapng file of `packets` packets of 60 bytes.
pub fn capture_file(packets: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let block = |out: &mut Vec<u8>, kind: u32, body: &[u8]| {
        let length = 12 + body.len() as u32;
        out.extend(kind.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend(body);
        out.extend(length.to_le_bytes());
    };
    let mut section = 0x1A2B_3C4D_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    block(&mut out, 0x0A0D_0D0A, &section);
    // Ethernet, no snaplen; if_tsresol 9; end of options.
    block(
        &mut out,
        1,
        &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0],
    );
    for number in 0..packets {
        let stamp = 1_700_000_000_000_000_000_u64 + u64::from(number) * 1000;
        let mut body = 0_u32.to_le_bytes().to_vec();
        body.extend(((stamp >> 32) as u32).to_le_bytes());
        body.extend((stamp as u32).to_le_bytes());
        body.extend(60_u32.to_le_bytes());
        body.extend(60_u32.to_le_bytes());
        let mut frame = [0_u8; 60];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[20..24].copy_from_slice(&number.to_be_bytes());
        body.extend(frame);
        block(&mut out, 6, &body);
    }
    out
}
