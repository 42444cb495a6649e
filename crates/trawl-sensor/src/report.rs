//! Writing to the API server: our own entry of the tap's `targets[]`, and our note beside it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, Client};
use trawl_api::names::sensor_field_manager;
use trawl_api::{AnalyzerName, AnalyzerStatus, Duplication, LocalRef, NetworkTap, TargetStatus};
use trawl_config::pods::{Analyzer, SensorNote, SensorSpec, tap_objects_name};
use trawl_kube::apply::{apply, apply_status};

use crate::health::Health;
use crate::tally::Totals;

/// Why the analyzers of the tap are not healthy: nothing runs them.
const NO_ANALYZERS: &str = "this build of Trawl does not run analyzers yet";

/// Who reports, and where to.
#[derive(Clone)]
pub struct Reporter {
    client: Client,
    spec: SensorSpec,
    node: String,
    pod: String,
    instance: String,
}

impl Reporter {
    /// `started` makes two runs of one pod's container distinguishable.
    pub fn new(client: Client, spec: SensorSpec, node: String, pod: String, started: Timestamp) -> Self {
        let instance = format!("{pod}/{}", started.as_millisecond());
        Self {
            client,
            spec,
            node,
            pod,
            instance,
        }
    }

    fn taps(&self) -> Api<NetworkTap> {
        Api::namespaced(self.client.clone(), &self.spec.tap.namespace)
    }

    /// What the status already says of this node.
    ///
    /// # Errors
    /// Whatever keeps the API server from saying so.
    pub async fn earlier(&self) -> kube::Result<Option<TargetStatus>> {
        let tap = self.taps().get(&self.spec.tap.name).await?;
        if tap.metadata.uid.as_deref() != Some(&self.spec.tap.uid) {
            return Ok(None);
        }
        let targets = tap.status.map(|s| s.targets).unwrap_or_default();
        Ok(targets.into_iter().find(|t| t.node_name == self.node))
    }

    /// The entry of this node.
    pub fn target(&self, totals: Totals, last_packet: Option<Timestamp>, now: Timestamp) -> TargetStatus {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        TargetStatus {
            node_name: self.node.clone(),
            interface: self.spec.interface.clone(),
            pod_ref: Some(LocalRef::new(&self.pod)),
            reporter_instance: self.instance.clone(),
            heartbeat_time: Time(now),
            last_packet_time: last_packet.map(Time),
            packets_observed: number(totals.packets),
            kernel_drops: totals.drops.map(number),
            bytes_observed: totals.bytes.map(number),
            duplication: Duplication::Unknown,
            rejected_records: 0,
            analyzers: self.spec.analyzers.iter().copied().map(absent_analyzer).collect(),
        }
    }

    /// Writes the entry.
    ///
    /// # Errors
    /// Whatever the API server answers; a tap that was re-created under the same name is a conflict.
    pub async fn heartbeat(&self, target: &TargetStatus) -> kube::Result<()> {
        let (manager, tap) = (sensor_field_manager(&self.node), &self.spec.tap);
        let status = serde_json::json!({"targets": [target]});
        apply_status(&self.taps(), &manager, &tap.name, Some(&tap.uid), &status).await?;
        Ok(())
    }

    /// The note that goes with a state of health.
    pub fn note(&self, health: &Health) -> SensorNote {
        let (mode, refusals, nic, problem) = match health {
            Health::Starting => (None, Vec::new(), Vec::new(), None),
            Health::Attached { mode, refusals, nic } => {
                (Some(mode.clone()), refusals.clone(), nic.clone(), None)
            }
            Health::Failed(problem) => (None, Vec::new(), Vec::new(), Some(problem.clone())),
        };
        SensorNote {
            pod: self.pod.clone(),
            mode,
            refusals,
            nic,
            problem,
        }
    }

    /// Leaves the note for the operator.
    ///
    /// # Errors
    /// Whatever the API server answers.
    pub async fn leave(&self, note: &SensorNote) -> kube::Result<()> {
        let text = serde_json::to_string(note).map_err(kube::Error::SerdeError)?;
        let name = tap_objects_name(&self.spec.tap.uid);
        let body = serde_json::json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {self.node.as_str(): text},
        });
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &self.spec.tap.namespace);
        apply(&api, &sensor_field_manager(&self.node), &name, &body).await?;
        Ok(())
    }
}

fn absent_analyzer(analyzer: Analyzer) -> AnalyzerStatus {
    AnalyzerStatus {
        name: match analyzer {
            Analyzer::Suricata => AnalyzerName::Suricata,
            Analyzer::Zeek => AnalyzerName::Zeek,
        },
        healthy: false,
        version: None,
        last_record_time: None,
        upstream_fetched_at: None,
        custom_content_digest: None,
        reason: Some(NO_ANALYZERS.into()),
    }
}
