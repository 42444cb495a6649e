use trawl_api::TriggerType;

use super::*;

fn tried(template: &str) -> Result<Checked, SpecimenError> {
    let template = Template::parse(template, TriggerType::SuricataAlert).expect("parses");
    check(&template, &Options::default())
}

#[test]
fn a_template_that_fits_every_event_has_no_failing_one() {
    for template in [
        "",
        "tcp port 443",
        "host {{source.ip}} and host {{destination.ip}}",
        "{{protocol}}",
        "host {{source.ip}} and {{protocol}}",
    ] {
        assert_eq!(tried(template).map(|c| c.failing), Ok(vec![]), "{template}");
    }
}

#[test]
fn the_events_that_will_fail_are_named() {
    for (template, failing) in [
        ("ip host {{source.ip}}", "IPv6"),
        ("ip6 and host {{source.ip}}", "IPv4"),
        ("host {{source.ip}} and port {{source.port}}", "ICMP; ICMPv6"),
        ("{{protocol}} port {{destination.port}}", "ICMP; ICMPv6"),
        ("{{protocol}} port 443", "ICMP; ICMPv6"),
        ("ip host {{source.ip}} and port {{source.port}}", "IPv6; ICMP"),
    ] {
        let checked = tried(template).unwrap_or_else(|e| panic!("{template}: {e}"));
        assert_eq!(describe(&checked.failing), failing, "{template}");
    }
    let one = [Event {
        family: Family::V6,
        protocol: Protocol::Tcp,
    }];
    assert_eq!(describe(&one), "TCP over IPv6");
    assert_eq!(describe(&[]), "");
}

#[test]
fn a_template_that_fits_no_event_is_refused_at_its_place() {
    for (template, words) in [
        ("host {{source.ip}} and bogus", "byte 24"),
        ("host {{source.port}}", "byte 6"),
        ("net {{source.port}}", "byte 1"),
        ("net 10 or {{destination.port}}", "byte 11"),
        ("port {{source.ip}}", "filter"),
        ("host {{source.ip}} and", "filter"),
        ("tcp and udp and host {{source.ip}}", "rejects all packets"),
        ("ip host {{source.ip}} and ip6 host {{destination.ip}}", "filter"),
        ("port {{suricata.ruleID}}", "filter"),
        ("ip proto {{protocol}}", "filter"),
    ] {
        let error = tried(template).expect_err(template).to_string();
        assert!(
            error.contains("values of any event") && error.contains(words),
            "{template}: {error}"
        );
        assert!(!error.contains("bogus") && !error.contains("192.168"), "{error}");
    }
}

#[test]
fn what_is_too_long_for_the_longest_addresses_fails_for_their_events() {
    let template = format!("host {{{{source.ip}}}}{}", " ".repeat(1000));
    assert_eq!(tried(&template).map(|c| describe(&c.failing)), Ok("IPv6".into()));
}

#[test]
fn specimens_carry_what_their_packets_carry() {
    for event in Event::ALL {
        let values = event.specimen();
        assert_eq!(
            values.source_port.is_some(),
            event.protocol.has_ports(),
            "{event:?}"
        );
        let longest = if event.family == Family::V4 { 15 } else { 39 };
        assert_eq!(values.source_ip.expect("address").to_string().len(), longest);
    }
}
