//! Specimen events: what a template becomes, tried out before a policy is accepted.

use std::{fmt, net::IpAddr};

use trawl_filter::{FilterError, Options, Warning};

use crate::{Address, Port, Protocol, RenderError, Severity, Template, Values};

/// Version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Of its addresses.
    pub family: Family,
    /// Of its packets.
    pub protocol: Protocol,
}

impl Event {
    /// Every kind that occurs: ICMP has one protocol per family.
    pub const ALL: [Self; 8] = [
        Self::of(Family::V4, Protocol::Tcp),
        Self::of(Family::V4, Protocol::Udp),
        Self::of(Family::V4, Protocol::Icmp),
        Self::of(Family::V4, Protocol::Sctp),
        Self::of(Family::V6, Protocol::Tcp),
        Self::of(Family::V6, Protocol::Udp),
        Self::of(Family::V6, Protocol::Icmp6),
        Self::of(Family::V6, Protocol::Sctp),
    ];

    const fn of(family: Family, protocol: Protocol) -> Self {
        Self { family, protocol }
    }

    /// What such an event may say, in the longest words, so that what fits here fits always.
    #[must_use]
    pub fn specimen(self) -> Values {
        let (source, destination): (IpAddr, IpAddr) = match self.family {
            Family::V4 => ([192, 168, 100, 101].into(), [192, 168, 200, 202].into()),
            Family::V6 => (
                [0xfd12, 0x3456, 0x789a, 0xbcde, 0xf012, 0x3456, 0x789a, 0xbcd1].into(),
                [0xfd12, 0x3456, 0x789a, 0xbcde, 0xf012, 0x3456, 0x789a, 0xbcd2].into(),
            ),
        };
        let port = |number| {
            self.protocol
                .has_ports()
                .then(|| Port::new(number).ok())
                .flatten()
        };
        Values {
            source_ip: Some(Address::from(source)),
            source_port: port(49_152),
            destination_ip: Some(Address::from(destination)),
            destination_port: port(65_535),
            protocol: Some(self.protocol),
            rule_id: Some(u32::MAX),
            severity: Severity::new(4).ok(),
        }
    }
}

/// What the specimens showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Events that give no filter: their captures will fail.
    pub failing: Vec<Event>,
    /// What is surprising about the filters, each once.
    pub warnings: Vec<Warning>,
}

/// Why a template is refused after it was tried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecimenError {
    /// No specimen gives a filter. Positions are those of the template.
    #[error("does not become a filter with the values of any event: {0}")]
    Nothing(FilterError),
    /// Even the shortest rendering is too long.
    #[error("does not become a filter with the values of any event: {0}")]
    Unrendered(RenderError),
    /// The compiler did not keep up, so nothing is known.
    #[error("could not be tried out: {0}")]
    Unknown(FilterError),
}

/// Renders and compiles the template for every kind of event. Blocks while it compiles.
///
/// # Errors
/// No event at all gives a filter, or the compiler failed; see [`SpecimenError`].
pub fn check(template: &Template, options: &Options) -> Result<Checked, SpecimenError> {
    let mut checked = Checked::default();
    let mut known: Vec<(String, bool)> = Vec::new();
    let mut first = None;
    for event in Event::ALL {
        let values = event.specimen();
        let text = match template.render(&values) {
            Ok(text) => text,
            Err(error) => {
                first.get_or_insert(SpecimenError::Unrendered(error));
                checked.failing.push(event);
                continue;
            }
        };
        let compiles = match known.iter().find(|(other, _)| *other == text) {
            Some((_, compiles)) => *compiles,
            None => match trawl_filter::compile_with(&text, options) {
                Ok(compiled) => {
                    let new = compiled.warnings.into_iter();
                    let new: Vec<_> = new
                        .filter(|warning| !checked.warnings.contains(warning))
                        .collect();
                    checked.warnings.extend(new);
                    true
                }
                Err(error @ (FilterError::TooSlow | FilterError::Internal(_))) => {
                    return Err(SpecimenError::Unknown(error));
                }
                Err(error) => {
                    first.get_or_insert_with(|| SpecimenError::Nothing(placed(error, template, &values)));
                    false
                }
            },
        };
        if !compiles {
            checked.failing.push(event);
        }
        known.push((text, compiles));
    }
    match first {
        Some(error) if checked.failing.len() == Event::ALL.len() => Err(error),
        _ => Ok(checked),
    }
}

/// The error with its position in the template instead of the rendered text.
fn placed(error: FilterError, template: &Template, values: &Values) -> FilterError {
    match error {
        FilterError::Refused { position, advice } => FilterError::Refused {
            position: template.origin(values, position),
            advice,
        },
        other => other,
    }
}

/// Names a set of events in as few words as possible, for example `IPv6; ICMP over IPv4`.
#[must_use]
pub fn describe(events: &[Event]) -> String {
    let mut words = Vec::new();
    let mut left: Vec<Event> = events.to_vec();
    for family in [Family::V4, Family::V6] {
        let mut all = Event::ALL.iter().filter(|e| e.family == family);
        if all.all(|e| left.contains(e)) {
            words.push(family.to_string());
            left.retain(|e| e.family != family);
        }
    }
    for protocol in Protocol::ALL {
        let name = protocol.word().to_uppercase();
        let name = if protocol == Protocol::Icmp6 {
            "ICMPv6"
        } else {
            &name
        };
        let of = |e: &&Event| e.protocol == protocol;
        let here: Vec<&Event> = left.iter().filter(of).collect();
        match here.as_slice() {
            [] => {}
            [one] if Event::ALL.iter().filter(of).count() > 1 => {
                words.push(format!("{name} over {}", one.family))
            }
            _ => words.push(name.to_owned()),
        }
    }
    words.join("; ")
}

#[cfg(test)]
#[path = "specimen_tests.rs"]
mod tests;
