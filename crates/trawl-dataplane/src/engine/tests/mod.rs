//! Laws of the engine, on a queue in memory.

mod captures;
mod seam;
mod wire;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use trawl_control::Ended;
use trawl_filter::Filter;

use super::*;
use crate::batch::Batch;
use crate::outlet::Sent;
use wire::{Wire, WireQueue};

fn filter(text: &str) -> Filter {
    trawl_filter::compile(text).unwrap()
}

fn spec(text: &str) -> CaptureSpec {
    CaptureSpec {
        filter: filter(text),
        filter_text: text.into(),
        trigger_ns: None,
        pre_trigger_ns: 0,
        duration_ns: 60_000_000_000,
        max_size: 64 << 20,
        snaplen: 0,
        comments: vec![],
        interface: "test0".into(),
        application: "test".into(),
        speed: None,
    }
}

fn empty_file() -> File {
    tempfile::tempfile().unwrap()
}

fn opened(queues: Vec<WireQueue>) -> Opened<WireQueue> {
    Opened {
        queues,
        mode: CaptureMode::Copy,
        refusals: vec![],
        guard: Guard::of([]),
    }
}

/// A packet of a file: stamp, queue when given, bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Read {
    stamp_ns: u64,
    queue: Option<u32>,
    bytes: Vec<u8>,
}

impl Read {
    fn number(&self) -> u64 {
        u64::from_be_bytes(self.bytes[42..50].try_into().unwrap())
    }
}

/// The packets of a file, read by a reader that is not ours.
fn read(bytes: &[u8]) -> Vec<Read> {
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
    use pcap_file::pcapng::{Block, PcapNgReader};
    let mut reader = PcapNgReader::new(bytes).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(p) = block.unwrap() {
            let queue = p.options.iter().find_map(|o| match o {
                EnhancedPacketOption::Unknown(o) if o.code == 6 => {
                    Some(u32::from_le_bytes(o.value[..].try_into().unwrap()))
                }
                _ => None,
            });
            packets.push(Read {
                stamp_ns: p.timestamp.as_nanos() as u64,
                queue,
                bytes: p.data.to_vec(),
            });
        }
    }
    packets
}

fn content(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// A capture into a file that can be read afterwards.
struct Capturing {
    running: Running,
    file: File,
    ended: Receiver<Ended>,
}

fn begin(engine: &Engine, spec: CaptureSpec) -> Capturing {
    let (file, (done, ended)) = (empty_file(), channel());
    let output = file.try_clone().unwrap();
    let running = engine
        .capture(spec, output, Box::new(move |e| drop(done.send(e))))
        .unwrap();
    Capturing { running, file, ended }
}

impl Capturing {
    /// The summary and the packets, checked against each other.
    fn end(self) -> (Ended, Vec<Read>) {
        use sha2::Digest;
        let ended = self.ended.recv_timeout(Duration::from_secs(20)).expect("it ends");
        let bytes = content(&self.file);
        assert_eq!(bytes.len() as u64, ended.bytes);
        let hash = sha2::Sha256::digest(&bytes);
        assert_eq!(
            hash.iter().map(|b| format!("{b:02x}")).collect::<String>(),
            ended.sha256
        );
        let packets = read(&bytes);
        assert_eq!(packets.len() as u64, ended.packets);
        assert!(ended.balance.adds_up(), "{:?}", ended.balance);
        assert_eq!(ended.balance.written, ended.packets);
        for p in &packets {
            assert_eq!(
                p.bytes,
                wire::bytes_of(p.number()),
                "packet {} is whole",
                p.number()
            );
        }
        (ended, packets)
    }
}

/// Waits until something holds.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "waited in vain until {what}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct Collect(Arc<Mutex<Vec<Vec<u8>>>>, Duration);

impl Outlet for Collect {
    fn send(&mut self, batch: &Batch) -> Sent {
        std::thread::sleep(self.1);
        let all = batch
            .packets
            .iter()
            .map(|p| batch.parts(p).collect::<Vec<_>>().concat());
        lock(&self.0).extend(all);
        Sent {
            packets: batch.packets.len() as u64,
            ..Sent::default()
        }
    }
}
