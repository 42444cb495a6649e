use std::net::IpAddr;

use proptest::prelude::*;
use trawl_filter::words::{self, Kind};

use super::*;
use crate::{Address, Event, Port, Protocol, Severity};

const ALERT: TriggerType = TriggerType::SuricataAlert;
const DROP: TriggerType = TriggerType::HubbleDrop;

fn values() -> Values {
    Values {
        source_ip: Address::parse("10.0.0.50").ok(),
        source_port: Port::new(49_832).ok(),
        destination_ip: Address::parse("2001:db8::1").ok(),
        destination_port: Port::new(443).ok(),
        protocol: Some(Protocol::Tcp),
        rule_id: Some(7),
        severity: Severity::new(1).ok(),
    }
}

#[test]
fn each_placeholder_becomes_its_value_and_the_rest_stays() {
    for (template, filter) in [
        ("", ""),
        ("tcp port 443", "tcp port 443"),
        (
            "host {{source.ip}} and host {{destination.ip}}",
            "host 10.0.0.50 and host 2001:db8::1",
        ),
        ("host {{ source.ip }}", "host 10.0.0.50"),
        ("host {{   source.ip }}", "host 10.0.0.50"),
        ("{{protocol}} port {{destination.port}}", "tcp port 443"),
        (
            "(src port {{source.port}} or ({{protocol}}))",
            "(src port 49832 or (tcp))",
        ),
        (
            "vlan {{suricata.severity}} && port {{suricata.ruleID}}",
            "vlan 1 && port 7",
        ),
        ("not ( {{protocol}} )", "not ( tcp )"),
        (
            "ip[0] = 69 and host {{source.ip}}",
            "ip[0] = 69 and host 10.0.0.50",
        ),
        ("host {{source.ip}} && len > 64", "host 10.0.0.50 && len > 64"),
        ("host {{source.ip}} || {{protocol}}", "host 10.0.0.50 || tcp"),
    ] {
        let parsed = Template::parse(template, ALERT).unwrap_or_else(|e| panic!("{template}: {e}"));
        assert_eq!(parsed.render(&values()).as_deref(), Ok(filter), "{template}");
    }
}

#[test]
fn only_the_placeholders_of_the_contract_are_understood() {
    for (template, position) in [
        ("{{source.mac}}", 1),
        ("host {{Source.ip}}", 6),
        ("host {{source .ip}}", 6),
        ("host {{.source.ip}}", 6),
        ("host {{}}", 6),
        ("host {{ }}", 6),
        ("{{if source.ip}}", 1),
        ("{{ env \"HOME\" }}", 1),
        ("{{source.ip | quote}}", 1),
        ("{{source.ip}} {{nothing}}", 15),
    ] {
        let error = Template::parse(template, ALERT).expect_err(template);
        assert_eq!(
            error,
            TemplateError::Unknown {
                position,
                trigger: ALERT
            },
            "{template}"
        );
    }
}

#[test]
fn braces_are_only_for_placeholders() {
    for (template, position) in [
        ("{", 1),
        ("}", 1),
        ("host {source.ip}", 6),
        ("host {{source.ip}", 6),
        ("host {{source.ip", 6),
        ("host {{source.ip}} }}", 20),
        ("host {{{source.ip}}}", 6),
        ("host {{source.ip {{source.ip}}", 6),
        ("host {{ {source.ip} }}", 6),
        ("${HOME}", 2),
    ] {
        let error = Template::parse(template, ALERT).expect_err(template);
        assert_eq!(error, TemplateError::Brace { position }, "{template}");
    }
}

#[test]
fn a_trigger_has_values_for_its_own_placeholders_only() {
    for (template, own, other) in [
        ("port {{suricata.ruleID}}", ALERT, DROP),
        ("port {{suricata.severity}}", ALERT, DROP),
    ] {
        assert!(Template::parse(template, own).is_ok(), "{template}");
        let error = Template::parse(template, other).expect_err(template);
        assert!(
            matches!(error, TemplateError::OtherTrigger { position: 6, .. }),
            "{error}"
        );
    }
    let error = Template::parse("{{hubble.dropReason}}", ALERT).expect_err("other trigger");
    assert_eq!(
        error.to_string(),
        "byte 1: {{hubble.dropReason}} has no value for SuricataAlert triggers; use one of {{source.ip}}, \
         {{source.port}}, {{destination.ip}}, {{destination.port}}, {{protocol}}, {{suricata.ruleID}}, \
         {{suricata.severity}}"
    );
}

#[test]
fn free_text_is_no_word_of_a_filter_and_the_refusal_says_what_to_use() {
    for (name, trigger, instead) in [
        ("suricata.category", ALERT, "suricataAlert.categories"),
        ("hubble.dropReason", DROP, "hubbleDrop.reasons"),
        ("hubble.sourceNamespace", DROP, "hubbleDrop.sourceNamespaces"),
        ("hubble.destinationNamespace", DROP, "spec.trigger"),
    ] {
        let error = Template::parse(&format!("host {{{{{name}}}}}"), trigger)
            .expect_err(name)
            .to_string();
        assert!(error.contains("free text") && error.contains(instead), "{error}");
        assert!(error.contains("{{source.ip}}"), "{error}");
    }
}

#[test]
fn a_value_never_joins_other_characters() {
    for template in [
        "net {{source.ip}}/24",
        "host 1{{source.ip}}",
        "host {{source.ip}}.1",
        "host {{source.ip}}{{destination.ip}}",
        "portrange 1-{{source.port}}",
        "!{{protocol}}",
        "{{protocol}}(port 1)",
        "host){{source.ip}}",
        "tcp[{{source.port}}]",
        "\\{{protocol}}",
        "host\"{{source.ip}}\"",
    ] {
        let error = Template::parse(template, ALERT).expect_err(template);
        assert!(
            matches!(error, TemplateError::Glued { .. }),
            "{template}: {error}"
        );
    }
}

#[test]
fn a_value_is_never_a_width_an_index_or_a_number_to_calculate_with() {
    for template in [
        "net 10.0.0.0 mask {{destination.ip}}",
        "net {{source.ip}} mask 255.0.0.0",
        "net ( {{source.ip}} ) / 8",
        "net 0.0.0.0 / {{suricata.severity}}",
        "greater {{source.port}}",
        "less ( {{source.port}} )",
        "len > {{source.port}}",
        "len >= {{source.port}} and tcp",
        "{{source.port}} < len",
        "{{source.port}} != 5",
        "tcp[ {{suricata.severity}} ] = 0",
        "tcp[0: {{suricata.severity}} ] = 0",
        "tcp[ ({{suricata.severity}}) ] = 0",
        "tcp[0] & {{source.port}} = 0",
        "tcp[0] = ( {{source.port}} )",
        "5 * {{source.port}} = 7",
        "{{source.port}} | 7 = 7",
        "{{protocol}} [0] = 1",
        "( {{protocol}} )[0] = 1",
    ] {
        let error = Template::parse(template, ALERT).expect_err(template);
        assert!(
            matches!(error, TemplateError::Calculated { .. }),
            "{template}: {error}"
        );
    }
}

#[test]
fn length_and_alphabet_are_bounded() {
    assert!(Template::parse(&" ".repeat(1024), ALERT).is_ok_and(|t| t.is_blank()));
    let error = Template::parse(&" ".repeat(1025), ALERT);
    assert_eq!(error, Err(TemplateError::TooLong { length: 1025 }));
    for (template, position) in [("tcp\n", 4), ("\t", 1), ("host \u{e9}", 6), ("\u{7f}", 1)] {
        let error = Template::parse(template, ALERT);
        assert_eq!(
            error,
            Err(TemplateError::NotPrintable { position }),
            "{template:?}"
        );
    }
}

#[test]
fn a_missing_value_or_too_long_a_filter_is_an_error_and_never_a_wider_filter() {
    let template = Template::parse("host {{source.ip}} and port {{source.port}}", ALERT).expect("parses");
    let without = Values {
        source_port: None,
        ..values()
    };
    assert_eq!(
        template.render(&without),
        Err(RenderError::Missing(Placeholder::SourcePort))
    );
    assert_eq!(
        template
            .render(&Values::default())
            .expect_err("missing")
            .to_string(),
        "the event has no value for {{source.ip}}"
    );
    let long = format!("host {{{{source.ip}}}}{}", " ".repeat(1006));
    assert_eq!(long.len(), 1024);
    let template = Template::parse(&long, ALERT).expect("parses");
    let address = |text| Values {
        source_ip: Address::parse(text).ok(),
        ..Values::default()
    };
    assert_eq!(
        template.render(&address("10.100.100.10")).expect("fits").len(),
        1024
    );
    assert_eq!(
        template.render(&address("10.100.100.100")),
        Err(RenderError::TooLong { length: 1025 })
    );
}

#[test]
fn no_error_and_no_debug_output_repeats_the_template() {
    let secret = "secretword";
    for template in [
        format!("{{{{{secret}}}}}"),
        format!("{{{secret}}}"),
        format!("{secret}{{{{source.ip}}}}"),
        format!("{secret} greater {{{{source.ip}}}}"),
        format!("{secret}\n"),
        format!("{secret} {{{{suricata.category}}}}"),
    ] {
        let error = Template::parse(&template, ALERT).expect_err(&template);
        assert!(!format!("{error} {error:?}").contains(secret), "{error}");
    }
    let parsed = Template::parse(&format!("{secret} {{{{source.ip}}}}"), ALERT).expect("parses");
    assert!(!format!("{parsed:?}").contains(secret));
}

#[test]
fn a_place_in_the_filter_is_traced_back_to_the_template() {
    let template = Template::parse("host {{source.ip}} and bogus", ALERT).expect("parses");
    let values = Event::ALL[0].specimen();
    let text = template.render(&values).expect("renders");
    let at = text.find("bogus").expect("there") + 1;
    assert_eq!(template.origin(&values, at), 24);
    assert_eq!(template.origin(&values, 6), 6);
    assert_eq!(template.origin(&values, 8), 6);
    assert_eq!(template.origin(&values, text.len()), 28);
    assert_eq!(template.origin(&values, text.len() + 1), 29);
}

fn any_values() -> impl Strategy<Value = Values> {
    let address = prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u16; 8]>().prop_map(IpAddr::from),
        // Mostly zeros, where the shortest form of IPv6 has its special cases.
        (0_usize..8, any::<u16>(), any::<u16>()).prop_map(|(at, one, last)| {
            let mut segments = [0; 8];
            segments[at] = one;
            segments[7] = last;
            IpAddr::from(segments)
        }),
        any::<[u8; 4]>().prop_map(|v4| IpAddr::from(std::net::Ipv4Addr::from(v4).to_ipv6_mapped())),
    ];
    let port = 1_u32..=65_535;
    (
        (address.clone(), address),
        (port.clone(), port),
        0..Protocol::ALL.len(),
        any::<u32>(),
        1_i64..=4,
    )
        .prop_map(
            |((source, destination), (from, to), protocol, rule_id, severity)| Values {
                source_ip: Some(Address::from(source)),
                source_port: Port::new(from).ok(),
                destination_ip: Some(Address::from(destination)),
                destination_port: Port::new(to).ok(),
                protocol: Some(Protocol::ALL[protocol]),
                rule_id: Some(rule_id),
                severity: Severity::new(severity).ok(),
            },
        )
}

/// Pieces of templates: words, and placeholders after a word that takes them.
fn any_template() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "tcp",
        "not udp",
        "(arp)",
        "ip[6:2] & 0x1fff = 0",
        "portrange 5000-6000",
        "net 10.0.0.0/8",
        "host {{source.ip}}",
        "src host {{ destination.ip }}",
        "( host {{source.ip}} or {{destination.ip}} )",
        "port {{source.port}}",
        "dst port ({{destination.port}})",
        "{{protocol}}",
        "({{ protocol}} port {{source.port}})",
        "ether proto {{suricata.ruleID}}",
        "vlan {{suricata.severity}}",
    ]);
    let operator = prop::sample::select(vec![" and ", " or ", " && ", "  ||  ", " and not "]);
    prop::collection::vec((piece, operator), 1..8).prop_map(|pairs| {
        let mut text = String::new();
        for (piece, operator) in pairs {
            if !text.is_empty() {
                text.push_str(operator);
            }
            text.push_str(piece);
        }
        text
    })
}

/// What kind of word the value of a placeholder must be.
fn kind_of(placeholder: Placeholder) -> Kind {
    match placeholder {
        Placeholder::SourceIp | Placeholder::DestinationIp => Kind::Address,
        Placeholder::Protocol => Kind::Known,
        _ => Kind::Number,
    }
}

proptest! {
    /// The heart of the matter: whatever comes off the wire, the filter has the words of the template, and one word of
    /// one kind in each slot.
    #[test]
    fn a_filter_has_the_words_of_its_template_and_one_word_in_each_slot(
        template in any_template(),
        values in any_values(),
    ) {
        let parsed = Template::parse(&template, ALERT).expect("sound");
        let filter = parsed.render(&values).expect("renders");
        let found = words::split(&filter).expect("words");
        // The template with a stand-in that no word can be, taken apart by hand.
        let mut bare = template.clone();
        for placeholder in Placeholder::ALL {
            for spelling in [format!("{{{{{}}}}}", placeholder.name()), format!("{{{{ {} }}}}", placeholder.name()),
                format!("{{{{ {}}}}}", placeholder.name())] {
                bare = bare.replace(&spelling, "~");
            }
        }
        let mut found = found.iter();
        let mut slots = parsed.placeholders();
        for (index, part) in bare.split('~').enumerate() {
            if index > 0 {
                let slot = slots.next().expect("a slot");
                let word = found.next().expect("a word");
                prop_assert_eq!(word.kind, kind_of(slot));
                let expected = values.word(slot).expect("a value");
                prop_assert_eq!(word.text, expected.as_str());
            }
            // Parts of a template need not balance their parentheses, so they are compared letter by letter.
            let letters: String = part.chars().filter(|c| *c != ' ').collect();
            let mut seen = String::new();
            while seen.len() < letters.len() {
                seen.push_str(found.next().expect("a word").text);
            }
            prop_assert_eq!(seen, letters);
        }
        prop_assert!(found.next().is_none() && slots.next().is_none());
    }

    /// Any address and port select exactly the frames that carry them.
    #[test]
    fn a_value_selects_what_carries_it_and_nothing_else(values in any_values(), other in any_values()) {
        let template = Template::parse("src host {{source.ip}} and udp src port {{source.port}}", ALERT).expect("parses");
        let filter = trawl_filter::compile(&template.render(&values).expect("renders")).expect("compiles");
        for sent in [values, other, Values { source_port: other.source_port, ..values }] {
            let frame = udp(sent);
            let same = sent.source_ip == values.source_ip && sent.source_port == values.source_port;
            prop_assert_eq!(filter.matches(&frame, frame.len() as u32), same);
        }
    }

    #[test]
    fn any_text_is_a_template_or_an_error(text in ".{0,64}|[{}a-z. ()\\[\\]]{0,64}") {
        for trigger in [ALERT, DROP] {
            if let Ok(template) = Template::parse(&text, trigger) {
                let _ = template.render(&values());
            }
        }
    }
}

/// A frame of UDP from the source address and port.
fn udp(values: Values) -> Vec<u8> {
    let mut frame = vec![0_u8; 12];
    match values.source_ip.expect("an address").get() {
        IpAddr::V4(source) => {
            frame.extend([0x08, 0x00, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
            frame.extend(source.octets());
            frame.extend([192, 0, 2, 1]);
        }
        IpAddr::V6(source) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64]);
            frame.extend(source.octets());
            frame.extend([0x20; 16]);
        }
    }
    let port: u16 = values
        .word(Placeholder::SourcePort)
        .expect("a port")
        .parse()
        .expect("a number");
    frame.extend(port.to_be_bytes());
    frame.extend([0, 53, 0, 8, 0, 0]);
    frame
}
