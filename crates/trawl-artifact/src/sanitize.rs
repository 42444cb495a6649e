//! Takes secrets and control characters out of text that leaves a component: status, log, error, audit.
//!
//! The rules err on the side of hiding: a long opaque word after `bearer` is hidden even when it is no token.

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Parts of names whose values are secrets, in lower case; `-` and `_` in a name do not count.
const SECRET_NAMES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "signature",
    "authorization",
    "sessionid",
];

/// Returns `text` in one line and without secrets: JSON web tokens, bearer and basic credentials, signatures of
/// presigned URLs, user and password in URLs, the values of `name=value` and `name: value` where the name says secret,
/// and private keys. Applying it twice changes nothing.
pub fn sanitize(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .map(|c| if is_unprintable(c) { ' ' } else { c })
        .collect();
    // A cut can bring together what was apart, so it is done again until nothing is found.
    for _ in 0..MAX_PASSES {
        let next = redact(&shown);
        if next == shown {
            return shown;
        }
        shown = next;
    }
    REDACTED.into()
}

/// More passes than any honest text needs; one that needs them all was made to deceive.
const MAX_PASSES: usize = 8;

fn redact(text: &str) -> String {
    let clean = hide_url_credentials(&hide_private_keys(text));
    let mut out = String::with_capacity(clean.len());
    let mut rest = clean.as_str();
    while let Some(first) = rest.chars().next() {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        if end == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (piece, tail) = rest.split_at(end);
        out.push_str(if is_jwt(piece) { REDACTED } else { piece });
        let (shown, hidden) = secret_after(piece, tail);
        out.push_str(&tail[..shown]);
        if hidden > 0 {
            out.push_str(REDACTED);
        }
        rest = &tail[shown + hidden..];
    }
    out
}

/// How many bytes of `tail`, which follows `piece`, are to be shown, and how many after them are a secret.
fn secret_after(piece: &str, tail: &str) -> (usize, usize) {
    if is_scheme(piece) {
        let shown = tail.len() - tail.trim_start_matches(' ').len();
        let hidden = credential(&tail[shown..]);
        let opaque = piece.eq_ignore_ascii_case("bearer") || looks_encoded(&tail[shown..shown + hidden]);
        return if shown > 0 && opaque {
            (shown, hidden)
        } else {
            (0, 0)
        };
    }
    if !names_a_secret(piece) {
        return (0, 0);
    }
    let after_name = tail.trim_start_matches(is_quote).trim_start_matches(' ');
    let Some(after_operator) = after_name.strip_prefix(['=', ':']) else {
        return (0, 0);
    };
    let value = after_operator.trim_start_matches(' ');
    let inner = value.trim_start_matches(is_quote);
    let shown = tail.len() - inner.len();
    let quote = value[..value.len() - inner.len()].chars().next_back();
    let hidden = match quote {
        Some(quote) => inner.find(quote).unwrap_or(inner.len()),
        None => credential(inner),
    };
    // An escaped closing quote leaves its escape outside.
    let hidden = hidden - (inner[..hidden].len() - inner[..hidden].trim_end_matches('\\').len());
    if quote.is_none() && is_scheme(&inner[..hidden]) {
        (shown, 0)
    } else {
        (shown, hidden)
    }
}

/// Length of a value without quotes around it.
fn credential(text: &str) -> usize {
    text.find(|c: char| c == ' ' || c == '&' || is_quote(c) && c != '\\')
        .unwrap_or(text.len())
}

fn looks_encoded(text: &str) -> bool {
    let base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_');
    text.bytes().all(base64)
        && text
            .bytes()
            .any(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'=')
}

/// Control characters, and those that reorder or hide what a reader sees.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn hide_private_keys(text: &str) -> String {
    let Some(start) = text.find("-----BEGIN ") else {
        return text.to_owned();
    };
    let (head, tail) = text.split_at(start);
    let label = tail["-----BEGIN ".len()..]
        .split("-----")
        .next()
        .unwrap_or_default();
    let end = tail.find("-----END ").map_or(tail.len(), |at| {
        let after = at + "-----END ".len();
        tail[after..]
            .find("-----")
            .map_or(tail.len(), |dashes| after + dashes + 5)
    });
    let block = if label.contains("PRIVATE KEY") {
        REDACTED
    } else {
        &tail[..end]
    };
    format!("{head}{block}{}", hide_private_keys(&tail[end..]))
}

/// `scheme://user:password@host` loses what stands before the `@`.
fn hide_url_credentials(word: &str) -> String {
    let Some(start) = word.find("://") else {
        return word.to_owned();
    };
    let (head, tail) = word.split_at(start + 3);
    let authority = tail.find([' ', '/', '?', '#', '"', '\'']).unwrap_or(tail.len());
    match tail[..authority].rfind('@') {
        Some(at) => format!("{head}{REDACTED}{}", hide_url_credentials(&tail[at..])),
        None => format!("{head}{}", hide_url_credentials(tail)),
    }
}

fn is_separator(c: char) -> bool {
    " =:&?,;{}()<>/|".contains(c) || is_quote(c)
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '\\')
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// Three base64url parts, the first of which is the beginning of a JSON object.
fn is_jwt(piece: &str) -> bool {
    let Some(start) = piece.find("eyJ") else {
        return false;
    };
    let parts: Vec<&str> = piece[start..].split('.').collect();
    parts.len() >= 3
        && parts.iter().take(2).all(|part| {
            part.len() >= 4
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
}

fn names_a_secret(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | '.'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    plain == "sig"
        || plain == "pwd"
        || SECRET_NAMES
            .iter()
            .any(|secret| plain.ends_with(secret) || plain.ends_with(&format!("{secret}id")))
}

#[cfg(test)]
#[path = "sanitize_tests.rs"]
mod tests;
