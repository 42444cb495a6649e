//! The closed list of placeholders.

use std::fmt;

use trawl_api::TriggerType;

/// What a template may leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Placeholder {
    /// `source.ip`
    SourceIp,
    /// `source.port`
    SourcePort,
    /// `destination.ip`
    DestinationIp,
    /// `destination.port`
    DestinationPort,
    /// `protocol`
    Protocol,
    /// `suricata.ruleID`
    RuleId,
    /// `suricata.severity`
    Severity,
    /// `suricata.category`
    Category,
    /// `hubble.dropReason`
    DropReason,
    /// `hubble.sourceNamespace`
    SourceNamespace,
    /// `hubble.destinationNamespace`
    DestinationNamespace,
}

impl Placeholder {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 11] = [
        Self::SourceIp,
        Self::SourcePort,
        Self::DestinationIp,
        Self::DestinationPort,
        Self::Protocol,
        Self::RuleId,
        Self::Severity,
        Self::Category,
        Self::DropReason,
        Self::SourceNamespace,
        Self::DestinationNamespace,
    ];

    /// The name between the braces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SourceIp => "source.ip",
            Self::SourcePort => "source.port",
            Self::DestinationIp => "destination.ip",
            Self::DestinationPort => "destination.port",
            Self::Protocol => "protocol",
            Self::RuleId => "suricata.ruleID",
            Self::Severity => "suricata.severity",
            Self::Category => "suricata.category",
            Self::DropReason => "hubble.dropReason",
            Self::SourceNamespace => "hubble.sourceNamespace",
            Self::DestinationNamespace => "hubble.destinationNamespace",
        }
    }

    /// The placeholder of that name, exactly as it is written.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }

    /// The only trigger whose events have it; `None` when the events of every trigger do.
    #[must_use]
    pub const fn only_of(self) -> Option<TriggerType> {
        match self {
            Self::RuleId | Self::Severity | Self::Category => Some(TriggerType::SuricataAlert),
            Self::DropReason | Self::SourceNamespace | Self::DestinationNamespace => {
                Some(TriggerType::HubbleDrop)
            }
            _ => None,
        }
    }

    /// Whether it stands for free text of another system, which is never a word of a filter.
    #[must_use]
    pub const fn is_free_text(self) -> bool {
        matches!(
            self,
            Self::Category | Self::DropReason | Self::SourceNamespace | Self::DestinationNamespace
        )
    }

    /// The field of the policy that selects events by this text.
    pub(crate) const fn selected_by(self) -> &'static str {
        match self {
            Self::Category => "spec.trigger.suricataAlert.categories",
            Self::DropReason => "spec.trigger.hubbleDrop.reasons",
            Self::SourceNamespace => "spec.trigger.hubbleDrop.sourceNamespaces",
            _ => "spec.trigger",
        }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{{}}}}}", self.name())
    }
}
