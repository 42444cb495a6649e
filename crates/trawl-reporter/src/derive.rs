//! From progress records to the status fields that the reporter owns. Pure: the same records always give the same
//! status, so that a restarted reporter has nothing new to say.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;
use trawl_api::conditions::{ConditionType, Observed, Reason, Truth, merge};
use trawl_api::{MAX_MESSAGE_BYTES, RunnerResult, clean, sanitize};
use trawl_artifact::outcome::FailureReason;
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
        outcome: result.outcome,
        reason: result.reason,
        stop_reason: result.stop_reason,
        packet_count: count(result.packet_count),
        size_bytes: count(result.size_bytes),
        sha256: result.sha256.clone(),
        exit_code: result.exit_code,
        // The runner sits beside hostile traffic: what it calls sanitized is sanitized again.
        message: result
            .message
            .as_deref()
            .map(|text| clean(&sanitize(text), MAX_MESSAGE_BYTES)),
    }
}

#[cfg(test)]
mod tests {
    use trawl_artifact::outcome::{Outcome, StopReason};
    use trawl_artifact::progress::CaptureEnded;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    fn records(bodies: Vec<ProgressBody>) -> Vec<ProgressRecord> {
        let record = |(n, body): (usize, ProgressBody)| ProgressRecord {
            schema: trawl_artifact::progress::PROGRESS_SCHEMA.into(),
            job_uid: "uid".into(),
            sequence: body.slot().0,
            recorded_at: at(n as i64),
            body,
        };
        bodies.into_iter().enumerate().map(record).collect()
    }

    fn filter(accepted: bool, rejects_all: bool) -> ProgressBody {
        ProgressBody::Filter(FilterVerdict {
            accepted,
            rejects_all,
            message: (!accepted).then(|| "why".into()),
        })
    }

    fn started() -> ProgressBody {
        let (interface, mode) = ("mirror0".into(), "copy".into());
        ProgressBody::Started(CaptureStarted {
            interface,
            mode,
            started_at: at(100),
        })
    }

    fn ended() -> ProgressBody {
        ProgressBody::Ended(CaptureEnded {
            stop_reason: StopReason::Size,
            ended_at: at(200),
            packet_count: 5,
            size_bytes: 500,
            sha256: "0".repeat(64),
        })
    }

    fn failed(reason: FailureReason) -> ProgressBody {
        ProgressBody::Result(CaptureResult {
            outcome: Outcome::Failed,
            reason: Some(reason),
            stop_reason: None,
            packet_count: None,
            size_bytes: None,
            sha256: None,
            exit_code: reason.exit_code(),
            message: Some("what happened".into()),
        })
    }

    fn conditions(status: &OwnedStatus) -> Vec<(&str, &str, &str)> {
        status
            .conditions
            .iter()
            .map(|c| (c.type_.as_str(), c.status.as_str(), c.reason.as_str()))
            .collect()
    }

    #[test]
    fn each_set_of_records_has_one_set_of_conditions() {
        let valid = ("FilterValid", "True", "FilterValid");
        let under_way = ("CaptureStarted", "True", "CaptureStarted");
        let table = [
            (vec![], vec![]),
            (vec![filter(true, false)], vec![valid]),
            (
                vec![filter(false, false)],
                vec![("FilterValid", "False", "FilterInvalid")],
            ),
            (
                vec![filter(false, true)],
                vec![("FilterValid", "False", "FilterRejectsAll")],
            ),
            (vec![filter(true, false), started()], vec![valid, under_way]),
            (
                vec![filter(true, false), started(), ended()],
                vec![valid, under_way],
            ),
            (
                vec![filter(false, true), failed(FailureReason::InvalidFilter)],
                vec![
                    ("FilterValid", "False", "FilterRejectsAll"),
                    ("CaptureStarted", "False", "FilterInvalid"),
                ],
            ),
            (
                vec![failed(FailureReason::InvalidFilter)],
                vec![
                    ("FilterValid", "False", "FilterInvalid"),
                    ("CaptureStarted", "False", "FilterInvalid"),
                ],
            ),
            (
                vec![failed(FailureReason::InterfaceUnavailable)],
                vec![("CaptureStarted", "False", "InterfaceMissing")],
            ),
            (
                vec![failed(FailureReason::UploadFailed)],
                vec![("CaptureStarted", "False", "CaptureFailed")],
            ),
            (
                vec![
                    filter(true, false),
                    started(),
                    failed(FailureReason::CaptureFailed),
                ],
                vec![valid, under_way],
            ),
        ];
        for (bodies, expected) in table {
            let status = derive(&records(bodies.clone()), 3);
            assert_eq!(conditions(&status), expected, "{bodies:?}");
            assert!(status.conditions.iter().all(|c| c.observed_generation == Some(3)));
        }
    }

    #[test]
    fn times_come_from_the_records_and_not_from_a_clock() {
        let status = derive(&records(vec![filter(true, false), started(), ended()]), 1);
        assert_eq!(status.started_at, Some(Time(at(100))));
        assert_eq!(status.capture_ended_at, Some(Time(at(200))));
        assert_eq!(status.conditions[0].last_transition_time, Time(at(0)));
        assert_eq!(status.conditions[1].last_transition_time, Time(at(1)));
        assert_eq!(
            status,
            derive(&records(vec![filter(true, false), started(), ended()]), 1)
        );
    }

    #[test]
    fn no_records_are_no_status_at_all() {
        assert!(derive(&[], 1).is_empty());
        assert_eq!(
            serde_json::to_value(derive(&[], 1)).unwrap(),
            serde_json::json!({})
        );
    }

    #[test]
    fn a_message_is_not_believed_to_be_sanitized_by_whoever_wrote_the_record() {
        let mut body = failed(FailureReason::UploadFailed);
        if let ProgressBody::Result(result) = &mut body {
            result.message = Some("PUT https://s/k?X-Amz-Signature=feedbeef\u{1b}[2J failed".into());
        }
        let message = derive(&records(vec![body]), 1)
            .runner_result
            .unwrap()
            .message
            .unwrap();
        assert!(
            !message.contains("feedbeef") && !message.contains('\u{1b}'),
            "{message}"
        );
    }

    #[test]
    fn a_count_that_was_not_measured_stays_absent() {
        let status = derive(&records(vec![failed(FailureReason::InternalError)]), 1);
        let json = serde_json::to_value(status.runner_result).unwrap();
        let expected = serde_json::json!({
            "outcome": "Failed", "reason": "InternalError", "exitCode": 16, "message": "what happened",
        });
        assert_eq!(json, expected);
    }
}
