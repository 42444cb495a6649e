//! `Range` and `If-Range` of RFC 9110, one range of bytes: what an interrupted download needs.

use std::ops::Range;

use http::{HeaderMap, header};

/// Which bytes to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    Whole,
    Part(Range<u64>),
    /// The range begins behind the end.
    Unsatisfiable,
}

/// Reads the headers for an object of `size` bytes with the strong validator `etag`.
///
/// What is not understood (several ranges, other units, bad syntax) is ignored, as the RFC asks.
pub fn wanted(headers: &HeaderMap, size: u64, etag: Option<&str>) -> Wanted {
    let Some(value) = headers.get(header::RANGE).and_then(|v| v.to_str().ok()) else {
        return Wanted::Whole;
    };
    if let Some(condition) = headers.get(header::IF_RANGE)
        && etag.is_none_or(|etag| condition.as_bytes() != etag.as_bytes())
    {
        return Wanted::Whole;
    }
    parse(value, size).unwrap_or(Wanted::Whole)
}

fn parse(value: &str, size: u64) -> Option<Wanted> {
    let (first, last) = value.strip_prefix("bytes=")?.trim().split_once('-')?;
    let range = match (number(first)?, number(last)?) {
        (None, None) => return None,
        (None, Some(suffix)) if suffix == 0 || size == 0 => return Some(Wanted::Unsatisfiable),
        (None, Some(suffix)) => size.saturating_sub(suffix)..size,
        (Some(first), Some(last)) if last < first => return None,
        (Some(first), _) if first >= size => return Some(Wanted::Unsatisfiable),
        (Some(first), None) => first..size,
        (Some(first), Some(last)) => first..last.saturating_add(1).min(size),
    };
    Some(Wanted::Part(range))
}

/// Empty is `Some(None)`; anything but digits is `None`.
fn number(text: &str) -> Option<Option<u64>> {
    if text.is_empty() {
        return Some(None);
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_understood_and_everything_else_is_the_whole() {
        let table = [
            ("bytes=0-", Wanted::Part(0..100)),
            ("bytes=40-", Wanted::Part(40..100)),
            ("bytes=40-49", Wanted::Part(40..50)),
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=99-500", Wanted::Part(99..100)),
            ("bytes=0-18446744073709551615", Wanted::Part(0..100)),
            ("bytes=-10", Wanted::Part(90..100)),
            ("bytes=-500", Wanted::Part(0..100)),
            ("bytes=100-", Wanted::Unsatisfiable),
            ("bytes=-0", Wanted::Unsatisfiable),
            ("bytes=50-40", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=0-1,5-6", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=18446744073709551616-", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("", Wanted::Whole),
        ];
        for (value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, value.parse().expect("header"));
            assert_eq!(wanted(&headers, 100, Some("\"e\"")), expected, "{value}");
        }
        assert_eq!(wanted(&HeaderMap::new(), 100, None), Wanted::Whole);
    }

    #[test]
    fn a_changed_object_is_sent_whole_instead_of_resumed() {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, "bytes=40-".parse().expect("header"));
        headers.insert(header::IF_RANGE, "\"old\"".parse().expect("header"));
        assert_eq!(wanted(&headers, 100, Some("\"new\"")), Wanted::Whole);
        assert_eq!(wanted(&headers, 100, None), Wanted::Whole);
        assert_eq!(wanted(&headers, 100, Some("\"old\"")), Wanted::Part(40..100));
    }
}
