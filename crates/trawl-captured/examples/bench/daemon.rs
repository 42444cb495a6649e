//! captured as a daemon: an interface that is watched, with any number of captures on it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use trawl_control::{
    Attach, Attachment, AttachmentStatus, CancelHandle, Capture, Client, InterfaceSpec, Replies, Reply,
    Source, TapIdentity,
};

use crate::Outcome;
use crate::world::World;

pub struct Daemon {
    pub child: Child,
    client: Client,
    runtime: tokio::runtime::Runtime,
    _attachment: Attachment,
    captures: Vec<Running>,
}

struct Running {
    replies: Replies,
    cancel: CancelHandle,
    file: PathBuf,
}

fn tap() -> TapIdentity {
    TapIdentity {
        namespace: "trawl-system".into(),
        name: "bench".into(),
        uid: "bench".into(),
    }
}

impl Daemon {
    /// Starts it, opens the interface by AF_XDP, and starts a capture for each filter.
    pub fn start(world: &World, captured: &Path, filters: &[String]) -> Outcome<Self> {
        let socket = world.path("captured.sock");
        let _ = std::fs::remove_file(&socket);
        let mut command = world.command();
        command
            .arg(captured)
            .args(["serve", "--socket-group", "0", "--socket"])
            .arg(&socket);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let began = Instant::now();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            if began.elapsed() > Duration::from_secs(10) {
                return Err("captured does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let client = Client::new(&socket);
        let source = Source::MirrorInterface(InterfaceSpec {
            interface: world.near.clone(),
            promiscuous: true,
        });
        let attach = Attach {
            history_bytes: None,
            tap: tap(),
            source,
        };
        let _attachment = runtime.block_on(client.attach(attach))?;
        let mut daemon = Self {
            child,
            client,
            runtime,
            _attachment,
            captures: vec![],
        };
        for (i, filter) in filters.iter().enumerate() {
            daemon.capture(world.path(&format!("capture-{i}")), filter)?;
        }
        std::thread::sleep(Duration::from_millis(300));
        Ok(daemon)
    }

    fn capture(&mut self, path: PathBuf, filter: &str) -> Outcome<()> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        let request = Capture {
            tap: tap(),
            filter: Some(filter.to_owned()),
            filter_tunnels: false,
            duration_ms: 3_600_000,
            max_size_bytes: 1 << 30,
            snaplen: 0,
            trigger_ns: None,
            pre_trigger_ms: 0,
            comments: vec![],
        };
        let running = self.runtime.block_on(async {
            let (mut replies, cancel) = self.client.capture(request, &file).await?;
            loop {
                match replies.next().await? {
                    Some(Reply::Started(_)) => {
                        return Ok(Running {
                            replies,
                            cancel,
                            file: path,
                        });
                    }
                    Some(_) => {}
                    None => {
                        return Err::<_, Box<dyn std::error::Error>>(
                            "a capture ended before it started".into(),
                        );
                    }
                }
            }
        });
        self.captures.push(running?);
        Ok(())
    }

    /// What the daemon says of the interface.
    pub fn status(&self) -> Outcome<AttachmentStatus> {
        let status = self.runtime.block_on(self.client.status())?;
        status
            .attachments
            .into_iter()
            .next()
            .ok_or_else(|| "captured watches nothing".into())
    }

    /// Ends all captures and returns their files, whole.
    pub fn finish_captures(&mut self) -> Outcome<Vec<PathBuf>> {
        let mut files = vec![];
        for mut running in self.captures.drain(..) {
            self.runtime.block_on(async {
                running.cancel.cancel()?;
                while let Some(reply) = running.replies.next().await? {
                    if matches!(reply, Reply::Ended(_)) {
                        break;
                    }
                }
                Ok::<_, Box<dyn std::error::Error>>(())
            })?;
            files.push(running.file);
        }
        Ok(files)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
        for running in &self.captures {
            let _ = std::fs::remove_file(&running.file);
        }
    }
}
