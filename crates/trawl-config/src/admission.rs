//! What admission needs to know of an installation: who may do what, how long evidence may be kept, and where it is
//! recorded. Everything has a default.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::installation::is_plain_path;
use crate::names::is_dns_subdomain;
use crate::store::Problem;

/// Most groups that may administer retention.
const MAX_ADMINISTRATORS: usize = 16;

/// Where the audit ledger is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Audit {
    /// Directory of the local ledger in the operator's file system.
    pub directory: String,
}

/// How long captures may be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Retention {
    /// The longest: whole hours or days, from `1h` to `30d`.
    pub ceiling: String,
    /// Groups whose members may change the retention of a CaptureJob.
    pub administrators: Vec<String>,
}

/// The event worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Worker {
    /// Its ServiceAccount: the only one that may create CaptureJobs of type Policy.
    pub service_account: String,
}

impl Worker {
    /// Its user name in an installation in `namespace`.
    pub fn username(&self, namespace: &str) -> String {
        format!("system:serviceaccount:{namespace}:{}", self.service_account)
    }
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            directory: "/var/lib/trawl/audit".into(),
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            ceiling: "30d".into(),
            administrators: vec!["trawl:retention-administrators".into()],
        }
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            service_account: "trawl-worker".into(),
        }
    }
}

impl Audit {
    pub(crate) fn problems(&self) -> Option<Problem> {
        let problem = "must be an absolute path without '..', and not the root directory";
        problem_unless(is_plain_path(&self.directory), "audit.directory", problem)
    }
}

impl Retention {
    /// The ceiling as a duration; the contract's 30 days when the text is none, which `problems` refuses.
    pub fn ceiling(&self) -> Duration {
        Duration::from_secs(hours(&self.ceiling).unwrap_or(MAX_HOURS) * 3600)
    }

    pub(crate) fn problems(&self) -> Vec<Problem> {
        let all = &self.administrators;
        let named = all.len() <= MAX_ADMINISTRATORS && all.iter().all(|g| (1..=253).contains(&g.len()));
        let ceiling = "must be whole hours or days, such as 12h or 14d, from 1h to 30d";
        let groups = "must be at most 16 names of groups, of 1 to 253 bytes each";
        [
            problem_unless(hours(&self.ceiling).is_some(), "retention.ceiling", ceiling),
            problem_unless(named, "retention.administrators", groups),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Worker {
    pub(crate) fn problems(&self) -> Option<Problem> {
        let problem = "must be the name of a ServiceAccount: up to 253 of a-z, 0-9, '-', '.'";
        problem_unless(
            is_dns_subdomain(&self.service_account),
            "worker.serviceAccount",
            problem,
        )
    }
}

/// The longest retention that the contract knows.
const MAX_HOURS: u64 = 30 * 24;

fn hours(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let plain = !number.is_empty() && number.len() <= 3 && number.bytes().all(|b| b.is_ascii_digit());
    let count: u64 = plain.then(|| number.parse().ok())??;
    let hours = match unit {
        "h" => count,
        "d" => count * 24,
        _ => return None,
    };
    (1..=MAX_HOURS).contains(&hours).then_some(hours)
}

fn problem_unless(holds: bool, field: &str, problem: &str) -> Option<Problem> {
    (!holds).then(|| Problem {
        field: field.into(),
        problem: problem.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_is_whole_hours_or_days_from_an_hour_to_thirty_days() {
        for (text, wanted) in [
            ("1h", Some(1)),
            ("30d", Some(720)),
            ("720h", Some(720)),
            ("0h", None),
            ("721h", None),
            ("31d", None),
            ("1m", None),
            ("d", None),
            ("", None),
            ("1\u{e9}", None),
            ("+1h", None),
        ] {
            assert_eq!(hours(text), wanted, "{text}");
        }
    }
}
