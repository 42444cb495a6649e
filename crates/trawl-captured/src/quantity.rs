//! Durations and sizes of the command line.

use std::time::Duration;

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

/// Bytes for people.
pub(crate) fn show(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
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
}
