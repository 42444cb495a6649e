//! The Trawl command line.
