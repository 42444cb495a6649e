//! Numbered frames that keep coming, and random numbers that a failed run can be repeated with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::world::*;

/// Length of the frame with this number, as [`frame`] makes it.
pub fn length_of(number: u32) -> usize {
    60 + (number as usize).wrapping_mul(7919) % 1380
}

/// Sends numbered frames until it is dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    /// Frames from number 0 on at about this rate; every hundredth goes to port 99, the others to 53.
    pub fn start(world: &World, per_second: u32) -> Self {
        let far = world.injector(FAR);
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            let mut number = 0u32;
            while !stopped.load(Ordering::Relaxed) {
                let due = (began.elapsed().as_secs_f64() * f64::from(per_second)) as u32;
                // What a busy machine missed is not made up for all at once.
                for _ in 0..due.saturating_sub(number).min(200) {
                    let port = if number.is_multiple_of(100) { 99 } else { 53 };
                    far.send(&frame(number, port, length_of(number))).unwrap();
                    number += 1;
                }
                count.store(number, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        Self {
            stop,
            sent,
            thread: Some(thread),
        }
    }

    pub fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// How many have been sent in all.
    pub fn stop(mut self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.sent()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

pub fn number_of(packet: &Packet) -> u32 {
    u32::from_be_bytes(packet.bytes[42..46].try_into().unwrap())
}

/// splitmix64.
pub struct Random(u64);

impl Random {
    /// Seeded by the time; the seed is printed.
    pub fn new() -> Self {
        let seed = trawl_dataplane::clock::realtime_ns();
        println!("seed {seed}");
        Self(seed)
    }

    /// A number in `low..high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + (z ^ (z >> 31)) % (high - low)
    }
}
