//! What containerd did, by its own event stream, whose times have nanoseconds.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

#[derive(Clone, Debug)]
struct Event {
    at: Timestamp,
    topic: String,
    body: Value,
}

/// A running `ctr events`; it ends with this value.
pub struct Containers {
    events: Arc<Mutex<Vec<Event>>>,
    _child: Child,
}

/// Start and end of one container.
#[derive(Clone, Copy, Debug, Default)]
pub struct Life {
    pub created: Option<Timestamp>,
    pub started: Option<Timestamp>,
    pub exited: Option<Timestamp>,
}

impl Containers {
    pub fn follow(socket: &str) -> Result<Self> {
        let mut child = Command::new("ctr")
            .args(["--address", socket, "--namespace", "k8s.io", "events"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start ctr: install containerd")?;
        let output = child.stdout.take().context("ctr has no output")?;
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = events.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(event) = parse(&line) {
                    sink.lock()
                        .unwrap_or_else(|broken| broken.into_inner())
                        .push(event);
                }
            }
        });
        Ok(Self {
            events,
            _child: child,
        })
    }

    /// The container whose image has `image` in its name, created since `since`. `None` unless there is exactly one.
    pub fn life(&self, image: &str, since: Timestamp) -> Option<Life> {
        let events = self.events.lock().unwrap_or_else(|broken| broken.into_inner());
        let mut created = events.iter().filter(|e| {
            e.topic == "/containers/create"
                && e.at >= since
                && e.body["image"].as_str().is_some_and(|name| name.contains(image))
        });
        let (first, None) = (created.next()?, created.next()) else {
            return None;
        };
        let id = first.body["id"].as_str()?;
        let task = |topic: &str| {
            events
                .iter()
                .find(|e| e.topic == topic && e.body["container_id"].as_str() == Some(id))
        };
        let exit = task("/tasks/exit").and_then(|e| e.body["exited_at"].as_str()?.parse().ok());
        Some(Life {
            created: Some(first.at),
            started: task("/tasks/start").map(|e| e.at),
            exited: exit,
        })
    }
}

/// A line such as `2026-01-31 08:47:14.445878105 +0000 UTC k8s.io /tasks/start {"container_id":"...","pid":643}`.
fn parse(line: &str) -> Option<Event> {
    let (head, body) = line.split_once(" {")?;
    let mut words = head.split(' ');
    let (date, time, offset) = (words.next()?, words.next()?, words.next()?);
    let topic = words.next_back()?;
    Some(Event {
        at: format!("{date}T{time}{offset}").parse().ok()?,
        topic: topic.into(),
        body: serde_json::from_str(&format!("{{{body}")).ok()?,
    })
}
