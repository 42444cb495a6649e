//! Resident memory of the programs, from `/proc/PID/status`: VmRSS at the moment, VmHWM its highest so far.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinHandle;
use trawl_testbed::node::{self, Process};

/// Programs that run all the time.
const STANDING: [&str; 4] = [
    "trawl-captured",
    "trawl-operator",
    "trawl-gateway",
    "trawl-sensor",
];
/// Programs of one job.
const PASSING: [&str; 2] = ["trawl-runner", "trawl-reporter"];
/// Between two looks at the programs of a job.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resident {
    pub peak_kib: u64,
    pub current_kib: u64,
}

impl Resident {
    fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse().ok()
        };
        Some(Self {
            peak_kib: field("VmHWM:")?,
            current_kib: field("VmRSS:")?,
        })
    }
}

/// Processes of this cluster only: others may run on the machine.
fn here(program: &str, needle: &str, cgroup: &str) -> Option<Process> {
    let prefix = format!(":/{cgroup}/");
    node::processes(program, needle).into_iter().find(|p| {
        fs::read_to_string(format!("/proc/{}/cgroup", p.pid)).is_ok_and(|groups| groups.contains(&prefix))
    })
}

/// The standing programs now.
pub fn standing(cgroup: &str) -> BTreeMap<&'static str, Resident> {
    let found = |program| Some((program, Resident::of(here(program, "", cgroup)?.pid)?));
    STANDING.into_iter().filter_map(found).collect()
}

/// Looks at the programs of one job until it is dropped.
pub struct Passing {
    last: Arc<Mutex<BTreeMap<&'static str, Resident>>>,
    task: JoinHandle<()>,
}

impl Passing {
    pub fn follow(uid: String, cgroup: String) -> Self {
        let last = Arc::new(Mutex::new(BTreeMap::new()));
        let sink = last.clone();
        let task = tokio::spawn(async move {
            let mut pids = BTreeMap::new();
            loop {
                for program in PASSING {
                    if !pids.contains_key(program) {
                        pids.extend(here(program, &uid, &cgroup).map(|p| (program, p.pid)));
                    }
                    let now = pids.get(program).and_then(|pid| Resident::of(*pid));
                    if let Some(now) = now {
                        sink.lock()
                            .unwrap_or_else(|broken| broken.into_inner())
                            .insert(program, now);
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
        });
        Self { last, task }
    }

    /// The last look at each.
    pub fn end(self) -> BTreeMap<&'static str, Resident> {
        self.task.abort();
        self.last
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
            .clone()
    }
}
