//! Authorised download of capture artifacts.
