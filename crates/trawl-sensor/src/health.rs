//! How the interface stands, from what captured answers.

use trawl_config::pods::{SensorProblem, SensorProblemKind, SensorSource, SensorSpec};
use trawl_control::client::ClientError;
use trawl_control::{
    Attach, AttachmentStatus, ErrorCode, InterfaceSpec, NicState, NicVerdict, Source, TapIdentity,
};

/// What is true now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing was tried yet.
    Starting,
    /// Frames can arrive.
    Attached {
        mode: String,
        refusals: Vec<String>,
        /// What is wrong with the NIC, each in a few words.
        nic: Vec<String>,
    },
    Failed(SensorProblem),
}

impl Health {
    /// From an attachment as captured describes it.
    pub fn of(status: &AttachmentStatus) -> Self {
        match &status.problem {
            Some(message) => Self::failed(SensorProblemKind::Other, message),
            None => Self::Attached {
                mode: status.mode.as_str().into(),
                refusals: status.mode_refusals.clone(),
                nic: status.nic.iter().filter_map(wrong).collect(),
            },
        }
    }

    /// From a request that failed.
    pub fn of_error(error: &ClientError) -> Self {
        let kind = match error {
            ClientError::Refused(refusal) if refusal.code == ErrorCode::InterfaceUnavailable => {
                SensorProblemKind::InterfaceMissing
            }
            ClientError::Refused(_) | ClientError::Unexpected => SensorProblemKind::Other,
            _ => SensorProblemKind::Unreachable,
        };
        Self::failed(kind, &error.to_string())
    }

    /// captured runs, but knows nothing of our attachment any more.
    pub fn lost() -> Self {
        Self::failed(
            SensorProblemKind::Other,
            "captured no longer holds this tap's interface; it is attached again",
        )
    }

    fn failed(kind: SensorProblemKind, message: &str) -> Self {
        Self::Failed(SensorProblem {
            kind,
            message: trawl_api::clean(message, 400),
        })
    }

    /// Whether the pod is ready, and why not.
    pub fn readiness(&self) -> Result<(), String> {
        match self {
            Self::Attached { .. } => Ok(()),
            Self::Starting => Err("not attached yet".into()),
            Self::Failed(problem) => Err(problem.message.clone()),
        }
    }
}

/// A verdict in a few words, when it says that something is wrong. What could not be looked at is no news.
fn wrong(verdict: &NicVerdict) -> Option<String> {
    if verdict.state != NicState::Wrong {
        return None;
    }
    let found = verdict.found.as_deref().unwrap_or("not known");
    let wanted = verdict.wanted.as_ref().map(|w| format!(" (right: {w})"));
    let words = format!("{} {found}{}", verdict.item, wanted.unwrap_or_default());
    Some(trawl_api::clean(&words, 120))
}

/// The tap as captured knows it.
pub fn identity(spec: &SensorSpec) -> TapIdentity {
    TapIdentity {
        namespace: spec.tap.namespace.clone(),
        name: spec.tap.name.clone(),
        uid: spec.tap.uid.clone(),
    }
}

/// The request that opens the interface; the kind of source decides by which means.
pub fn attach_request(spec: &SensorSpec) -> Attach {
    let interface = InterfaceSpec {
        interface: spec.interface.clone(),
        promiscuous: spec.promiscuous,
    };
    let source = match spec.source {
        SensorSource::MirrorInterface => Source::MirrorInterface(interface),
        SensorSource::NodeInterface => Source::NodeInterface(interface),
    };
    Attach {
        history_bytes: None,
        tap: identity(spec),
        source,
    }
}

#[cfg(test)]
mod tests {
    use trawl_control::ErrorReply;

    use super::*;

    #[test]
    fn a_missing_interface_and_a_missing_daemon_are_told_apart() {
        let refused = ClientError::Refused(ErrorReply {
            code: ErrorCode::InterfaceUnavailable,
            field: Some("source.value.interface".into()),
            message: "interface mirror0 does not exist".into(),
        });
        let kind = |health| match health {
            Health::Failed(problem) => problem.kind,
            other => panic!("{other:?} is no failure"),
        };
        assert_eq!(
            kind(Health::of_error(&refused)),
            SensorProblemKind::InterfaceMissing
        );
        assert_eq!(
            kind(Health::of_error(&ClientError::Closed)),
            SensorProblemKind::Unreachable
        );
        assert_eq!(
            kind(Health::of_error(&ClientError::Unexpected)),
            SensorProblemKind::Other
        );
    }

    #[test]
    fn what_is_wrong_with_a_nic_is_told_and_what_is_good_or_unknown_is_not() {
        let verdict = |state| NicVerdict {
            item: "gro".into(),
            found: Some("on".into()),
            wanted: Some("off".into()),
            state,
            consequence: "It merges packets.".into(),
        };
        assert_eq!(
            wrong(&verdict(NicState::Wrong)).as_deref(),
            Some("gro on (right: off)")
        );
        for quiet in [NicState::Good, NicState::Repaired, NicState::Unknown] {
            assert_eq!(wrong(&verdict(quiet)), None);
        }
    }

    #[test]
    fn only_an_attached_sensor_is_ready_and_the_others_say_why() {
        assert!(
            Health::Attached {
                mode: "copy".into(),
                refusals: vec![],
                nic: vec![]
            }
            .readiness()
            .is_ok()
        );
        assert_eq!(Health::Starting.readiness().unwrap_err(), "not attached yet");
        assert!(
            Health::of_error(&ClientError::Closed)
                .readiness()
                .unwrap_err()
                .contains("closed")
        );
    }
}
