//! Tables and short forms in the manner of kubectl.

use k8s_openapi::jiff::Timestamp;

/// Column heads and rows, padded to the widest cell and three spaces.
pub fn render(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|h| h.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let lines: Vec<String> = std::iter::once(&head)
        .chain(rows)
        .map(|row| {
            let cells = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
        })
        .collect();
    lines.join("\n")
}

/// How long ago `then` was: `45s`, `3m20s`, `5h`, `12d`. What lies ahead is `0s`.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    span(now.as_second().saturating_sub(then.as_second()))
}

/// How long until `then`, or `passed`.
pub fn until(then: Timestamp, now: Timestamp) -> String {
    if then <= now {
        "passed".into()
    } else {
        span(then.as_second() - now.as_second())
    }
}

fn span(seconds: i64) -> String {
    let s = seconds.max(0);
    match s {
        0..120 => format!("{s}s"),
        120..600 if s % 60 != 0 => format!("{}m{}s", s / 60, s % 60),
        120..10_800 => format!("{}m", s / 60),
        10_800..172_800 => format!("{}h", s / 3600),
        _ => format!("{}d", s / 86_400),
    }
}

/// Bytes with a binary unit and one decimal: `512`, `1.5Ki`, `50.0Mi`.
pub fn bytes(count: u64) -> String {
    let mut value = count as f64;
    let mut unit = "";
    for next in ["Ki", "Mi", "Gi"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit.is_empty() {
        count.to_string()
    } else {
        format!("{value:.1}{unit}")
    }
}

/// The value, or `-` where nothing was reported: an absent number is not a zero.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let table = render(
            &["NAME", "PHASE"],
            &[
                vec!["a-long-name".into(), "Failed".into()],
                vec!["b".into(), "-".into()],
            ],
        );
        assert_eq!(
            table,
            "NAME          PHASE\na-long-name   Failed\nb             -"
        );
    }

    #[test]
    fn times_are_short() {
        let at = |s| Timestamp::from_second(s).expect("time");
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (3600, "60m"),
            (86_400, "24h"),
            (1_000_000, "11d"),
        ] {
            assert_eq!(age(at(0), at(seconds)), text);
        }
        assert_eq!(age(at(10), at(0)), "0s");
        assert_eq!(until(at(10), at(10)), "passed");
        assert_eq!(until(at(70), at(10)), "60s");
    }

    #[test]
    fn sizes_are_short_and_an_absent_number_is_no_zero() {
        for (count, text) in [
            (0, "0"),
            (1023, "1023"),
            (1536, "1.5Ki"),
            (52_428_800, "50.0Mi"),
            (1 << 40, "1024.0Gi"),
        ] {
            assert_eq!(bytes(count), text);
        }
        assert_eq!(or_dash(None::<i64>), "-");
        assert_eq!(or_dash(Some(0)), "0");
    }
}
