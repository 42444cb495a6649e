use super::*;

#[test]
fn quantities_of_whole_bytes_mean_what_they_say() {
    for (text, bytes) in [
        ("0", 0),
        ("1048576", 1_048_576),
        ("+1", 1),
        ("1k", 1_000),
        ("1Ki", 1_024),
        ("50Mi", 52_428_800),
        ("1.5Mi", 1_572_864),
        (".5Gi", 536_870_912),
        ("1.Gi", 1_073_741_824),
        ("1Gi", 1_073_741_824),
        ("1G", 1_000_000_000),
        ("1e6", 1_000_000),
        ("1E6", 1_000_000),
        ("1.5e3", 1_500),
        ("2000m", 2),
        ("1E", 1_000_000_000_000_000_000),
        ("1Ei", 1 << 60),
    ] {
        let parsed = ByteSize::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(parsed.bytes(), bytes, "{text}");
        assert_eq!(parsed.to_string(), text);
    }
}

#[test]
fn what_is_not_a_size_in_whole_bytes_is_refused() {
    for text in [
        "",
        "Mi",
        ".",
        "-1Mi",
        "1 Mi",
        "1mi",
        "1MB",
        "1KiB",
        "1.1Mi",
        "1.5",
        "1m",
        "0x10",
        "1e",
        "1e+",
        "1e1.5",
        "15e-1",
        "1e999",
        "1..5Mi",
        "1Mi1",
        "99999999999999999999",
        "100Ei",
        "NaN",
        "∞",
    ] {
        assert!(ByteSize::parse(text).is_err(), "{text:?} was accepted");
    }
}

#[test]
fn sizes_are_equal_when_the_bytes_are_equal() {
    assert_eq!(ByteSize::parse("1Gi"), ByteSize::parse("1024Mi"));
    assert_eq!(
        ByteSize::parse("1024Mi").expect("valid"),
        ByteSize::from_bytes(1 << 30)
    );
    assert_ne!(ByteSize::parse("1G"), ByteSize::parse("1Gi"));
}

#[test]
fn an_integer_and_a_string_are_both_read() {
    let from_number: ByteSize = serde_json::from_str("1048576").expect("valid");
    let from_text: ByteSize = serde_json::from_str("\"1Mi\"").expect("valid");
    assert_eq!(from_number, from_text);
    assert!(serde_json::from_str::<ByteSize>("-1").is_err());
    assert!(serde_json::from_str::<ByteSize>("1.5").is_err());
    assert!(serde_json::from_str::<ByteSize>("null").is_err());
}
