//! The tap pod's sidecar: attaches the interface in captured and reports its counters.
