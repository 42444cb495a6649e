//! Text that leaves a program: cut to a size, without control characters.

/// Longest message in a record, status or error, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 512;

/// At most `max` bytes of `text`, cut at a character boundary, with control characters replaced by spaces.
pub fn clean(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    for c in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        if out.len() + c.len_utf8() > max {
            break;
        }
        out.push(c);
    }
    out
}

/// Whether `text` is the lower-case hex of a SHA-256.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
