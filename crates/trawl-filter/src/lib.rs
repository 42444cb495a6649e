//! Filter text to a checked BPF program, without name resolution.
