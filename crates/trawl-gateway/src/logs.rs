//! JSON lines on standard error, of this program only.

use tracing::Level;
use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

/// Trawl's own lines from `level` up; of every library only warnings. No setting makes a library trace the headers
/// or bodies of requests, because a token would be in them.
pub fn init(level: Level) {
    let targets = Targets::new()
        .with_default(Level::WARN)
        .with_target("trawl_gateway", level)
        .with_target("trawl_store", level)
        .with_target("trawl_kube", level);
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(lines.with_filter(targets))
        .init();
}
