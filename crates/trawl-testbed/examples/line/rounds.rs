//! The jobs, one after another, while small frames arrive at a steady pace.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::Value;
use trawl_testbed::line::{Line, var};
use trawl_testbed::objects::{self, JobRequest, NAMESPACE, wait_until};
use trawl_testbed::traffic::Sender;

use crate::containers::Containers;
use crate::memory::{self, Passing, Resident};
use crate::report::Point;
use crate::watches::{self, Arrivals};

pub const ROUNDS: usize = 20;
/// Before the first one counts: images are unpacked and caches are warm from then on.
pub const WARM_UP: usize = 1;
pub const DURATION: &str = "2s";
pub const FRAME_BYTES: usize = 64;
/// Between two frames: how late the first packet can be for want of one.
pub const FRAME_GAP: Duration = Duration::from_millis(1);
const TAP: &str = "bench-mirror";
const SOON: Duration = Duration::from_secs(60);

/// One job: when it reached each point, and what memory its programs took.
pub struct Round {
    pub points: BTreeMap<Point, Timestamp>,
    pub resident: BTreeMap<&'static str, Resident>,
    pub packets: u64,
    pub mode: String,
    pub clock: String,
}

pub struct Measured {
    pub rounds: Vec<Round>,
    /// Before the first job, and after the last.
    pub idle: BTreeMap<&'static str, Resident>,
    pub worked: BTreeMap<&'static str, Resident>,
    /// Mean time between two frames, in seconds.
    pub frame_interval: f64,
}

struct World<'a> {
    line: &'a Line,
    arrivals: Arrivals,
    containers: Containers,
    cgroup: String,
    store: PathBuf,
}

pub async fn run(line: &Line) -> Result<Measured> {
    let taps = objects::taps(&line.client);
    objects::create_mirror_tap(&line.client, TAP, &line.node, &line.mirror_iface).await?;
    let ready = |tap: &trawl_api::NetworkTap| {
        tap.status
            .as_ref()
            .is_some_and(|s| s.ready_targets.is_some_and(|n| n > 0))
    };
    wait_until("tap reports", SOON, async || Ok(taps.get(TAP).await?), ready).await?;
    let (arrivals, _watches) = watches::watch(&line.client);
    let world = World {
        line,
        arrivals,
        containers: Containers::follow(&var("CONTAINERD_SOCKET")?)?,
        cgroup: var("BENCH_CGROUP")?,
        store: var("TRAWL_STORE_ROOT")?.into(),
    };
    let traffic = Traffic::start(&line.mirror_peer)?;
    let idle = memory::standing(&world.cgroup);
    let mut rounds = Vec::new();
    for n in 0..WARM_UP + ROUNDS {
        let round = world.round(n).await?;
        let of = |point| {
            round
                .points
                .get(&point)
                .map(|t| t.to_string())
                .unwrap_or_default()
        };
        eprintln!(
            "job {n:>2}{}: requested {}, first packet {}, downloadable {}",
            if n < WARM_UP { " (warm-up)" } else { "" },
            of(Point::Requested),
            of(Point::FirstPacket),
            of(Point::Downloadable)
        );
        if n >= WARM_UP {
            rounds.push(round);
        }
    }
    Ok(Measured {
        rounds,
        idle,
        worked: memory::standing(&world.cgroup),
        frame_interval: traffic.end()?,
    })
}

impl World<'_> {
    async fn round(&self, n: usize) -> Result<Round> {
        // The kubelet looks around once a second; jobs must not all meet it at the same moment of its second.
        let phase = (n * 618) % 1000;
        tokio::time::sleep(Duration::from_millis(500 + phase as u64)).await;
        let request = JobRequest {
            tap: TAP,
            node: &self.line.node,
            filter: None,
            duration: DURATION,
            max_size: "10Mi",
            snaplen: 0,
            pre_trigger: None,
        };
        let requested = Timestamp::now();
        let job = objects::create_job(&self.line.client, &request).await?;
        let accepted = Timestamp::now();
        let uid = job.uid().context("a job without UID")?;
        let passing = Passing::follow(uid.clone(), self.cgroup.clone());
        let end = Instant::now() + SOON;
        // The sidecar ends after the job is downloadable; the next job shall not share the machine with it.
        let (seen, runner, reporter) = loop {
            let seen = self.arrivals.of(&uid);
            let life = |image| self.containers.life(image, requested).unwrap_or_default();
            let (runner, reporter) = (life("/runner"), life("/reporter"));
            if seen.contains_key(&Point::Downloadable) && runner.exited.is_some() && reporter.exited.is_some()
            {
                break (seen, runner, reporter);
            }
            if Instant::now() > end {
                let now = objects::jobs(&self.line.client).get(&job.name_any()).await?;
                bail!(
                    "{} not downloadable within {SOON:?}: {:?}",
                    job.name_any(),
                    now.status
                );
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let resident = passing.end();
        let manifest = self.manifest(&uid)?;
        let time = |field: &str| manifest[field].as_str().and_then(|t| t.parse().ok());
        let sandbox = self.containers.life("/pause", requested).unwrap_or_default();
        let mut points = seen;
        points.extend([(Point::Requested, requested), (Point::Accepted, accepted)]);
        let found = [
            (Point::SandboxCreated, sandbox.created),
            (Point::SandboxStarted, sandbox.started),
            (Point::ReporterStarted, reporter.started),
            (Point::RunnerStarted, runner.started),
            (Point::CaptureStarted, time("startedAt")),
            (Point::FirstPacket, time("firstPacket")),
            (Point::CaptureEnded, time("endedAt")),
            (Point::RunnerExited, runner.exited),
            (Point::ReporterExited, reporter.exited),
        ];
        points.extend(found.into_iter().filter_map(|(point, at)| Some((point, at?))));
        Ok(Round {
            points,
            resident,
            packets: manifest["packetCount"].as_u64().unwrap_or(0),
            mode: manifest["mode"].as_str().unwrap_or_default().into(),
            clock: manifest["clockSource"].as_str().unwrap_or_default().into(),
        })
    }

    /// The manifest as the store's server keeps it on this machine's disk.
    fn manifest(&self, uid: &str) -> Result<Value> {
        let path = self
            .store
            .join(format!("captures/{NAMESPACE}/{uid}/manifest.json"));
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// Small frames into the far end of the mirror link until it is ended.
struct Traffic {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Result<f64>>,
}

impl Traffic {
    fn start(interface: &str) -> Result<Self> {
        let mut sender = Sender::open(interface)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (begun, mut sent) = (Instant::now(), 0);
            while !stopped.load(Ordering::Relaxed) {
                sender.send_numbered(sent..sent + 1, 7001, FRAME_BYTES, FRAME_GAP)?;
                sent += 1;
            }
            Ok(begun.elapsed().as_secs_f64() / sent.max(1) as f64)
        });
        Ok(Self { stop, thread })
    }

    /// Mean time between two frames, in seconds.
    fn end(self) -> Result<f64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow::anyhow!("the sender stopped unexpectedly"))?
    }
}
