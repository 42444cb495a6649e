//! From progress records to the status fields that the reporter owns. Pure: the same records always give the same
//! status, so that a restarted reporter has nothing new to say.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;
use trawl_api::RunnerResult;
use trawl_api::conditions::{ConditionType, Observed, Reason, Truth, merge};
use trawl_artifact::outcome::{FailureReason, Outcome};
use trawl_artifact::progress::{CaptureResult, CaptureStarted, FilterVerdict, ProgressBody, ProgressRecord};

/// Exactly the fields that field owner `trawl-capture-reporter` applies.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnedStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_interface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture_ended_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_result: Option<RunnerResult>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

impl OwnedStatus {
    /// Whether there is nothing to report yet.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// What `records` say, for a job at `generation`.
pub fn derive(records: &[ProgressRecord], generation: i64) -> OwnedStatus {
    let mut status = OwnedStatus::default();
    let (mut filter, mut started) = (None, None);
    for record in records {
        let at = record.recorded_at;
        match &record.body {
            ProgressBody::Filter(verdict) => filter = Some((filter_valid(verdict), at)),
            ProgressBody::Started(body) => {
                status.resolved_interface = Some(body.interface.clone());
                status.started_at = Some(Time(body.started_at));
                started = Some((capture_started(body), at));
            }
            ProgressBody::Ended(body) => status.capture_ended_at = Some(Time(body.ended_at)),
            ProgressBody::Result(result) => {
                status.runner_result = Some(runner_result(result));
                if started.is_none() {
                    started = not_started(result).map(|observed| (observed, at));
                }
                if filter.is_none() && result.reason == Some(FailureReason::InvalidFilter) {
                    let message = result.message.clone().unwrap_or_default();
                    let observed = Observed::new(
                        ConditionType::FilterValid,
                        Truth::False,
                        Reason::FilterInvalid,
                        message,
                    );
                    filter = Some((observed, at));
                }
            }
        }
    }
    let observed = filter.into_iter().chain(started);
    status.conditions = observed
        .map(|(observed, at)| condition(&observed, generation, at))
        .collect();
    status
}

fn condition(observed: &Observed, generation: i64, at: Timestamp) -> Condition {
    merge(&[], observed, generation, at)
}

fn filter_valid(verdict: &FilterVerdict) -> Observed {
    let message = || verdict.message.clone().unwrap_or_default();
    let (truth, reason, message) = match (verdict.accepted, verdict.rejects_all) {
        (true, _) => (
            Truth::True,
            Reason::FilterValid,
            "The filter was compiled by captured.".into(),
        ),
        (false, true) => (Truth::False, Reason::FilterRejectsAll, message()),
        (false, false) => (Truth::False, Reason::FilterInvalid, message()),
    };
    Observed::new(ConditionType::FilterValid, truth, reason, message)
}

fn capture_started(body: &CaptureStarted) -> Observed {
    let message = format!("Capturing on {} ({}).", body.interface, body.mode);
    Observed::new(
        ConditionType::CaptureStarted,
        Truth::True,
        Reason::CaptureStarted,
        message,
    )
}

/// A result without a start: the capture will never begin.
fn not_started(result: &CaptureResult) -> Option<Observed> {
    let reason = match result.reason? {
        FailureReason::InvalidFilter => Reason::FilterInvalid,
        FailureReason::InterfaceUnavailable => Reason::InterfaceMissing,
        _ => Reason::CaptureFailed,
    };
    let message = result.message.clone().unwrap_or_default();
    Some(Observed::new(
        ConditionType::CaptureStarted,
        Truth::False,
        reason,
        message,
    ))
}

fn runner_result(result: &CaptureResult) -> RunnerResult {
    let count = |value: Option<u64>| value.and_then(|v| i64::try_from(v).ok());
    RunnerResult {
        outcome: match result.outcome {
            Outcome::Succeeded => Outcome::Succeeded,
            Outcome::Failed => Outcome::Failed,
        },
        reason: result.reason,
        stop_reason: result.stop_reason,
        packet_count: count(result.packet_count),
        size_bytes: count(result.size_bytes),
        sha256: result.sha256.clone(),
        exit_code: result.exit_code,
        message: result.message.clone(),
    }
}
