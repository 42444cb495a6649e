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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_character_and_loses_its_control_characters() {
        assert_eq!(clean("a\u{e9}", 2), "a");
        assert_eq!(clean("a\n\u{1b}[0mb", 99), "a  [0mb");
    }
}
