//! Size bounds, to the byte.

use trawl_control::{Capture, Source, StopReason};

use crate::load::*;
use crate::world::*;

const LIMITS: usize = 200;
const AT_ONCE: usize = 10;

async fn random_limits_under_load(source: Source) {
    let world = World::new();
    let _daemon = world.daemon();
    let client = world.client();
    let _held = attach(&client, source).await;
    let load = Load::start(&world, 40_000);
    let (mut random, mut tight) = (Random::new(), 0);
    for batch in 0..LIMITS / AT_ONCE {
        let mut running = Vec::new();
        for i in 0..AT_ONCE {
            let limit = random.between(1 << 20, (1 << 20) + 400_000);
            let request = Capture {
                max_size_bytes: limit,
                pre_trigger_ms: random.between(0, 50),
                ..capture("t", "", 60_000)
            };
            let path = world.path(&format!("{batch}-{i}"));
            running.push((start(&client, request, path).await.unwrap(), limit));
        }
        for (running, limit) in running {
            let path = running.path.clone();
            let (ended, packets) = running.ended().await;
            std::fs::remove_file(path).unwrap();
            assert_eq!(ended.stop_reason, StopReason::Size);
            assert!(ended.bytes <= limit, "{} over {limit}", ended.bytes);
            let b = ended.balance;
            assert_eq!(
                (b.lost_writer, b.lost_history),
                (1, 0),
                "the one that did not fit: {b:?}"
            );
            assert!(
                packets.iter().all(|p| p.bytes.len() == length_of(number_of(p))),
                "all are whole"
            );
            // Else the packet that did not fit is not known.
            if b.lost_ring == Some(0) {
                tight += 1;
                let next = number_of(packets.last().unwrap()) + 1;
                let block = 32 + length_of(next).next_multiple_of(4) as u64;
                assert!(
                    ended.bytes + block > limit,
                    "{} bytes and packet {next} of {block} would have fitted into {limit}",
                    ended.bytes
                );
            }
        }
    }
    load.stop();
    assert!(
        tight > LIMITS / 2,
        "only {tight} of {LIMITS} files could be judged to the byte"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_random_size_limits_are_kept_and_the_next_packet_would_not_have_fitted_on_a_mirror() {
    random_limits_under_load(mirror(NEAR)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_random_size_limits_are_kept_and_the_next_packet_would_not_have_fitted_on_a_node_interface()
 {
    random_limits_under_load(node(NEAR)).await;
}
