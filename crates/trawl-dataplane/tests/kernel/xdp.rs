//! What only AF_XDP does.

use trawl_control::CaptureMode;
use trawl_dataplane::queue::Queue;

use crate::world::*;

#[test]
fn held_bytes_outlive_their_ring_and_do_not_keep_the_queue_bound() {
    let world = World::new();
    let far = world.far();
    let mut opened = mirror(&history(0));
    let queue = &mut opened.queues[0];
    let mut at = queue.end();
    far.send(&frame(7, 200)).unwrap();
    receive(queue, 1);
    let mut held = Vec::new();
    queue.visit(&mut at, 1, &mut |f| assert!(f.hold(150, &mut held)));
    let memory = queue.memory();
    drop(opened);
    let mut again = mirror(&history(0));
    assert_eq!(again.mode, CaptureMode::Copy);
    for i in 0..20_000 {
        far.send(&frame(i, 200)).unwrap();
        again.queues[0].receive().unwrap();
    }
    assert_eq!(memory.bytes(&held[0]), &frame(7, 200)[..150]);
}
