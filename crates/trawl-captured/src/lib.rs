//! The per-node capture daemon, the one privileged program of Trawl.
