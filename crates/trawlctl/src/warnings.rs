//! Warnings of the API server, which come in the headers of its answers (RFC 7234, code 299): admission warnings among
//! them. kubectl shows them on standard error, and so does this.

use http::Response;
use tower::util::MapResponseLayer;

/// Most warnings of one answer that are shown.
const MOST: usize = 32;

/// A layer that shows the warnings of every answer.
pub fn shown<B>() -> MapResponseLayer<fn(Response<B>) -> Response<B>> {
    MapResponseLayer::new(show)
}

fn show<B>(response: Response<B>) -> Response<B> {
    for value in response
        .headers()
        .get_all(http::header::WARNING)
        .iter()
        .take(MOST)
    {
        if let Some(text) = value.to_str().ok().and_then(text) {
            eprintln!("warning: {text}");
        }
    }
    response
}

/// The text of `299 AGENT "TEXT"`, without what could steer a terminal.
fn text(value: &str) -> Option<String> {
    let mut parts = value.splitn(3, ' ');
    let (code, _agent, quoted) = (parts.next()?, parts.next()?, parts.next()?);
    let inner = quoted.strip_prefix('"')?;
    let mut text = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return (code == "299" && !text.is_empty()).then_some(text),
            '\\' => text.extend(letters.next()),
            control if control.is_control() => {}
            letter => text.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn the_text_between_the_quotes_is_what_counts() {
        for (value, expected) in [
            (r#"299 - "spec.filter: is empty""#, Some("spec.filter: is empty")),
            (
                r#"299 agent "a \"quoted\" \\ word" "Mon, 01 Jan 2026 00:00:00 GMT""#,
                Some(r#"a "quoted" \ word"#),
            ),
            ("299 - \"a\tb\"", Some("ab")),
            (r#"199 - "other""#, None),
            (r#"299 - """#, None),
            (r#"299 - "never closed"#, None),
            (r#"299 - "closed by nothing\"#, None),
            ("299 -", None),
            ("", None),
        ] {
            assert_eq!(text(value).as_deref(), expected, "{value}");
        }
    }
}
