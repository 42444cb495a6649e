//! `trawlctl filter`: what filters mean, without a cluster.

mod explain;
mod test;

pub use explain::explain;
pub use test::test;

use trawl_filter::{Compiled, Options};

use crate::{Failure, cli::Reading};

fn options(reading: Reading) -> Options {
    Options {
        literal: reading.literal,
        tunnels: reading.tunnels,
    }
}

fn compiled(text: &str, options: &Options) -> Result<Compiled, Failure> {
    trawl_filter::compile_with(text, options).map_err(|error| {
        Failure::new(error.to_string())
            .hint("the language is that of tcpdump, with numbers instead of names: man pcap-filter")
    })
}
