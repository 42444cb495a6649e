use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::world::*;

/// A recording and what it says.
pub struct Recording {
    pub child: std::process::Child,
    log: std::path::PathBuf,
}

pub fn record(world: &World, arguments: &[&str]) -> Recording {
    let mut command = world.command(PROGRAM);
    command.args(["record", "--interface", NEAR]).args(arguments);
    command.args(["--socket", world.socket().to_str().unwrap()]);
    start_recording(world, command)
}

pub fn start_recording(world: &World, mut command: std::process::Command) -> Recording {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let log = world.path(&format!("record-{}.log", NEXT.fetch_add(1, Ordering::Relaxed)));
    command.current_dir(world.dir.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(std::fs::File::create(&log).unwrap());
    Recording {
        child: command.spawn().unwrap(),
        log,
    }
}

impl Recording {
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub fn wait_for(&self, words: &str) {
        wait_until(words, || self.log().contains(words));
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Exit code and everything it said.
    pub fn finish(self) -> (Option<i32>, String) {
        let output = self.child.wait_with_output().unwrap();
        let log = std::fs::read_to_string(self.log).unwrap();
        (
            output.status.code(),
            format!("{}{log}", String::from_utf8_lossy(&output.stdout)),
        )
    }
}

#[test]
fn recorded_beside_tcpdump_the_packets_are_the_same_in_the_same_order() {
    // Redirection hides frames from other readers of the same end, so tcpdump then listens at the far one.
    for (arguments, listen) in [(&["--node"][..], NEAR), (&[], FAR)] {
        let world = World::new();
        let tcpdump = world.tcpdump(listen, &world.path("tcpdump.pcap"));
        let child = record(
            &world,
            &[arguments, &["--duration", "4s", "-o", "ours.pcapng"]].concat(),
        );
        child.wait_for("recording near0");
        let (far, near) = (world.injector(FAR), world.injector(NEAR));
        let mut count = 0;
        for i in 0..3000u32 {
            let mut bytes = frame(i, (i % 7) as u16 + 1, 60 + (i as usize * 31) % 1440);
            if i % 5 == 0 {
                bytes = tagged(&bytes, (i % 4000) as u16 + 1);
            }
            if !arguments.is_empty() && i % 11 == 0 {
                near.send(&bytes).unwrap();
            } else {
                far.send(&bytes).unwrap();
            }
            count += 1;
        }
        let (code, said) = child.finish();
        assert_eq!(code, Some(0), "{said}");
        let theirs = tcpdump.finish(count);
        let ours: Vec<_> = packets_of(&world.path("ours.pcapng"))
            .into_iter()
            .map(|p| p.bytes)
            .collect();
        assert_eq!(ours.len(), count);
        assert!(ours == theirs, "the same packets in the same order");
        for reader in [
            &["tshark", "-n", "-r"][..],
            &["tcpdump", "-n", "-r"],
            &["capinfos"],
        ] {
            let mut command = std::process::Command::new(reader[0]);
            let output = command
                .args(&reader[1..])
                .arg(world.path("ours.pcapng"))
                .output()
                .unwrap();
            let complaint = String::from_utf8_lossy(&output.stderr).to_lowercase();
            assert!(output.status.success(), "{reader:?}: {complaint}");
            for word in ["error", "truncat", "damaged", "corrupt", "cut short"] {
                assert!(!complaint.contains(word), "{reader:?}: {complaint}");
            }
        }
    }
}

#[test]
fn ctrl_c_and_a_terminal_that_goes_away_finish_the_file_and_say_so() {
    for (arguments, signal) in [(&["--node"][..], Signal::INT), (&[], Signal::HUP)] {
        let world = World::new();
        let child = record(&world, &[arguments, &["--duration", "1h", "-o", "f"]].concat());
        child.wait_for("recording near0");
        world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        child.signal(signal);
        let (code, said) = child.finish();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("interrupted; the file is finished"), "{said}");
        assert_eq!(packets_of(&world.path("f")).len(), 1);
    }
}

#[test]
fn an_interface_that_goes_away_ends_the_recording_as_an_error() {
    for arguments in [&["--node"][..], &[]] {
        let world = World::new();
        let child = record(&world, &[arguments, &["--duration", "1h", "-o", "f"]].concat());
        child.wait_for("recording near0");
        world.injector(FAR).send(&frame(1, 53, 100)).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        world.ip(&["link", "del", NEAR]);
        let (code, said) = child.finish();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("is gone"), "{said}");
        assert_eq!(packets_of(&world.path("f")).len(), 1);
    }
}

#[test]
fn a_link_that_is_down_is_said_at_once() {
    let world = World::new();
    world.ip(&["link", "set", NEAR, "down"]);
    let (code, said) = record(&world, &["--node", "--duration", "100ms", "-o", "f"]).finish();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("is down"), "{said}");
}

#[test]
fn mistakes_are_explained_and_leave_no_file() {
    let world = World::new();
    std::fs::write(world.path("mine"), "precious").unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&["-o", "-"], "is no file"),
        (&["-o", "mine"], "exists already"),
        (
            &["-o", "f", "--filter", "host example.com"],
            "names are not looked up",
        ),
        (&["-o", "f", "--filter", "ip6 and arp"], "rejects all packets"),
        (&["-o", "f", "--duration", "2h"], "--duration must be 1ms to 1h"),
        (
            &["-o", "mine", "--duration", "2h"],
            "--duration must be 1ms to 1h",
        ),
        (&["-o", "f", "--max-size", "10"], "--max-size must be 1Mi to 1Gi"),
        (&["-o", "f", "--snaplen", "3"], "--snaplen must be"),
        (&["-o", "f", "--pre", "6m"], "--pre must be at most 5m"),
        (
            &["-o", "f", "--interface", "nope0"],
            "cannot be used multiple times",
        ),
        (&["-o", "no/such/dir/f"], "cannot create"),
    ];
    for (arguments, wanted) in cases {
        let (code, said) = record(&world, &[arguments, &["--node"]].concat()).finish();
        let usage = !matches!(wanted, "exists already" | "cannot create");
        assert_eq!(code, Some(1 + i32::from(usage)), "{arguments:?}: {said}");
        assert!(said.contains(wanted), "{arguments:?}: {said}");
        assert!(!world.path("f").exists(), "{arguments:?}");
    }
    assert_eq!(std::fs::read(world.path("mine")).unwrap(), b"precious");
    let mut command = world.command(PROGRAM);
    let output = command
        .args(["record", "--interface", "nope0", "-o"])
        .arg(world.path("f"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("interface nope0 does not exist here"), "{said}");
    assert!(!world.path("f").exists());
}

#[test]
fn an_interface_that_the_machine_uses_itself_is_never_taken_away() {
    let world = World::new();
    world.ip(&["addr", "add", "10.99.0.1/24", "dev", NEAR]);
    let (code, said) = record(&world, &["-o", "f"]).finish();
    assert_eq!(code, Some(1));
    assert!(
        said.contains("has an IP address") && said.contains("--node"),
        "{said}"
    );
    assert!(!world.path("f").exists());
}
