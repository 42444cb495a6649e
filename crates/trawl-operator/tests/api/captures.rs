//! A capture from its request to its end, and what is made for it.

use futures::StreamExt;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{WatchEvent, WatchParams};
use trawl_config::pods::{RunnerSpec, tap_objects_name};

use crate::support::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_goes_from_pending_to_completed_and_every_number_is_the_operators_own() {
    let world = World::new().await;
    let tap = world.live_tap("mirror").await;
    let job = world.make_capture("happy", "mirror").await;
    let uid = job.uid().unwrap();
    world
        .until("happy", "a Job", |s| {
            s.runner_job_ref.is_some() && s.phase == Some(JobPhase::Pending)
        })
        .await;
    world.kubelet.capture_pod(&uid).await;
    world.report("happy", started()).await;
    world.until_phase("happy", JobPhase::Capturing).await;
    let file = pcapng(5);
    let claims = manifest(&job, &file, Outcome::Succeeded);
    world.upload(&job, &file, &claims).await;
    world.report("happy", result(&claims)).await;
    let status = world.until_phase("happy", JobPhase::Completed).await;
    assert_eq!(
        (status.packet_count, status.size_bytes),
        (Some(5), Some(file.len() as i64))
    );
    assert_eq!(status.sha256.as_deref(), Some(claims.sha256.as_str()));
    assert_eq!(status.resolved_tap_uid, tap.uid());
    assert_eq!(status.artifact.as_ref().unwrap().profile, "test");
    for type_ in [
        ConditionType::Accepted,
        ConditionType::ArtifactVerified,
        ConditionType::Downloadable,
    ] {
        assert!(
            is_true(&status.conditions, type_, 1),
            "{type_} at generation 1: {:?}",
            status.conditions
        );
    }
    let retention = status
        .conditions
        .iter()
        .find(|c| c.type_ == "RetentionEnforced")
        .unwrap();
    assert_eq!(
        (retention.status.as_str(), retention.reason.as_str()),
        ("Unknown", "Pending")
    );
    let kept = status
        .retention_deadline
        .unwrap()
        .0
        .duration_since(status.completed_at.unwrap().0);
    assert_eq!(kept.as_secs(), 3600);
    let events: Api<Event> = Api::namespaced(world.client.clone(), &world.namespace);
    eventually("an Event of each phase", async || {
        let all = events.list(&ListParams::default()).await.ok()?.items;
        let told = |reason: &str| all.iter().any(|e| e.reason.as_deref() == Some(reason));
        (told("Pending") && told("Capturing") && told("Completed")).then_some(())
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_comes_after_its_finalizer_and_after_all_that_its_pod_stands_on() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let before = world.captures().list(&ListParams::default()).await.unwrap();
    let since = before.metadata.resource_version.unwrap();
    let uid = world.make_capture("order", "mirror").await.uid().unwrap();
    world
        .until("order", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    // The server counts all writes in one row, and a watch from the past tells when each was made.
    let name = capture_objects_name(&uid);
    let (client, namespace) = (world.client.clone(), world.namespace.as_str());
    let finalizer = first_write(world.captures(), &since, |job| !job.finalizers().is_empty()).await;
    let job = first_write(world.jobs(), &since, |job| job.name_any() == name).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let account = first_write(accounts, &since, |account| account.name_any() == name).await;
    let roles: Api<Role> = Api::namespaced(client.clone(), namespace);
    let role = first_write(roles, &since, |role| role.name_any() == name).await;
    let bindings: Api<RoleBinding> = Api::namespaced(client, namespace);
    let binding = first_write(bindings, &since, |binding| binding.name_any() == name).await;
    for (what, write) in [
        ("finalizer", finalizer),
        ("account", account),
        ("role", role),
        ("binding", binding),
    ] {
        assert!(write < job, "{what} at {write}, the Job at {job}");
    }
    world.end().await;
}

/// Number of the first write since `since` after which an object of this kind was as `wanted`.
async fn first_write<K>(api: Api<K>, since: &str, wanted: impl Fn(&K) -> bool) -> u64
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let events = api
        .watch(&WatchParams::default().timeout(5), since)
        .await
        .unwrap();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event.unwrap()
            && wanted(&object)
        {
            return object.resource_version().unwrap().parse().unwrap();
        }
    }
    panic!("no such write of a {} since {since}", std::any::type_name::<K>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_is_pinned_bounded_and_without_privilege_and_only_the_reporter_has_a_token() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("shape", "mirror").await;
    let uid = job.uid().unwrap();
    world
        .until("shape", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let made = world
        .jobs()
        .get(&capture_objects_name(&uid))
        .await
        .unwrap()
        .spec
        .unwrap();
    assert_eq!(
        (made.backoff_limit, made.active_deadline_seconds),
        (Some(0), Some(300 + 2 + 900))
    );
    let pod = made.template.spec.unwrap();
    assert_eq!(
        pod.node_selector.unwrap().get("kubernetes.io/hostname"),
        Some(&world.node)
    );
    assert_eq!(pod.automount_service_account_token, Some(false));
    let (runner, reporter) = (&pod.containers[0], &pod.init_containers.as_ref().unwrap()[0]);
    assert_eq!(
        reporter.restart_policy.as_deref(),
        Some("Always"),
        "a native sidecar"
    );
    let mounts = |c: &k8s_openapi::api::core::v1::Container, volume: &str| {
        c.volume_mounts.as_ref().unwrap().iter().any(|m| m.name == volume)
    };
    assert!(mounts(reporter, "api-access") && !mounts(runner, "api-access"));
    assert!(mounts(runner, "store") && !mounts(reporter, "store"));
    let arguments = runner.args.as_ref().unwrap();
    let spec: RunnerSpec = serde_json::from_str(&arguments[1]).unwrap();
    assert_eq!(
        (spec.filter.as_deref(), spec.duration_ms, spec.max_size_bytes),
        (Some("tcp port 80"), 2000, 1 << 20)
    );
    assert_eq!(spec.requester, None, "nobody stamps the requester yet");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_about_an_event_tells_the_runner_when_that_was_and_how_far_before_it_to_begin() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let event = json!({"source": "SuricataAlert", "fingerprint": "sha256:".to_owned() + &"a".repeat(64),
        "eventTime": "2026-11-30T10:00:00Z", "observedAt": "2026-11-30T10:00:01Z",
        "suricata": {"ruleID": 2100498, "severity": 1}});
    let about = json!({"requestType": "Policy", "policyRef": {"name": "p", "uid": "u", "generation": 1},
        "trigger": event, "deduplicationKey": "sha256:".to_owned() + &"b".repeat(64), "preTrigger": "5s"});
    let uid = world
        .make_capture_with("about", "mirror", about)
        .await
        .uid()
        .unwrap();
    world
        .until("about", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let spec = world.runner_spec(&uid).await;
    assert_eq!(
        (spec.trigger_ns, spec.pre_trigger_ms),
        (Some(1_796_032_800_000_000_000), 5_000)
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sensor_and_reporter_may_write_the_status_of_their_own_object_and_nothing_else() {
    let world = World::new().await;
    let tap = world.live_tap("mirror").await.uid().unwrap();
    let job = world.make_capture("mine", "mirror").await.uid().unwrap();
    world.until("mine", "a Job", |s| s.runner_job_ref.is_some()).await;
    let (sensor, reporter) = (tap_objects_name(&tap), capture_objects_name(&job));
    let rights: [(&str, &str, &str, &str, &str, bool); 14] = [
        (
            &sensor,
            "patch",
            "trawl.cloud",
            "networktaps/status",
            "mirror",
            true,
        ),
        (&sensor, "get", "trawl.cloud", "networktaps", "mirror", true),
        (&sensor, "patch", "", "configmaps", &sensor, true),
        (&sensor, "patch", "trawl.cloud", "networktaps", "mirror", false),
        (
            &sensor,
            "patch",
            "trawl.cloud",
            "networktaps/status",
            "other",
            false,
        ),
        (&sensor, "patch", "", "configmaps", "trawl-config", false),
        (&sensor, "get", "", "secrets", "trawl-store-runner", false),
        (
            &sensor,
            "patch",
            "trawl.cloud",
            "capturejobs/status",
            "mine",
            false,
        ),
        (
            &reporter,
            "patch",
            "trawl.cloud",
            "capturejobs/status",
            "mine",
            true,
        ),
        (&reporter, "get", "trawl.cloud", "capturejobs", "mine", true),
        (&reporter, "patch", "trawl.cloud", "capturejobs", "mine", false),
        (
            &reporter,
            "patch",
            "trawl.cloud",
            "capturejobs/status",
            "other",
            false,
        ),
        (&reporter, "get", "", "secrets", "trawl-store-runner", false),
        (
            &reporter,
            "patch",
            "trawl.cloud",
            "networktaps/status",
            "mirror",
            false,
        ),
    ];
    for (account, verb, group, resource, name, allowed) in rights {
        let may = world.may(account, verb, group, resource, name).await;
        assert_eq!(may, allowed, "{account}: {verb} {resource} {name}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_waits_for_its_tap_and_gives_up_in_time() {
    let mut world = World::new().await;
    world.limits.target_wait = Duration::from_secs(3);
    world.restart_operator().await;
    world.make_capture("early", "later").await;
    let waiting = world
        .until("early", "TapNotFound", |s| {
            s.conditions
                .iter()
                .any(|c| c.type_ == "TargetReady" && c.reason == "TapNotFound")
        })
        .await;
    assert_eq!(waiting.phase, Some(JobPhase::Pending));
    let status = world.until_phase("early", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::TapInactive);
    assert!(status.runner_job_ref.is_none());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_starts_at_once_when_its_tap_comes_alive() {
    let world = World::new().await;
    world.make_capture("patient", "mirror").await;
    world
        .until("patient", "TapNotFound", |s| !s.conditions.is_empty())
        .await;
    world.live_tap("mirror").await;
    world
        .until("patient", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    world.end().await;
}
