//! What the daemon may do, as the kernel says.

use std::process::Command;

use crate::record::{Recording, start_recording};
use crate::world::*;

/// NET_ADMIN, NET_RAW, IPC_LOCK, BPF.
const FOUR: u64 = 1 << 12 | 1 << 13 | 1 << 14 | 1 << 39;
const NAMES: [&str; 4] = ["net_raw", "net_admin", "bpf", "ipc_lock"];

/// A capability set in every thread of a process.
fn sets(process: u32, set: &str) -> Vec<u64> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let read = |thread: std::fs::DirEntry| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(set))
            .unwrap()
            .to_owned();
        u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
    };
    threads.map(|t| read(t.unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_was_started_with_everything_keeps_four_capabilities_and_can_win_none() {
    let world = World::new();
    let daemon = world.daemon();
    let client = world.client();
    let own = sets(std::process::id(), "CapEff");
    assert!(own[0] & !FOUR != 0, "this test is about a daemon that had more");
    for source in both() {
        let _held = attach(&client, source).await;
        let running = start(&client, capture("t", "", 60_000), world.path("f"))
            .await
            .unwrap();
        let process = daemon.0.id();
        for set in ["CapEff", "CapPrm"] {
            // A writer does without any; every other thread has the four and no more.
            wait_until("the writer has given up what it had", || {
                sets(process, set).contains(&0)
            });
            let threads = sets(process, set);
            assert!(
                threads.iter().all(|s| *s == FOUR || *s == 0),
                "{set}: {threads:x?}"
            );
            assert_eq!(
                threads.iter().filter(|s| **s == 0).count(),
                1,
                "{set}: {threads:x?}"
            );
        }
        assert!(sets(process, "CapBnd").iter().all(|s| *s == FOUR));
        assert!(sets(process, "CapInh").iter().all(|s| *s == 0));
        assert!(sets(process, "CapAmb").iter().all(|s| *s == 0));
        assert!(sets(process, "NoNewPrivs").iter().all(|s| *s == 1));
        drop(running);
        client.detach(tap("t")).await.unwrap();
        std::fs::remove_file(world.path("f")).unwrap();
    }
}

/// The program as a user that is not root, with these capabilities alone.
fn as_user(world: &World, capabilities: &[&str]) -> Command {
    let list: String = capabilities.iter().map(|c| format!(",+{c}")).collect();
    let mut command = world.command("prlimit");
    // With the usual limit, frames can be locked only by who has IPC_LOCK.
    command.args([
        "--memlock=65536",
        "setpriv",
        "--reuid=4242",
        "--regid=4242",
        "--clear-groups",
    ]);
    command.arg(format!("--inh-caps=-all{list}"));
    command.arg(format!("--ambient-caps=-all{list}"));
    command.arg(format!("--bounding-set=-all{list}"));
    command.arg(world.path("trawl-captured"));
    command
}

fn world_for_users() -> World {
    use std::os::unix::fs::{PermissionsExt, chown};
    let world = World::new();
    std::fs::copy(PROGRAM, world.path("trawl-captured")).unwrap();
    chown(world.dir.path(), Some(4242), Some(4242)).unwrap();
    std::fs::set_permissions(world.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    world
}

/// A recording of a second into this file, by a user with these capabilities.
fn record_as_user(world: &World, capabilities: &[&str], file: &str) -> Recording {
    let mut command = as_user(world, capabilities);
    command.args([
        "record",
        "--alone",
        "--interface",
        NEAR,
        "--duration",
        "1s",
        "-o",
        file,
    ]);
    start_recording(world, command)
}

#[test]
fn a_user_with_the_four_capabilities_records_and_without_one_is_told_which() {
    let world = world_for_users();
    let recording = record_as_user(&world, &NAMES, "f");
    recording.wait_for("recording near0");
    world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
    let (code, said) = recording.finish();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(packets_of(&world.path("f")).len(), 1);
    for missing in NAMES {
        let rest: Vec<_> = NAMES.into_iter().filter(|n| *n != missing).collect();
        let (code, said) = record_as_user(&world, &rest, "g").finish();
        let name = format!("this process lacks CAP_{}", missing.to_uppercase());
        assert_eq!(code, Some(1), "{missing}: {said}");
        assert!(said.contains(&name), "{missing}: {said}");
        assert!(!world.path("g").exists());
    }
}
