//! Outputs that take no more: full, frozen.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use trawl_control::{Capture, StopReason};

use crate::world::*;

/// A file system of its own, gone with it.
struct Mount(PathBuf);

impl Mount {
    fn tmpfs(at: PathBuf, size: &str) -> Self {
        std::fs::create_dir(&at).unwrap();
        let path = at.to_str().unwrap();
        run(&[
            "mount",
            "-t",
            "tmpfs",
            "-o",
            &format!("size={size}"),
            "trawl-test",
            path,
        ]);
        Self(at)
    }

    fn ext4(at: PathBuf) -> Self {
        let image = at.with_extension("img");
        std::fs::File::create_new(&image)
            .unwrap()
            .set_len(64 << 20)
            .unwrap();
        run(&["mkfs.ext4", "-q", image.to_str().unwrap()]);
        std::fs::create_dir(&at).unwrap();
        run(&[
            "mount",
            "-o",
            "loop",
            image.to_str().unwrap(),
            at.to_str().unwrap(),
        ]);
        Self(at)
    }

    fn freeze(&self) -> Frozen<'_> {
        run(&["fsfreeze", "-f", self.0.to_str().unwrap()]);
        Frozen(&self.0)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
    }
}

/// Writers of a frozen file system hang, and no signal frees them: thawed whatever happens.
struct Frozen<'a>(&'a Path);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("fsfreeze")
            .arg("-u")
            .arg(self.0)
            .status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_ends_its_own_capture_with_whole_packets_and_leaves_the_others_alone() {
    for source in both() {
        let world = World::new();
        let disk = Mount::tmpfs(world.path("disk"), "2m");
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let full = start(&client, capture("t", "", 60_000), disk.0.join("f"))
            .await
            .unwrap();
        let fine = start(&client, capture("t", "", 4_000), world.path("fine"))
            .await
            .unwrap();
        let far = world.injector(FAR);
        for i in 0..3000 {
            far.send(&frame(i, 53, 1400)).unwrap();
            if i % 20 == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        let (ended, packets) = full.ended_without_statistics().await;
        assert_eq!(ended.stop_reason, StopReason::Error);
        let message = ended.message.unwrap();
        assert!(message.contains("No space left"), "{message}");
        assert!(
            packets.len() > 500 && ended.balance.lost_writer > 0,
            "{:?}",
            ended.balance
        );
        let whole: Vec<_> = packets.iter().map(sequence_of).collect();
        assert!(
            whole.iter().copied().eq(0..whole.len() as u32),
            "from the first on, none missing"
        );
        let (ended, packets) = fine.ended().await;
        assert_eq!((ended.stop_reason, packets.len()), (StopReason::Duration, 3000));
        assert_eq!(ended.balance.lost_writer, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_blocks_costs_only_its_own_capture_and_what_it_missed_is_counted() {
    for source in both() {
        let world = World::new();
        let disk = Mount::ext4(world.path("disk"));
        let _daemon = world.daemon_with(&["--history", "8Mi"]);
        let client = world.client();
        let _held = attach(&client, source).await;
        let request = Capture {
            max_size_bytes: 1 << 30,
            ..capture("t", "", 120_000)
        };
        let stuck = start(&client, request, disk.0.join("f")).await.unwrap();
        let fine = start(&client, capture("t", "", 120_000), world.path("fine"))
            .await
            .unwrap();
        // The head of the file is written at once, by a thread that must not hang before it has begun.
        wait_until("it has begun", || {
            std::fs::metadata(disk.0.join("f")).unwrap().len() > 0
        });
        let frozen = disk.freeze();
        let head = std::fs::metadata(disk.0.join("f")).unwrap().len();
        let far = world.injector(FAR);
        const SENT: u32 = 40_000;
        for i in 0..SENT {
            far.send(&frame(i, 53, 1000)).unwrap();
            if i % 200 == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        wait_for(&client, "all are there", |s| {
            s.counters.packets + s.counters.dropped_ring.unwrap() >= u64::from(SENT)
        })
        .await;
        let began = Instant::now();
        client.status().await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(1));
        fine.cancel.cancel().unwrap();
        stuck.cancel.cancel().unwrap();
        let (ended, packets) = fine.ended().await;
        let lost = ended.balance.lost_ring.unwrap() + ended.balance.lost_writer;
        assert_eq!(
            packets.len() as u64 + lost,
            u64::from(SENT),
            "{:?}",
            ended.balance
        );
        assert!(
            lost < u64::from(SENT) / 10,
            "a stuck neighbour must not cost this: {:?}",
            ended.balance
        );
        assert_eq!(
            std::fs::metadata(disk.0.join("f")).unwrap().len(),
            head,
            "this test is about a file that takes nothing"
        );
        drop(frozen);
        let (ended, packets) = stuck.ended().await;
        assert_eq!(ended.stop_reason, StopReason::Cancelled);
        let b = ended.balance;
        assert!(b.adds_up() && b.lost_writer + b.lost_history > 0, "{b:?}");
        assert!(packets.is_sorted_by(|a, b| sequence_of(a) < sequence_of(b)));
    }
}
