//! `Content-Range` of RFC 9110: where the bytes of a part belong.

/// First byte and total size of `bytes first-last/total`. What contradicts itself is not understood: the RFC forbids
/// to put such a part together with another.
pub fn part(value: &str) -> Option<(u64, u64)> {
    let (range, total) = value.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, total) = (number(first)?, number(last)?, number(total)?);
    (first <= last && last < total).then_some((first, total))
}

/// Total size of `bytes */total`, the answer to a range behind the end.
pub fn unsatisfied(value: &str) -> Option<u64> {
    number(value.strip_prefix("bytes */")?)
}

fn number(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_says_where_it_begins_and_how_much_there_is() {
        assert_eq!(part("bytes 40-99/100"), Some((40, 100)));
        assert_eq!(part("bytes 0-0/1"), Some((0, 1)));
        assert_eq!(unsatisfied("bytes */100"), Some(100));
    }

    #[test]
    fn what_contradicts_itself_or_leaves_something_out_is_not_understood() {
        for value in [
            "bytes 50-40/100",
            "bytes 0-100/100",
            "bytes 0-99/*",
            "bytes 0-/100",
            "bytes +1-9/100",
            "bytes 0-99/18446744073709551616",
            "items 0-99/100",
            "bytes */100",
            "",
        ] {
            assert_eq!(part(value), None, "{value}");
        }
        for value in ["bytes */*", "bytes */+1", "bytes 0-99/100", "bytes */", ""] {
            assert_eq!(unsatisfied(value), None, "{value}");
        }
    }
}
