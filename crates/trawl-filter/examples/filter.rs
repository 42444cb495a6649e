//! Nanoseconds per frame, beside libpcap's own interpreter on the same frames in the same run. See `dev/bench filter`.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use trawl_filter::{Options, compile_with};

const ROUNDS: usize = 61;
/// Times that every frame of the mix is judged in one round.
const PASSES: usize = 10;
const COMPILATIONS: usize = 2000;

/// A plain text, as an analyst writes it.
const TEXTS: [&str; 6] = [
    "host 10.0.0.50 and host 192.168.1.100",
    "host 10.0.0.50 and port 443",
    "tcp port 443",
    "ether host 02:00:00:00:00:07 and tcp",
    "tcp[13] & 2 != 0 and len - 14 > 20",
    "ip[2:2] - ((ip[0] & 0xf) << 2) > 100",
];
const GOAL: &str = "host 10.0.0.50 and host 192.168.1.100";

/// The text that libpcap needs for the same traffic.
fn expanded(text: &str) -> String {
    format!("{text} or (vlan and ({text} or (vlan and ({text}))))")
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: filter RESULT.json");
    let mix = mix();
    let bytes: usize = mix.iter().map(|(_, frame)| frame.len()).sum();
    println!(
        "{} frames, {} bytes on average; median of {ROUNDS} rounds, ns per frame\n",
        mix.len(),
        bytes / mix.len()
    );
    println!(
        "{:<38} {:<9} {:>6} {:>8} {:>9} {:>9} {:>9}",
        "filter", "frames", "Trawl", "libpcap", "libpcap", "Trawl /", "Trawl /"
    );
    println!(
        "{:<38} {:<9} {:>6} {:>8} {:>9} {:>9} {:>9}",
        "", "", "", "plain", "expanded", "plain", "expanded"
    );
    let mut rows = Vec::new();
    for text in TEXTS {
        for kind in [
            "mix", "shuffled", "untagged", "tagged", "QinQ", "hits", "misses", "tunnels",
        ] {
            let chosen = mix.iter().filter(|(k, _)| belongs(kind, k));
            let mut chosen: Vec<&[u8]> = chosen.map(|(_, frame)| frame.as_slice()).collect();
            if kind == "shuffled" {
                // No two frames of a train together: the worst case for anything that guesses.
                chosen.sort_by_key(|frame| {
                    frame.iter().fold(frame.as_ptr() as u64, |hash, byte| {
                        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
                    })
                });
            }
            // Behind each other, as in a ring.
            let ring = chosen.concat();
            let mut rest = ring.as_slice();
            let next = |frame: &&[u8]| rest.split_off(..frame.len()).unwrap_or_default();
            let frames: Vec<&[u8]> = chosen.iter().map(next).collect();
            let [ours, plain, wide] = measure(text, &frames, kind == "tunnels");
            println!(
                "{text:<38} {kind:<9} {ours:>6.1} {plain:>8.1} {wide:>9.1} {:>9.2} {:>9.2}",
                ours / plain,
                ours / wide
            );
            rows.push((text, kind, ours, plain, wide));
        }
    }
    let (p50, p95) = compile_times();
    println!("\ncompile (all of the above, with expansion): p50 {p50:.0} us, p95 {p95:.0} us");
    let (_, _, ours, plain, wide) = rows
        .iter()
        .find(|row| row.0 == GOAL && row.1 == "mix")
        .expect("measured");
    println!(
        "goal on the mix: {:.2} of libpcap's expanded text (at most 0.50), {:.2} of its plain text (at most 1.00); compile p50 under 1000 us",
        ours / wide,
        ours / plain
    );
    std::fs::write(&path, json(&rows, p50, p95)).expect("the result can be written");
    println!("written to {path}");
}

fn belongs(kind: &str, frame: &str) -> bool {
    match kind {
        "mix" | "shuffled" | "tunnels" => true,
        "hits" | "misses" => frame.ends_with(kind),
        _ => frame.starts_with(kind),
    }
}

/// Medians of rounds that take turns. libpcap cannot look into tunnels and does not.
fn measure(text: &str, frames: &[&[u8]], tunnels: bool) -> [f64; 3] {
    let options = Options {
        literal: false,
        tunnels,
    };
    let ours = compile_with(text, &options).expect("compiles").filter;
    let libpcap = |text: &str| {
        let dead = pcap::Capture::dead(pcap::Linktype::ETHERNET).expect("a handle");
        dead.compile(text, true).expect("compiles")
    };
    let (plain, wide) = (libpcap(text), libpcap(&expanded(text)));
    let mut rounds = [const { Vec::new() }; 3];
    for round in 0..=ROUNDS {
        let times = [
            time(frames, |frame| ours.matches(frame, frame.len() as u32)),
            time(frames, |frame| plain.filter(frame)),
            time(frames, |frame| wide.filter(frame)),
        ];
        // The first warms up.
        if round > 0 {
            for (all, time) in rounds.iter_mut().zip(times) {
                all.push(time);
            }
        }
    }
    rounds.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    })
}

fn time(frames: &[&[u8]], judge: impl Fn(&[u8]) -> bool) -> f64 {
    let mut kept = 0usize;
    let began = Instant::now();
    for _ in 0..PASSES {
        for frame in frames {
            kept += usize::from(judge(black_box(frame)));
        }
    }
    black_box(kept);
    began.elapsed().as_nanos() as f64 / (PASSES * frames.len()) as f64
}

fn compile_times() -> (f64, f64) {
    let mut times: Vec<f64> = (0..COMPILATIONS)
        .map(|n| {
            let began = Instant::now();
            black_box(compile_with(TEXTS[n % TEXTS.len()], &Options::default()).expect("compiles"));
            began.elapsed().as_nanos() as f64 / 1000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 95 / 100])
}

/// Frames as a mirror port shows them, in trains of up to 7 alike: half of them untagged, a quarter tagged once, an
/// eighth twice, the rest IPv6 and ARP; one in four trains is between the two hosts.
fn mix() -> Vec<(&'static str, Vec<u8>)> {
    let mut state = 0x9e37_79b9u32;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..512)
        .flat_map(|_| {
            let train = 1 + (random() % 7) as usize;
            let hit = random() % 4 == 0;
            let kind = random() % 16;
            let tags: &[u16] = match kind {
                0..8 => &[],
                8..12 => &[0x8100],
                12..14 => &[0x88a8, 0x8100],
                _ => &[],
            };
            let mut frame = vec![
                2,
                0,
                0,
                0,
                0,
                (random() % 8) as u8,
                2,
                0,
                0,
                0,
                0,
                (random() % 8) as u8,
            ];
            for tag in tags {
                frame.extend(tag.to_be_bytes());
                frame.extend([0, 100]);
            }
            let ours = [[10, 0, 0, 50], [192, 168, 1, 100]];
            let others = [
                [10, 0, 0, (random() % 100) as u8],
                [172, 16, 0, (random() % 100) as u8],
            ];
            let [from, to] = if hit { ours } else { others };
            let [from, to] = if random() % 2 == 0 { [from, to] } else { [to, from] };
            let ports = [443u16, 40000 + (random() % 1000) as u16, 53, 80];
            let (a, b) = (ports[(random() % 4) as usize], ports[(random() % 4) as usize]);
            let length = 40 + (random() % 400) as usize;
            match kind {
                14 => {
                    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 2, 0, 6, 64]);
                    frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
                    frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
                }
                15 => {
                    frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1]);
                    frame.extend(from);
                    frame.extend([0; 6]);
                    frame.extend(to);
                    frame.resize(60, 0);
                }
                _ => {
                    let protocol = if random() % 4 == 0 { 17 } else { 6 };
                    frame.extend([0x08, 0, 0x45, 0, 4, 0, 0, 7, 0x40, 0, 64, protocol, 0, 0]);
                    frame.extend(from);
                    frame.extend(to);
                }
            }
            if kind != 15 {
                frame.extend(a.to_be_bytes());
                frame.extend(b.to_be_bytes());
                frame.extend([
                    0,
                    0,
                    0,
                    1,
                    0,
                    0,
                    0,
                    2,
                    0x50,
                    (random() % 32) as u8,
                    1,
                    1,
                    0,
                    0,
                    0,
                    0,
                ]);
                frame.resize(frame.len() + length, 7);
            }
            let name = match (kind, hit) {
                (0..=7, true) => "untagged hits",
                (0..=7, false) => "untagged misses",
                (8..=11, true) => "tagged hits",
                (8..=11, false) => "tagged misses",
                (12 | 13, true) => "QinQ hits",
                (12 | 13, false) => "QinQ misses",
                (15, true) => "other hits",
                _ => "other misses",
            };
            std::iter::repeat_n((name, frame), train)
        })
        .collect()
}

fn json(rows: &[(&str, &str, f64, f64, f64)], p50: f64, p95: f64) -> String {
    let mut text = String::from("{\n  \"nsPerFrame\": [\n");
    for (n, (filter, frames, ours, plain, wide)) in rows.iter().enumerate() {
        let comma = if n + 1 < rows.len() { "," } else { "" };
        let _ = writeln!(
            text,
            "    {{\"filter\": \"{filter}\", \"frames\": \"{frames}\", \"trawl\": {ours:.2}, \"libpcapPlain\": {plain:.2}, \"libpcapExpanded\": {wide:.2}}}{comma}"
        );
    }
    let _ = writeln!(
        text,
        "  ],\n  \"compileMicroseconds\": {{\"p50\": {p50:.1}, \"p95\": {p95:.1}}}\n}}"
    );
    text
}
