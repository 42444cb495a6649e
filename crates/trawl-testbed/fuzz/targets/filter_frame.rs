//! Any frame is judged by filters of every kind, tunnels and all; nothing panics, everything ends. The first byte
//! chooses the filter.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use trawl_filter::{Filter, Options, compile_with};

const TEXTS: [&str; 8] = [
    "host 10.0.0.50 and host 192.168.1.100",
    "tcp port 443 or udp portrange 5000-6000",
    "not port 53 and icmp6[0] != 1",
    "ether host 02:00:00:00:00:01 and tcp[13] & 2 != 0",
    "vlan 100 and (host 10.0.0.50 or (vlan and tcp port 443))",
    "len > 100 and ip6 net 2001:db8::/32",
    "ip[ip[2:2]] + (ip6[4:2] * 3) / 7 = udp[ip[0] & 0xf]",
    "sctp or esp or geneve or pppoes or mpls",
];

static FILTERS: LazyLock<Vec<Filter>> = LazyLock::new(|| {
    let options = [(false, false), (false, true), (true, false)];
    let compile = |text: &&str| {
        options.map(|(literal, tunnels)| {
            let options = Options { literal, tunnels };
            compile_with(text, &options).expect("a good filter").filter
        })
    };
    TEXTS.iter().flat_map(compile).collect()
});

fuzz_target!(|input: &[u8]| {
    let Some((choice, frame)) = input.split_first() else {
        return;
    };
    let filter = &FILTERS[usize::from(*choice) % FILTERS.len()];
    for kept in [frame.len(), frame.len() / 2] {
        let _ = filter.matches(&frame[..kept], frame.len() as u32);
    }
});
