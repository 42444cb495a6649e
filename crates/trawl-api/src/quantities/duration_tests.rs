use super::*;

#[test]
fn durations_in_go_form_and_in_whole_days_mean_what_they_say() {
    for (text, nanos) in [
        ("0", 0),
        ("0s", 0),
        ("1ns", 1),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("1μs", 1_000),
        ("500ms", 500_000_000),
        ("30s", 30_000_000_000),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("5m", 300_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1h0m0.5s", 3_600_500_000_000),
        ("90m", 5_400_000_000_000),
        ("7d", 604_800_000_000_000),
        ("30d", 2_592_000_000_000_000),
        ("0d", 0),
    ] {
        let parsed = GoDuration::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(parsed.get(), Duration::from_nanos(nanos), "{text}");
        assert_eq!(parsed.to_string(), text);
    }
}

#[test]
fn what_is_not_a_duration_is_refused() {
    for text in [
        "",
        "s",
        "d",
        "1",
        "-1s",
        "+1s",
        "1d12h",
        "12h1d",
        "1.5d",
        "1w",
        "1 s",
        " 1s",
        "1s ",
        "1..5s",
        ".s",
        "1h-5m",
        "1S",
        "١s",
        "infinite",
        "99999999999999999999d",
        "99999999999999999999s",
        "0.0000000000000000000000000000001s",
    ] {
        assert!(GoDuration::parse(text).is_err(), "{text:?} was accepted");
    }
}

#[test]
fn durations_are_equal_when_the_time_is_equal_whatever_the_words() {
    assert_eq!(GoDuration::parse("1h30m"), GoDuration::parse("90m"));
    assert_eq!(GoDuration::parse("1d"), GoDuration::parse("24h"));
    assert_ne!(GoDuration::parse("1s"), GoDuration::parse("1ms"));
}

#[test]
fn a_duration_keeps_its_words_through_json() {
    let parsed: GoDuration = serde_json::from_str("\"1h0m\"").expect("valid");
    assert_eq!(serde_json::to_string(&parsed).expect("valid"), "\"1h0m\"");
    assert!(serde_json::from_str::<GoDuration>("5").is_err());
}

#[test]
fn milliseconds_are_whole_and_do_not_overflow() {
    assert_eq!(GoDuration::parse("1.9996s").expect("valid").as_millis(), 1999);
    assert_eq!(
        GoDuration::parse("99999d").expect("valid").as_millis(),
        99_999 * 86_400_000
    );
}
