//! Words for people, on standard error. Nobody may be there to read them: a recording goes on without.

use std::io::{Write, stderr};

/// One line.
pub(crate) fn line(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

/// In the place of the line before; only for terminals.
pub(crate) fn redraw(text: &str) {
    let mut out = stderr();
    let _ = write!(out, "\r\x1b[K{text}");
    let _ = out.flush();
}

/// [`line`] with a format.
macro_rules! tell {
    ($($words:tt)*) => { $crate::tell::line(&format!($($words)*)) };
}
pub(crate) use tell;
