//! The parts that every pod of ours has: no privilege, the token and the socket where they are due.

use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapProjection, DownwardAPIProjection, DownwardAPIVolumeFile, EnvVar, EnvVarSource,
    HostPathVolumeSource, KeyToPath, ObjectFieldSelector, Pod, PodSecurityContext, ProjectedVolumeSource,
    ResourceRequirements, SeccompProfile, SecurityContext, ServiceAccountTokenProjection, Toleration, Volume,
    VolumeMount, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// User and group of every program but captured.
pub const UID: i64 = 65532;
/// Taint and label of nodes that are sensors before anything else.
pub const SENSOR_KEY: &str = "trawl.cloud/sensor";
pub const SOCKET_DIR: &str = "/run/trawl";
pub const SOCKET: &str = "/run/trawl/captured.sock";
pub const TOKEN_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_SECONDS: i64 = 3600;

pub fn pod_security() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(UID),
        run_as_group: Some(UID),
        fs_group: Some(UID),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".into(),
            ..SeccompProfile::default()
        }),
        ..PodSecurityContext::default()
    }
}

pub fn container_security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".into()]),
            add: None,
        }),
        ..SecurityContext::default()
    }
}

pub fn resources(cpu: &str, memory: &str, memory_limit: &str) -> ResourceRequirements {
    let quantity = |text: &str| Quantity(text.into());
    ResourceRequirements {
        requests: Some([("cpu".into(), quantity(cpu)), ("memory".into(), quantity(memory))].into()),
        limits: Some([("memory".into(), quantity(memory_limit))].into()),
        ..ResourceRequirements::default()
    }
}

/// Sensor nodes may be closed to everything else.
pub fn tolerations() -> Vec<Toleration> {
    vec![Toleration {
        key: Some(SENSOR_KEY.into()),
        operator: Some("Exists".into()),
        ..Toleration::default()
    }]
}

/// Kubernetes expands `$(NAME)` in arguments and turns `$$` into `$`; a filter or a name must arrive as it is.
pub fn argument(text: &str) -> String {
    text.replace('$', "$$")
}

pub fn mount(volume: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: volume.into(),
        mount_path: path.into(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

/// A directory of the host that must exist already.
pub fn host_directory(volume: &str, path: &str) -> Volume {
    Volume {
        name: volume.into(),
        host_path: Some(HostPathVolumeSource {
            path: path.into(),
            type_: Some("Directory".into()),
        }),
        ..Volume::default()
    }
}

/// The projected token, the cluster's CA and the namespace, as an in-cluster client expects them.
pub fn token_volume(volume: &str) -> Volume {
    let token = ServiceAccountTokenProjection {
        path: "token".into(),
        expiration_seconds: Some(TOKEN_SECONDS),
        ..ServiceAccountTokenProjection::default()
    };
    let ca = ConfigMapProjection {
        name: "kube-root-ca.crt".into(),
        items: Some(vec![KeyToPath {
            key: "ca.crt".into(),
            path: "ca.crt".into(),
            mode: None,
        }]),
        ..ConfigMapProjection::default()
    };
    let namespace = DownwardAPIVolumeFile {
        path: "namespace".into(),
        field_ref: Some(ObjectFieldSelector {
            field_path: "metadata.namespace".into(),
            ..Default::default()
        }),
        ..DownwardAPIVolumeFile::default()
    };
    let sources = vec![
        VolumeProjection {
            service_account_token: Some(token),
            ..Default::default()
        },
        VolumeProjection {
            config_map: Some(ca),
            ..Default::default()
        },
        VolumeProjection {
            downward_api: Some(DownwardAPIProjection {
                items: Some(vec![namespace]),
            }),
            ..Default::default()
        },
    ];
    Volume {
        name: volume.into(),
        projected: Some(ProjectedVolumeSource {
            default_mode: Some(0o440),
            sources: Some(sources),
        }),
        ..Volume::default()
    }
}

/// An environment variable from a field of the pod.
pub fn field_env(name: &str, field: &str) -> EnvVar {
    EnvVar {
        name: name.into(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: field.into(),
                ..Default::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

/// What keeps a pod from running, in the words of the scheduler or the kubelet.
pub fn trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    if let Some(c) = conditions
        .iter()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False")
    {
        return Some(format!(
            "not scheduled: {}",
            c.message.as_deref().or(c.reason.as_deref())?
        ));
    }
    let init = status.init_container_statuses.iter().flatten();
    let states = init.chain(status.container_statuses.iter().flatten());
    states.into_iter().find_map(|c| {
        let waiting = c.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref()?;
        if matches!(reason, "ContainerCreating" | "PodInitializing") {
            return None;
        }
        let last = c.last_state.as_ref().and_then(|s| s.terminated.as_ref());
        let ended = last
            .map(|t| format!("; it ended with exit code {}", t.exit_code))
            .unwrap_or_default();
        let message = waiting.message.as_deref().unwrap_or_default();
        Some(format!("{}: {reason} {message}{ended}", c.name))
    })
}
