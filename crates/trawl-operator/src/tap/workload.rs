//! What one tap is made of: an identity, a ConfigMap for the sensors' notes, and a Deployment or DaemonSet.

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, Deployment, DeploymentSpec, DeploymentStrategy,
    RollingUpdateDaemonSet,
};
use k8s_openapi::api::core::v1::{
    Affinity, ConfigMap, Container, ContainerPort, HTTPGetAction, NodeAffinity, NodeSelector,
    NodeSelectorRequirement, NodeSelectorTerm, PodSpec, PodTemplateSpec, Probe,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use trawl_api::names::{GROUP, TAP_UID_LABEL};
use trawl_api::{InterfaceSource, NetworkTapSpec, TapType};
use trawl_config::installation::Installation;
use trawl_config::pods::{Analyzer, ObjectIdentity, SensorSource, SensorSpec, tap_objects_name};

use crate::owned::{OWNER_ANNOTATION, labels, metadata, rule};
use crate::pod;

/// What the parts of a tap are made from.
pub struct Plan<'a> {
    pub config: &'a Installation,
    pub name: &'a str,
    pub uid: &'a str,
    pub owner: OwnerReference,
    pub spec: &'a NetworkTapSpec,
    pub source: &'a InterfaceSource,
}

/// The object that keeps the sensors running.
pub enum Workload {
    Deployment(Box<Deployment>),
    DaemonSet(Box<DaemonSet>),
}

impl Plan<'_> {
    /// Metadata of everything that belongs to this tap.
    pub fn metadata(&self) -> ObjectMeta {
        let labels = labels("trawl-tap", TAP_UID_LABEL, self.uid);
        metadata(
            &tap_objects_name(self.uid),
            &self.config.namespace,
            self.owner.clone(),
            labels,
        )
    }

    /// What the sensors may do: read their tap, patch its status, and leave their notes.
    pub fn sensor_rules(&self) -> Vec<PolicyRule> {
        vec![
            rule(GROUP, "networktaps", self.name, &["get"]),
            rule(GROUP, "networktaps/status", self.name, &["get", "patch"]),
            rule("", "configmaps", &tap_objects_name(self.uid), &["get", "patch"]),
        ]
    }

    /// Where the sensors say what the status has no place for. Its data belongs to them.
    pub fn notes(&self) -> ConfigMap {
        ConfigMap {
            metadata: self.metadata(),
            ..ConfigMap::default()
        }
    }

    /// The instructions of the sensors.
    pub fn sensor_spec(&self) -> SensorSpec {
        let analyzers = &self.spec.analyzers;
        let enabled = [
            (Analyzer::Suricata, &analyzers.suricata),
            (Analyzer::Zeek, &analyzers.zeek),
        ];
        SensorSpec {
            tap: ObjectIdentity {
                namespace: self.config.namespace.clone(),
                name: self.name.into(),
                uid: self.uid.into(),
            },
            source: match self.spec.type_ {
                TapType::MirrorInterface => SensorSource::MirrorInterface,
                TapType::NodeInterface => SensorSource::NodeInterface,
            },
            interface: self.source.interface.clone(),
            promiscuous: self.source.promiscuous,
            analyzers: enabled
                .into_iter()
                .filter(|(_, c)| c.enabled)
                .map(|(name, _)| name)
                .collect(),
        }
    }

    /// One sensor for a mirror, one per chosen node for the nodes' own interfaces.
    ///
    /// # Errors
    /// When the sensor's instructions cannot be encoded.
    pub fn workload(&self) -> Result<Workload, serde_json::Error> {
        let meta = self.metadata();
        let selector = LabelSelector {
            match_labels: Some([(TAP_UID_LABEL.to_owned(), self.uid.to_owned())].into()),
            ..LabelSelector::default()
        };
        let template = PodTemplateSpec {
            metadata: Some(ObjectMeta {
                labels: meta.labels.clone(),
                annotations: Some([(OWNER_ANNOTATION.to_owned(), self.name.to_owned())].into()),
                ..ObjectMeta::default()
            }),
            spec: Some(self.pod(&meta)?),
        };
        Ok(match self.spec.type_ {
            TapType::MirrorInterface => Workload::Deployment(Box::new(Deployment {
                metadata: meta,
                spec: Some(DeploymentSpec {
                    replicas: Some(1),
                    // Two sensors of one tap would fight over its report.
                    strategy: Some(DeploymentStrategy {
                        type_: Some("Recreate".into()),
                        rolling_update: None,
                    }),
                    selector,
                    template,
                    ..DeploymentSpec::default()
                }),
                status: None,
            })),
            TapType::NodeInterface => Workload::DaemonSet(Box::new(DaemonSet {
                metadata: meta,
                spec: Some(DaemonSetSpec {
                    selector,
                    template,
                    update_strategy: Some(DaemonSetUpdateStrategy {
                        type_: Some("RollingUpdate".into()),
                        rolling_update: Some(RollingUpdateDaemonSet {
                            max_unavailable: Some(IntOrString::Int(1)),
                            ..RollingUpdateDaemonSet::default()
                        }),
                    }),
                    ..DaemonSetSpec::default()
                }),
                status: None,
            })),
        })
    }

    fn pod(&self, meta: &ObjectMeta) -> Result<PodSpec, serde_json::Error> {
        Ok(PodSpec {
            service_account_name: meta.name.clone(),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(10),
            affinity: Some(self.affinity()),
            tolerations: Some(pod::tolerations()),
            security_context: Some(pod::pod_security()),
            containers: vec![self.sensor()?],
            volumes: Some(vec![
                pod::host_directory("socket", &self.config.captured.socket_dir),
                pod::token_volume("api-access"),
            ]),
            ..PodSpec::default()
        })
    }

    fn sensor(&self) -> Result<Container, serde_json::Error> {
        let spec = serde_json::to_string(&self.sensor_spec())?;
        let health = 8081;
        let args = [
            "--spec",
            &spec,
            "--socket",
            pod::SOCKET,
            "--health-listen",
            "0.0.0.0:8081",
        ];
        let probe = |path: &str, period| Probe {
            http_get: Some(HTTPGetAction {
                path: Some(path.into()),
                port: IntOrString::Int(health),
                ..HTTPGetAction::default()
            }),
            period_seconds: Some(period),
            failure_threshold: Some(if period > 5 { 6 } else { 1 }),
            timeout_seconds: Some(3),
            ..Probe::default()
        };
        Ok(Container {
            name: "sensor".into(),
            image: Some(self.config.images.sensor.clone()),
            image_pull_policy: Some("IfNotPresent".into()),
            args: Some(args.map(pod::argument).into()),
            env: Some(vec![
                pod::field_env("NODE_NAME", "spec.nodeName"),
                pod::field_env("POD_NAME", "metadata.name"),
            ]),
            ports: Some(vec![ContainerPort {
                container_port: health,
                name: Some("health".into()),
                ..Default::default()
            }]),
            readiness_probe: Some(probe("/readyz", 2)),
            liveness_probe: Some(probe("/healthz", 10)),
            volume_mounts: Some(vec![
                pod::mount("socket", pod::SOCKET_DIR, false),
                pod::mount("api-access", pod::TOKEN_DIR, true),
            ]),
            security_context: Some(pod::container_security()),
            resources: Some(pod::resources("10m", "16Mi", "128Mi")),
            ..Container::default()
        })
    }

    /// The tap's own selector, and the label of sensor nodes.
    fn affinity(&self) -> Affinity {
        let selector = &self.source.node_selector;
        let requirement = |key: &str, operator: &str, values: Option<Vec<String>>| NodeSelectorRequirement {
            key: key.into(),
            operator: operator.into(),
            values,
        };
        let mut wanted = vec![requirement(pod::SENSOR_KEY, "In", Some(vec!["true".into()]))];
        for (key, value) in selector.match_labels.iter().flatten() {
            wanted.push(requirement(key, "In", Some(vec![value.clone()])));
        }
        for e in selector.match_expressions.iter().flatten() {
            wanted.push(requirement(&e.key, &e.operator, e.values.clone()));
        }
        let term = NodeSelectorTerm {
            match_expressions: Some(wanted),
            match_fields: None,
        };
        Affinity {
            node_affinity: Some(NodeAffinity {
                required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                    node_selector_terms: vec![term],
                }),
                ..NodeAffinity::default()
            }),
            ..Affinity::default()
        }
    }
}
