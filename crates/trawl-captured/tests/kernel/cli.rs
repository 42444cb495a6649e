//! What one machine has without a cluster: record with what came before, watch, check.

use std::process::Output;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::record::record;
use crate::world::*;

fn cli(world: &World, arguments: &[&str]) -> Output {
    let mut command = world.command(PROGRAM);
    command.args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_by_the_daemon_begins_with_what_it_had_held_before_anybody_asked() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let far = world.injector(FAR);
        for i in 0..500 {
            far.send(&frame(i, 53, 200)).unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let arguments = ["--pre", "1m", "--duration", "1s", "--filter", "udp", "-o", "f"];
        let recording = record(&world, &arguments);
        recording.wait_for("records into f");
        wait_for(&client, "it has begun", |s| s.active_captures == 1).await;
        for i in 500..600 {
            far.send(&frame(i, 53, 200)).unwrap();
        }
        let (code, said) = recording.finish();
        assert_eq!(code, Some(0), "{said}");
        let numbers: Vec<_> = packets_of(&world.path("f")).iter().map(sequence_of).collect();
        assert!(
            numbers.iter().copied().eq(0..600),
            "{} packets: {said}",
            numbers.len()
        );
        assert!(
            said.contains("before the trigger, not 60.0 s")
                && said.contains("had not listened there for longer"),
            "{said}"
        );
        assert!(said.contains("seen 600 = matched 600 + filtered 0"), "{said}");
    }
}

#[test]
fn a_recording_that_waits_holds_what_comes_and_cuts_it_when_the_trigger_is_pulled() {
    use std::io::Write;
    for (arguments, key) in [(&["--node"][..], false), (&[], true)] {
        let world = World::new();
        let base = ["--pre", "30s", "--wait", "--duration", "3s", "-o", "f"];
        let mut recording = record(&world, &[arguments, &base].concat());
        recording.wait_for("waiting for the trigger");
        let far = world.injector(FAR);
        for i in 0..200 {
            far.send(&frame(i, 53, 200)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(
            std::fs::metadata(world.path("f")).unwrap().len(),
            0,
            "nothing is written before"
        );
        if key {
            recording.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        } else {
            recording.signal(Signal::USR1);
        }
        recording.wait_for("recording near0");
        for i in 200..250 {
            far.send(&frame(i, 53, 200)).unwrap();
        }
        let (code, said) = recording.finish();
        assert!(
            said.contains("it had not listened for longer; start it earlier"),
            "{said}"
        );
        assert_eq!(code, Some(0), "{said}");
        let numbers: Vec<_> = packets_of(&world.path("f")).iter().map(sequence_of).collect();
        assert!(
            numbers.iter().copied().eq(0..250),
            "{} packets: {said}",
            numbers.len()
        );
        assert!(said.contains("before the trigger, not 30.0 s"), "{said}");
    }
}

#[test]
fn a_recording_without_a_trigger_first_holds_what_it_was_asked_to_begin_with() {
    let world = World::new();
    let recording = record(
        &world,
        &["--node", "--pre", "2s", "--duration", "500ms", "-o", "f"],
    );
    recording.wait_for("the recording begins in 2.0 s");
    // The two seconds begin when this has been said, not before.
    std::thread::sleep(Duration::from_millis(500));
    world.injector(FAR).send(&frame(1, 53, 200)).unwrap();
    let (code, said) = recording.finish();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(packets_of(&world.path("f")).len(), 1, "{said}");
    assert!(
        said.contains("begins 2.0 s before the trigger, as asked"),
        "{said}"
    );
}

#[test]
fn a_recording_that_is_interrupted_before_its_trigger_leaves_no_file() {
    let world = World::new();
    let recording = record(&world, &["--node", "--wait", "-o", "f"]);
    recording.wait_for("waiting for the trigger");
    recording.signal(Signal::INT);
    let (code, said) = recording.finish();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("nothing was recorded"), "{said}");
    assert!(!world.path("f").exists());
}

#[test]
fn a_daemon_in_another_network_namespace_is_not_asked_about_an_interface_of_the_same_name() {
    let (world, elsewhere) = (World::new(), World::new());
    let _daemon = elsewhere.daemon();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _held = runtime.block_on(attach(&elsewhere.client(), node(NEAR)));
    let mut command = world.command(PROGRAM);
    command.args([
        "record",
        "--interface",
        NEAR,
        "--node",
        "--duration",
        "300ms",
        "-o",
        "f",
    ]);
    command.arg("--socket").arg(elsewhere.socket());
    let (code, said) = crate::record::start_recording(&world, command).finish();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("recording near0 (af-packet)"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_shows_what_arrives_line_by_line_and_as_json() {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let socket = world.socket();
    let socket = socket.to_str().unwrap();
    let nothing = cli(&world, &["watch", "--for", "1500ms", "--socket", socket]);
    assert!(
        said(&nothing).contains("nothing is attached"),
        "{}",
        said(&nothing)
    );
    let _held = attach(&client, mirror(NEAR)).await;
    let _traffic = world.traffic(1000);
    let output = cli(&world, &["watch", "--for", "2500ms", "--socket", socket]);
    assert!(output.status.success(), "{}", said(&output));
    let text = said(&output);
    assert!(
        text.contains("near0  copy  ") && text.contains("packets/s"),
        "{text}"
    );
    assert!(text.contains("lost: ring 0"), "{text}");
    for arguments in [
        &["--socket", socket][..],
        &["--interface", NEAR, "--socket", socket],
        // Nobody has attached this one: it is opened for the purpose.
        &["--interface", FAR, "--node", "--socket", socket],
    ] {
        let output = cli(
            &world,
            &[&["watch", "--json", "--for", "3500ms"], arguments].concat(),
        );
        assert!(output.status.success(), "{}", said(&output));
        let lines = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert!((2..=4).contains(&rows.len()), "{lines}");
        let row = rows.last().unwrap();
        let rate = row["packetsPerSecond"].as_u64().unwrap();
        assert!((300..3000).contains(&rate), "{row}");
        assert!(row["historySeconds"].as_f64().unwrap() > 0.5, "{row}");
        assert!(row["counters"]["packets"].as_u64().unwrap() > 500, "{row}");
    }
}

#[test]
fn watching_without_a_daemon_says_what_to_do() {
    let world = World::new();
    let output = cli(&world, &["watch", "--socket", "/nonexistent/s"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("check that it runs on this node"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_check_says_what_is_wrong_by_its_exit_code_in_words_and_as_json() {
    let world = World::new();
    let output = cli(&world, &["check", "nope0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("does not exist here"), "{}", said(&output));
    world.ip(&["link", "set", NEAR, "down"]);
    let output = cli(&world, &["check", NEAR]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("ip link set near0 up"),
        "{}",
        said(&output)
    );
    world.ip(&["link", "set", NEAR, "up"]);
    world.ip(&["addr", "add", "10.99.0.1/24", "dev", NEAR]);
    let before = world.shell(&format!("ethtool -k {NEAR}"));
    let output = cli(&world, &["check", NEAR, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["items"][0]["item"], "mirror", "{report}");
    assert_eq!(report["items"][0]["state"], "wrong");
    let output = cli(&world, &["check", NEAR, "--node", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let states: Vec<_> = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["state"].as_str().unwrap())
        .collect();
    let wanted = match (states.contains(&"wrong"), states.contains(&"unknown")) {
        (true, _) => 1,
        (false, true) => 3,
        _ => 0,
    };
    assert_eq!(output.status.code(), Some(wanted), "{report}");
    assert_eq!(
        world.shell(&format!("ethtool -k {NEAR}")),
        before,
        "a check changes nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_repaired_on_a_nic_is_told_and_set_back_at_detach_and_at_the_end() {
    let world = World::new();
    let features = || world.shell(&format!("ethtool -k {NEAR}"));
    let before = features();
    assert!(
        before.contains("rx-vlan-offload: on"),
        "this test is about a NIC that needs a repair"
    );
    let mut daemon = world.daemon();
    let client = world.client();
    for _ in 0..2 {
        let held = attach(&client, mirror(NEAR)).await;
        let repaired = |v: &&trawl_control::NicVerdict| v.state == trawl_control::NicState::Repaired;
        assert!(
            held.status().nic.iter().any(|v| repaired(&v)),
            "{:?}",
            held.status().nic
        );
        assert!(features().contains("rx-vlan-offload: off"));
        client.detach(tap("t")).await.unwrap();
        assert_eq!(features(), before);
    }
    let _held = attach(&client, mirror(NEAR)).await;
    // What others change meanwhile is found, and is no repair any more.
    world.shell(&format!("ethtool -K {NEAR} rxvlan on"));
    let began = std::time::Instant::now();
    loop {
        let now = status_of(&client.status().await.unwrap().attachments, "t");
        if now
            .nic
            .iter()
            .any(|v| v.item == "rxVlan" && v.state == trawl_control::NicState::Wrong)
        {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", now.nic);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    daemon.signal(Signal::TERM);
    assert!(daemon.0.wait().unwrap().success());
    assert_eq!(features(), before);
}

#[test]
fn completion_and_manual_pages_know_every_command() {
    let world = World::new();
    let output = cli(&world, &["completion", "bash"]);
    for command in ["serve", "record", "watch", "check", "status"] {
        assert!(said(&output).contains(command), "{command}");
    }
    let pages = world.path("man");
    std::fs::create_dir(&pages).unwrap();
    let output = cli(&world, &["man", "--directory", pages.to_str().unwrap()]);
    assert!(output.status.success(), "{}", said(&output));
    let page = std::fs::read_to_string(pages.join("trawl-captured-record.1")).unwrap();
    assert!(page.contains("Exit codes"), "{page}");
    assert!(cli(&world, &["man"]).status.success());
}
