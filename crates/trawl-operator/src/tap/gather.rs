//! Everything that a decision about one NetworkTap rests on, read live from the API server.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{ListParams, PartialObjectMeta};
use kube::core::{Selector, SelectorExt};
use trawl_api::names::TAP_UID_LABEL;
use trawl_api::{InterfaceSource, NetworkTap, NetworkTapStatus, TapType};
use trawl_config::pods::{self, SensorProblemKind, tap_objects_name};
use trawl_lifecycle::claim::Claim;
use trawl_lifecycle::tap::{
    NodeMatch, PodFact, Problem, ProblemKind, Rival, SensorNote, TapFacts, WorkloadFact,
};

use crate::context::Context;
use crate::error::{Error, Step};
use crate::owned::is_owned;
use crate::pod::{SENSOR_KEY, trouble};

/// What was read for one NetworkTap.
pub(super) struct Seen {
    pub tap: NetworkTap,
    pub name: String,
    pub uid: String,
    pub status: NetworkTapStatus,
    nodes: Vec<PartialObjectMeta<Node>>,
    taps: Vec<NetworkTap>,
    pub workload: WorkloadFact,
    pods: Vec<Pod>,
    notes: Option<ConfigMap>,
}

/// Reads it; `None` when the tap is gone or another of the same name took its place.
pub(super) async fn gather(ctx: &Context, name: &str, uid: &str) -> Result<Option<Seen>, Error> {
    let api = ctx.api::<NetworkTap>();
    let Some(tap) = api.get_opt(name).await.step("read the NetworkTap")? else {
        return Ok(None);
    };
    if tap.uid().as_deref() != Some(uid) {
        return Ok(None);
    }
    let everything = ListParams::default();
    let selected = ListParams::default().labels(&format!("{TAP_UID_LABEL}={uid}"));
    let objects = tap_objects_name(uid);
    let nodes = kube::Api::<Node>::all(ctx.client.clone());
    let (configs, pods) = (ctx.api::<ConfigMap>(), ctx.api::<Pod>());
    let (nodes, taps, pods, notes, workload) = futures::join!(
        nodes.list_metadata(&everything),
        api.list(&everything),
        pods.list(&selected),
        configs.get_opt(&objects),
        workload(ctx, &tap, uid),
    );
    Ok(Some(Seen {
        name: name.into(),
        uid: uid.into(),
        status: tap.status.clone().unwrap_or_default(),
        nodes: nodes.step("list nodes")?.items,
        taps: taps.step("list taps")?.items,
        pods: pods.step("list the tap's pods")?.items,
        notes: notes
            .step("read the sensors' notes")?
            .filter(|c| is_owned(c, uid)),
        workload: workload?,
        tap,
    }))
}

async fn workload(ctx: &Context, tap: &NetworkTap, uid: &str) -> Result<WorkloadFact, Error> {
    let name = tap_objects_name(uid);
    let found = match tap.spec.type_ {
        TapType::MirrorInterface => {
            let found = ctx
                .api::<Deployment>()
                .get_opt(&name)
                .await
                .step("read the Deployment")?;
            found.map(|d| {
                let status = d.status.clone().unwrap_or_default();
                (is_owned(&d, uid), 1, status.ready_replicas.unwrap_or(0))
            })
        }
        TapType::NodeInterface => {
            let found = ctx
                .api::<DaemonSet>()
                .get_opt(&name)
                .await
                .step("read the DaemonSet")?;
            found.map(|d| {
                let status = d.status.clone().unwrap_or_default();
                (
                    is_owned(&d, uid),
                    status.desired_number_scheduled,
                    status.number_ready,
                )
            })
        }
    };
    Ok(match found {
        None => WorkloadFact::Absent,
        Some((false, ..)) => WorkloadFact::Foreign,
        Some((true, desired, ready)) => WorkloadFact::Exists { desired, ready },
    })
}

impl Seen {
    /// The facts for a decision at `now`.
    pub fn facts(&self, ctx: &Context, now: Timestamp) -> TapFacts<'_> {
        let meta = &self.tap.metadata;
        let nodes = self
            .tap
            .spec
            .source()
            .map(|s| self.matching(s))
            .unwrap_or_default();
        let pods = self.pods(&nodes);
        TapFacts {
            generation: meta.generation.unwrap_or(0),
            claim: claim(&self.tap, now),
            namespace_ok: meta.namespace.as_deref() == Some(&ctx.config.namespace),
            deleting: meta.deletion_timestamp.is_some(),
            spec: &self.tap.spec,
            status: &self.status,
            nodes,
            rivals: self.rivals(now),
            workload: self.workload.clone(),
            pods,
            notes: self.notes(),
            now,
            limits: ctx.limits,
        }
    }

    /// The nodes that a selector chooses. One that cannot be read chooses none.
    fn matching(&self, source: &InterfaceSource) -> Vec<NodeMatch> {
        let Ok(selector) = Selector::try_from(source.node_selector.clone()) else {
            return Vec::new();
        };
        self.nodes
            .iter()
            .filter(|n| n.metadata.deletion_timestamp.is_none() && selector.matches(n.labels()))
            .map(|n| NodeMatch {
                name: n.name_any(),
                sensor: n.labels().get(SENSOR_KEY).is_some_and(|v| v == "true"),
            })
            .collect()
    }

    fn rivals(&self, now: Timestamp) -> Vec<Rival> {
        self.taps
            .iter()
            .filter(|t| t.uid().as_deref() != Some(&self.uid))
            .filter(|t| t.spec.type_ == TapType::MirrorInterface && t.metadata.deletion_timestamp.is_none())
            .filter_map(|t| {
                let source = t.spec.source()?;
                let mut nodes: Vec<String> = self
                    .matching(source)
                    .into_iter()
                    .filter(|n| n.sensor)
                    .map(|n| n.name)
                    .collect();
                nodes.sort();
                Some(Rival {
                    claim: claim(t, now),
                    interface: source.interface.clone(),
                    nodes,
                })
            })
            .collect()
    }

    /// The newest pod of each node; a mirror's pod that is not scheduled yet counts for its one node.
    fn pods(&self, nodes: &[NodeMatch]) -> BTreeMap<String, PodFact> {
        let mut pods: Vec<&Pod> = self
            .pods
            .iter()
            .filter(|p| p.metadata.deletion_timestamp.is_none())
            .collect();
        pods.sort_by_key(|p| p.creation_timestamp());
        let only = match nodes {
            [node] => Some(node.name.as_str()),
            _ => None,
        };
        pods.into_iter()
            .filter_map(|pod| {
                let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).or(only)?;
                let conditions = pod
                    .status
                    .as_ref()
                    .and_then(|s| s.conditions.as_deref())
                    .unwrap_or_default();
                let ready = conditions
                    .iter()
                    .any(|c| c.type_ == "Ready" && c.status == "True");
                Some((
                    node.to_owned(),
                    PodFact {
                        name: pod.name_any(),
                        ready,
                        trouble: trouble(pod),
                    },
                ))
            })
            .collect()
    }

    /// What the sensors wrote. A note that cannot be read says nothing.
    fn notes(&self) -> BTreeMap<String, SensorNote> {
        let data = self.notes.as_ref().and_then(|c| c.data.as_ref());
        data.into_iter()
            .flatten()
            .filter_map(|(node, text)| {
                let note: pods::SensorNote = serde_json::from_str(text).ok()?;
                let problem = note.problem.map(|p| Problem {
                    kind: match p.kind {
                        SensorProblemKind::InterfaceMissing => ProblemKind::InterfaceMissing,
                        SensorProblemKind::Unreachable => ProblemKind::Unreachable,
                        SensorProblemKind::Other => ProblemKind::Other,
                    },
                    message: p.message,
                });
                Some((
                    node.clone(),
                    SensorNote {
                        pod: note.pod,
                        mode: note.mode,
                        refusals: note.refusals,
                        nic: note.nic,
                        problem,
                    },
                ))
            })
            .collect()
    }
}

fn claim(tap: &NetworkTap, now: Timestamp) -> Claim {
    Claim {
        name: tap.name_any(),
        uid: tap.uid().unwrap_or_default(),
        created_at: tap.metadata.creation_timestamp.as_ref().map_or(now, |t| t.0),
    }
}
