//! Durations and sizes of the command line.

use std::time::Duration;

use trawl_control::limits::MAX_HISTORY_BYTES;

/// `500ms`, `10s`, `1m30s`, `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const ADVICE: &str = "not a duration; write numbers with ms, s, m or h, such as 10s or 1m30s";
    let (mut rest, mut total) = (text, Duration::ZERO);
    if text.is_empty() {
        return Err(ADVICE.into());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().map_err(|_| ADVICE)?;
        rest = &rest[digits..];
        let unit = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let milliseconds = match &rest[..unit] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(ADVICE.into()),
        };
        rest = &rest[unit..];
        let part = number.checked_mul(milliseconds).ok_or(ADVICE)?;
        total = total.checked_add(Duration::from_millis(part)).ok_or(ADVICE)?;
    }
    Ok(total)
}

/// `52428800`, `50Mi`, `50M`, `1Gi`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const ADVICE: &str = "not a size; write bytes, or a number with Ki, Mi, Gi, k, M or G, such as 50Mi";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().map_err(|_| ADVICE)?;
    let factor = match &text[digits..] {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return Err(ADVICE.into()),
    };
    number.checked_mul(factor).ok_or_else(|| ADVICE.into())
}

/// A size of history: as [`size`], 0 to 4 GiB.
pub(crate) fn history(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes <= MAX_HISTORY_BYTES => Ok(bytes),
        _ => Err("at most 4Gi may be held for an interface".into()),
    }
}

/// Bytes for people.
pub(crate) fn show(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// Seconds for people, from nanoseconds.
pub(crate) fn seconds(nanoseconds: u64) -> String {
    format!("{:.1} s", nanoseconds as f64 / 1e9)
}

/// A rate for people: `950 bit/s`, `9.5 Gbit/s`.
pub(crate) fn bits(per_second: f64) -> String {
    match per_second {
        r if r < 1e3 => format!("{r:.0} bit/s"),
        r if r < 1e6 => format!("{:.1} kbit/s", r / 1e3),
        r if r < 1e9 => format!("{:.1} Mbit/s", r / 1e6),
        r => format!("{:.2} Gbit/s", r / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_their_parts() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for bad in [
            "",
            "10",
            "s",
            "1d",
            "-1s",
            "1.5s",
            "99999999999999999999h",
            "1s x",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_binary_or_decimal_as_written() {
        assert_eq!(size("50Mi"), Ok(50 << 20));
        assert_eq!(size("50M"), Ok(50_000_000));
        assert_eq!(size("7"), Ok(7));
        for bad in ["", "Mi", "5 Mi", "5mb", "99999999999Gi", "-5"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_history_larger_than_an_attachment_may_have_is_refused() {
        assert_eq!(history("0"), Ok(0));
        assert_eq!(history("4Gi"), Ok(4 << 30));
        assert!(history("5Gi").is_err());
    }

    #[test]
    fn rates_and_sizes_are_shown_in_the_unit_that_people_would_use() {
        assert_eq!(bits(999.0), "999 bit/s");
        assert_eq!(bits(9_500_000_000.0), "9.50 Gbit/s");
        assert_eq!(show(3 << 30), "3.0 GiB");
        assert_eq!(seconds(1_250_000_000), "1.2 s");
    }
}
