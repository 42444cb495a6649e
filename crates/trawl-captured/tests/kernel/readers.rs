//! Other people's readers open the files without complaint.

use std::process::Command;

use trawl_control::Capture;

use crate::world::*;

/// What a reader prints, given that it has nothing to complain about.
fn read(program: &str, arguments: &[&str]) -> String {
    let out = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    let complaint = errors.lines().find(|line| {
        // tcpdump names the file, tshark warns of root.
        !line.contains("reading from file") && !line.contains("Running as user") && !line.is_empty()
    });
    assert!(out.status.success() && complaint.is_none(), "{program}: {errors}");
    String::from_utf8(out.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_with_tags_open_in_tshark_tcpdump_and_capinfos_and_show_balance_and_comments() {
    for source in both() {
        let world = World::new();
        let _daemon = world.daemon();
        let client = world.client();
        let _held = attach(&client, source).await;
        let request = Capture {
            comments: vec!["asked for by a test".into()],
            ..capture("t", "udp", 1_500)
        };
        let running = start(&client, request, world.path("f")).await.unwrap();
        let far = world.injector(FAR);
        for number in 0..50u32 {
            let plain = frame(number, 53, 60 + number as usize * 20);
            let sent = match number % 3 {
                0 => plain,
                1 => tagged(&plain, 7),
                _ => tagged(&tagged(&plain, 9), 8),
            };
            far.send(&sent).unwrap();
        }
        let (ended, packets) = running.ended().await;
        assert_eq!((packets.len(), ended.balance.lost_ring), (50, Some(0)));
        let file = world.path("f");
        let file = file.to_str().unwrap();
        let tags = read("tshark", &["-n", "-r", file, "-T", "fields", "-e", "vlan.id"]);
        let tags: Vec<_> = tags.lines().collect();
        assert_eq!(tags[..3], ["", "7", "8,9"]);
        assert_eq!(tags.len(), 50);
        assert_eq!(read("tcpdump", &["-n", "-r", file]).lines().count(), 50);
        let infos = read("capinfos", &[file]);
        for wanted in [
            "Number of packets:   50",
            "Capture comment:     asked for by a test",
            "nanoseconds (9)",
            "Number of stat entries = 1",
            "Filter string = udp",
        ] {
            assert!(infos.contains(wanted), "{wanted:?} is not in {infos}");
        }
        let blocks = std::fs::read(file).unwrap();
        let words = "seen 50 = matched 50 + filtered 0 + lost in history 0; matched 50 = written 50 + lost by the writer 0";
        let found = blocks.windows(words.len()).any(|w| w == words.as_bytes());
        assert!(found, "the balance stands in the file in words");
    }
}
