//! The documented system calls are those that are made.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use trawl_control::{Attach, Feed};

use crate::world::*;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the unit in the documentation allows.
fn documented() -> BTreeSet<String> {
    let text = std::fs::read_to_string(repository().join("docs/captured-hardening.md")).unwrap();
    let calls = text
        .lines()
        .filter_map(|line| line.strip_prefix("SystemCallFilter="));
    calls.flat_map(str::split_whitespace).map(Into::into).collect()
}

/// The names of the calls that a process and its threads made.
fn traced(file: &Path) -> BTreeSet<String> {
    // Without `-D` the tracer would be the process that gets the signals; with it, it ends a moment later.
    let read = || std::fs::read_to_string(file).unwrap_or_default();
    wait_until("strace has written what it counted", || read().contains("total"));
    let names = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let is_call =
        |name: &String| !name.is_empty() && !name.starts_with('-') && name != "syscall" && name != "total";
    read().lines().map(names).filter(is_call).collect()
}

fn under_strace(world: &World, file: &str, arguments: &[&str]) -> std::process::Command {
    let mut command = world.command("strace");
    command
        .args(["-D", "-f", "-qq", "-c", "-U", "name", "-o"])
        .arg(world.path(file));
    command.arg(PROGRAM).args(arguments);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn every_system_call_of_serve_record_watch_and_check_is_in_the_documented_list() {
    let (world, analyzer) = (World::new(), World::new());
    let socket = world.socket();
    let socket = socket.to_str().unwrap();
    let serve = ["serve", "--socket", socket, "--socket-group", "0"];
    let mut daemon = world.wait_for_daemon(under_strace(&world, "serve", &serve));
    let client = world.client();
    for source in both() {
        let _held = attach(&client, source).await;
        let namespace = std::fs::File::open(format!("/run/netns/{}", analyzer.namespace)).unwrap();
        let ask = Feed {
            tap: tap("t"),
            interface: "mon0".into(),
        };
        let fed = client.feed(ask, namespace).await.unwrap();
        let running = start(&client, capture("t", "udp", 2_000), world.path("f"))
            .await
            .unwrap();
        let far = world.injector(FAR);
        for i in 0..20_000 {
            far.send(&frame(i, 53, 1000)).unwrap();
        }
        assert!(!running.ended().await.1.is_empty());
        wait_for(&client, "the feed has sent", |s| {
            s.feeds.iter().any(|f| f.packets > 0)
        })
        .await;
        drop(fed);
        client.detach(tap("t")).await.unwrap();
        std::fs::remove_file(world.path("f")).unwrap();
    }
    let gone = Attach {
        history_bytes: None,
        tap: tap("t"),
        source: mirror("nope0"),
    };
    client.attach(gone).await.unwrap_err();
    kill_process(Pid::from_child(&daemon.0), Signal::TERM).unwrap();
    assert!(daemon.0.wait().unwrap().success());
    let mut made = traced(&world.path("serve"));
    assert!(
        made.contains("bpf") && made.contains("sendmmsg") && made.contains("capset"),
        "strace saw too little: {made:?}"
    );
    let commands: [&[&str]; 4] = [
        &[
            "record",
            "--alone",
            "-i",
            NEAR,
            "--pre",
            "100ms",
            "--duration",
            "500ms",
            "-o",
        ],
        &[
            "record",
            "--alone",
            "-i",
            NEAR,
            "--node",
            "--duration",
            "500ms",
            "-o",
        ],
        &["watch", "--interface", NEAR, "--for", "1500ms"],
        &["check", NEAR],
    ];
    for (i, arguments) in commands.into_iter().enumerate() {
        let (trace, output) = (format!("trace{i}"), format!("out{i}"));
        let mut command = under_strace(&world, &trace, arguments);
        if arguments[0] == "record" {
            command.arg(world.path(&output));
        }
        let output = command.output().unwrap();
        let code = output.status.code();
        assert!(
            code.is_some_and(|c| c == 0 || arguments[0] == "check"),
            "{output:?}"
        );
        made.extend(traced(&world.path(&trace)));
    }
    let surprising: Vec<_> = made.difference(&documented()).cloned().collect();
    assert!(
        surprising.is_empty(),
        "not in docs/captured-hardening.md and deploy/captured-seccomp.json: {surprising:?}"
    );
}

#[test]
fn the_seccomp_profile_allows_what_the_unit_allows() {
    let text = std::fs::read(repository().join("deploy/captured-seccomp.json")).unwrap();
    let profile: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let names = profile["syscalls"][0]["names"].as_array().unwrap();
    let names: BTreeSet<_> = names.iter().map(|n| n.as_str().unwrap().to_owned()).collect();
    assert_eq!(names, documented());
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
}
