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
    let flat: String = text
        .chars()
        .map(|c| if is_unprintable(c) { ' ' } else { c })
        .collect();
    let flat = hide_private_keys(&flat);
    let mut out = String::with_capacity(flat.len());
    let mut hide_next = false;
    let mut named = false;
    let mut words = flat.split(' ').peekable();
    while let Some(word) = words.next() {
        if hide_next && !word.is_empty() {
            hide_next = is_scheme(word);
            out.push_str(if hide_next { word } else { REDACTED });
        } else {
            let (clean, announces) = clean_word(word);
            out.push_str(&clean);
            hide_next = hide_next || announces || (named && matches!(word, "=" | ":"));
        }
        named = names_a_secret(word);
        if words.peek().is_some() {
            out.push(' ');
        }
    }
    out
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

/// The word without its secrets, and whether the next word is a secret.
fn clean_word(word: &str) -> (String, bool) {
    if is_scheme(word) {
        return (word.to_owned(), true);
    }
    let word = hide_url_credentials(word);
    let mut out = String::with_capacity(word.len());
    let mut rest = word.as_str();
    let mut announces = false;
    while !rest.is_empty() {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        let (piece, tail) = rest.split_at(end);
        let next = if is_jwt(piece) { REDACTED } else { piece };
        out.push_str(next);
        rest = tail;
        // `name=value` and `name:value`, with or without quotes around either.
        let operator_at = rest
            .find(|c| c == '=' || c == ':')
            .filter(|at| rest[..*at].chars().all(is_quote));
        if let Some(at) = operator_at.filter(|_| names_a_secret(piece)) {
            let (operator, value) = rest.split_at(at + 1);
            let open = value.len() - value.trim_start_matches(is_quote).len();
            let (quotes, value) = value.split_at(open);
            out.push_str(operator);
            out.push_str(quotes);
            let end = value.find(ends_a_value).unwrap_or(value.len());
            let (secret, tail) = value.split_at(end);
            let pending = secret.is_empty() && tail.is_empty();
            announces = pending || is_scheme(secret);
            out.push_str(if secret.is_empty() || is_scheme(secret) {
                secret
            } else {
                REDACTED
            });
            rest = tail;
        } else if let Some(c) = rest.chars().next() {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    (out, announces)
}

/// `scheme://user:password@host` loses what stands before the `@`.
fn hide_url_credentials(word: &str) -> String {
    let Some(start) = word.find("://") else {
        return word.to_owned();
    };
    let (head, tail) = word.split_at(start + 3);
    let authority = tail.find(['/', '?', '#', '"', '\'']).unwrap_or(tail.len());
    match tail[..authority].rfind('@') {
        Some(at) => format!("{head}{REDACTED}{}", hide_url_credentials(&tail[at..])),
        None => format!("{head}{}", hide_url_credentials(tail)),
    }
}

fn is_separator(c: char) -> bool {
    matches!(
        c,
        '=' | ':' | '&' | '?' | ',' | ';' | '"' | '\'' | '`' | '{' | '}' | '(' | ')' | '<' | '>' | '/' | '|'
    )
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '\\')
}

fn ends_a_value(c: char) -> bool {
    matches!(c, '&' | ',' | ';' | '"' | '\'' | '`' | '}' | ')' | '>' | '|')
}

fn is_scheme(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    ["bearer", "basic"]
        .iter()
        .any(|scheme| bare.eq_ignore_ascii_case(scheme))
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
