//! The operator against a real API server, controller manager and scheduler. Kubelet, sensor, reporter and runner are
//! played by the test; `TRAWL_TEST_KUBECONFIG` names the server.

mod support;

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Event, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use support::World;
use support::capture_file::{manifest, pcapng};
use support::world::eventually;
use trawl_api::conditions::{ConditionType, is_true};
use trawl_api::{FailureReason, JobPhase, Outcome, TapPhase};
use trawl_artifact::manifest::Manifest;
use trawl_config::pods::{RunnerSpec, capture_objects_name, tap_objects_name};

/// What the reporter says while a capture runs, and after it.
fn started() -> serde_json::Value {
    json!({"startedAt": "2026-01-01T00:00:00Z", "resolvedInterface": "mirror0"})
}

fn result(manifest: &Manifest) -> serde_json::Value {
    let mut fields = started();
    fields["captureEndedAt"] = "2026-01-01T00:00:02Z".into();
    let ok = manifest.outcome == Outcome::Succeeded;
    fields["runnerResult"] = json!({
        "outcome": if ok { "Succeeded" } else { "Failed" },
        "stopReason": if ok { "Duration" } else { "Error" },
        "packetCount": manifest.packet_count, "sizeBytes": manifest.size_bytes, "sha256": manifest.sha256,
        "exitCode": if ok { 0 } else { 13 },
    });
    if !ok {
        fields["runnerResult"]["reason"] = "CaptureFailed".into();
        fields["runnerResult"]["message"] = "captured went away".into();
    }
    fields
}

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
async fn a_capture_of_zero_packets_completes() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("empty", "mirror").await;
    world
        .until("empty", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let file = pcapng(0);
    let claims = manifest(&job, &file, Outcome::Succeeded);
    world.upload(&job, &file, &claims).await;
    world.report("empty", result(&claims)).await;
    let status = world.until_phase("empty", JobPhase::Completed).await;
    assert_eq!(status.packet_count, Some(0));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_bytes_in_the_store_never_become_completed_and_are_removed() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("wrong", "mirror").await;
    world
        .until("wrong", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let claims = manifest(&job, &pcapng(5), Outcome::Succeeded);
    let mut bytes = pcapng(5);
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    world.upload(&job, &bytes, &claims).await;
    world.report("wrong", result(&claims)).await;
    let status = world.until_phase("wrong", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::ArtifactMismatch);
    assert!(!is_true(&status.conditions, ConditionType::Downloadable, 1));
    let uid = job.uid().unwrap();
    eventually("the wrong objects to be gone", async || {
        (world.objects(&uid).await == 0).then_some(())
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_artifact_fails_with_the_runners_reason_and_stays_named_but_not_downloadable() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("partial", "mirror").await;
    world
        .until("partial", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let file = pcapng(3);
    let claims = manifest(&job, &file, Outcome::Failed);
    world.upload(&job, &file, &claims).await;
    world.report("partial", result(&claims)).await;
    let status = world.until_phase("partial", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::CaptureFailed);
    assert_eq!(status.packet_count, Some(3));
    assert!(status.artifact.is_some() && status.retention_deadline.is_some());
    assert!(!is_true(&status.conditions, ConditionType::Downloadable, 1));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(
        world.objects(&job.uid().unwrap()).await,
        2,
        "what was captured is kept"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_store_holds_the_capture_until_it_is_back() {
    let mut world = World::new().await;
    world.limits.job_requeue = Duration::from_secs(1);
    world.restart_operator().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("hold", "mirror").await;
    world.until("hold", "a Job", |s| s.runner_job_ref.is_some()).await;
    let file = pcapng(2);
    let claims = manifest(&job, &file, Outcome::Succeeded);
    world.upload(&job, &file, &claims).await;
    world.lose_store(true);
    world.report("hold", result(&claims)).await;
    let held = world
        .until("hold", "StorageFailure", |s| {
            s.conditions
                .iter()
                .any(|c| c.type_ == "ArtifactVerified" && c.reason == "StorageFailure")
        })
        .await;
    assert_eq!(
        held.phase,
        Some(JobPhase::Storing),
        "could not look is not nothing there"
    );
    world.lose_store(false);
    world.until_phase("hold", JobPhase::Completed).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_ends_without_an_artifact_fails_by_its_exit_code() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("exit", "mirror").await;
    world.until("exit", "a Job", |s| s.runner_job_ref.is_some()).await;
    world.kubelet.end_runner(&job.uid().unwrap(), 12).await;
    let status = world.until_phase("exit", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::InvalidFilter);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capture_deleted_while_capturing_leaves_nothing() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("gone", "mirror").await;
    let uid = job.uid().unwrap();
    world.kubelet.capture_pod(&uid).await;
    world.report("gone", started()).await;
    world.until_phase("gone", JobPhase::Capturing).await;
    let file = pcapng(1);
    world
        .upload(&job, &file, &manifest(&job, &file, Outcome::Failed))
        .await;
    world
        .captures()
        .delete("gone", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the capture to be gone", async || {
        world
            .captures()
            .get_opt("gone")
            .await
            .ok()?
            .is_none()
            .then_some(())
    })
    .await;
    assert!(world.jobs_of(&uid).await.is_empty(), "no Job");
    assert_eq!(world.objects(&uid).await, 0, "no object");
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
    let name = capture_objects_name(&uid);
    eventually("its account to be collected", async || {
        accounts.get_opt(&name).await.ok()?.is_none().then_some(())
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_store_holds_the_finalizer_of_a_deleted_capture() {
    let mut world = World::new().await;
    world.limits.job_requeue = Duration::from_secs(1);
    world.restart_operator().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("held", "mirror").await;
    world.until("held", "a Job", |s| s.runner_job_ref.is_some()).await;
    let file = pcapng(1);
    world
        .upload(&job, &file, &manifest(&job, &file, Outcome::Succeeded))
        .await;
    world.lose_store(true);
    world
        .captures()
        .delete("held", &DeleteParams::default())
        .await
        .unwrap();
    let uid = job.uid().unwrap();
    eventually("its Job to be gone", async || {
        world.jobs_of(&uid).await.is_empty().then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(
        world.captures().get_opt("held").await.unwrap().is_some(),
        "its objects may still be there"
    );
    world.lose_store(false);
    eventually("the capture to be gone", async || {
        world
            .captures()
            .get_opt("held")
            .await
            .ok()?
            .is_none()
            .then_some(())
    })
    .await;
    assert_eq!(world.objects(&uid).await, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_restarted_in_every_phase_converges_with_one_job() {
    let mut world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("often", "mirror").await;
    world.restart_operator().await;
    let uid = job.uid().unwrap();
    world
        .until("often", "a Job", |s| s.runner_job_ref.is_some())
        .await;
    let first = world.jobs_of(&uid).await[0].uid();
    world.restart_operator().await;
    world.kubelet.capture_pod(&uid).await;
    world.report("often", started()).await;
    world.restart_operator().await;
    world.until_phase("often", JobPhase::Capturing).await;
    world.kill_operator().await;
    let file = pcapng(4);
    let claims = manifest(&job, &file, Outcome::Succeeded);
    world.upload(&job, &file, &claims).await;
    world.report("often", result(&claims)).await;
    world.start_operator();
    tokio::time::sleep(Duration::from_millis(30)).await;
    world.restart_operator().await;
    let status = world.until_phase("often", JobPhase::Completed).await;
    world.restart_operator().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let jobs = world.jobs_of(&uid).await;
    assert_eq!((jobs.len(), jobs[0].uid()), (1, first), "one Job, the first one");
    let later = world.captures().get("often").await.unwrap();
    assert_eq!(later.status.unwrap(), status, "a terminal state stays");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vanished_job_is_not_run_a_second_time() {
    let world = World::new().await;
    world.live_tap("mirror").await;
    let job = world.make_capture("lost", "mirror").await;
    let uid = job.uid().unwrap();
    world.until("lost", "a Job", |s| s.runner_job_ref.is_some()).await;
    let background = DeleteParams::background();
    world
        .jobs()
        .delete(&capture_objects_name(&uid), &background)
        .await
        .unwrap();
    let status = world.until_phase("lost", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::InternalError);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(world.jobs_of(&uid).await.is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_the_same_name_that_is_not_ours_is_never_adopted() {
    let mut world = World::new().await;
    world.live_tap("mirror").await;
    world.kill_operator().await;
    let job = world.make_capture("foreign", "mirror").await;
    let uid = job.uid().unwrap();
    let stranger = serde_json::from_value(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": capture_objects_name(&uid)},
        "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "x", "image": "x"}]}}}}))
    .unwrap();
    let stranger = world
        .jobs()
        .create(&PostParams::default(), &stranger)
        .await
        .unwrap();
    world.start_operator();
    let status = world.until_phase("foreign", JobPhase::Failed).await;
    assert_eq!(status.failure.unwrap().reason, FailureReason::InternalError);
    world
        .captures()
        .delete("foreign", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the capture to be gone", async || {
        world
            .captures()
            .get_opt("foreign")
            .await
            .ok()?
            .is_none()
            .then_some(())
    })
    .await;
    let still = world.jobs().get(&capture_objects_name(&uid)).await.unwrap();
    assert_eq!(
        still.uid(),
        stranger.uid(),
        "it is not touched, not even on deletion"
    );
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

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_without_analyzers_is_degraded_and_says_how_it_captures() {
    let world = World::new().await;
    let tap = world.make_tap("mirror").await;
    let status = world
        .tap_until("mirror", "Pending", |s| s.phase == Some(TapPhase::Pending))
        .await;
    assert_eq!((status.matched_targets, status.ready_targets), (Some(1), Some(0)));
    world.sensor_reports(&tap, 0, Timestamp::now()).await;
    world
        .sensor_notes(
            &tap,
            json!({"mode": "copy", "refusals": ["zero-copy: the driver refuses"]}),
        )
        .await;
    let status = world
        .tap_until("mirror", "CaptureModeDegraded", |s| {
            s.conditions
                .iter()
                .any(|c| c.type_ == "WorkloadReady" && c.reason == "CaptureModeDegraded")
        })
        .await;
    assert_eq!(status.phase, Some(TapPhase::Degraded));
    let condition = |type_: &str| status.conditions.iter().find(|c| c.type_ == type_).unwrap();
    assert!(
        condition("WorkloadReady")
            .message
            .contains("copy (zero-copy: the driver refuses)")
    );
    assert_eq!(condition("AnalyzersHealthy").status, "False");
    assert!(
        condition("AnalyzersHealthy")
            .message
            .contains(&format!("{}/Suricata", world.node))
    );
    assert_eq!(condition("PacketsObserved").reason, "NoPacketsObserved");
    assert_eq!(
        status.targets[0].kernel_drops,
        Some(0),
        "the sensor's entry is untouched"
    );

    let missing = json!({"problem": {"kind": "InterfaceMissing", "message": "mirror0 does not exist"}});
    world.sensor_notes(&tap, missing).await;
    let status = world
        .tap_until("mirror", "InterfaceMissing", |s| {
            s.conditions.iter().any(|c| c.reason == "InterfaceMissing")
        })
        .await;
    assert_eq!(status.phase, Some(TapPhase::Degraded));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_younger_of_two_taps_on_one_interface_yields_and_takes_over_when_the_older_goes() {
    let world = World::new().await;
    world.live_tap("older").await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let younger = world.make_tap("younger").await;
    let status = world
        .tap_until("younger", "Error", |s| s.phase == Some(TapPhase::Error))
        .await;
    let accepted = status.conditions.iter().find(|c| c.type_ == "Accepted").unwrap();
    assert_eq!(
        (accepted.status.as_str(), accepted.reason.as_str()),
        ("False", "InterfaceConflict")
    );
    let selected = ListParams::default().labels(&format!("trawl.cloud/tap-uid={}", younger.uid().unwrap()));
    assert!(
        world
            .kubelet
            .pods()
            .list(&selected)
            .await
            .unwrap()
            .items
            .is_empty(),
        "the loser touches nothing"
    );
    world
        .taps()
        .delete("older", &DeleteParams::default())
        .await
        .unwrap();
    world
        .tap_until("younger", "Pending", |s| s.phase == Some(TapPhase::Pending))
        .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_meant_for_a_deleted_job_never_reaches_its_namesake() {
    let mut world = World::new().await;
    world.kill_operator().await;
    let old = world.make_capture("namesake", "no-tap").await.uid().unwrap();
    world
        .captures()
        .delete("namesake", &DeleteParams::default())
        .await
        .unwrap();
    let new = eventually("the namesake", async || {
        let gone = world.captures().get_opt("namesake").await.ok()?.is_none();
        if gone {
            Some(world.make_capture("namesake", "no-tap").await)
        } else {
            None
        }
    })
    .await;
    assert_ne!(new.uid().unwrap(), old);
    let status = json!({"phase": "Failed"});
    let write = async |uid: &str| {
        trawl_kube::apply::apply_status(
            &world.captures(),
            "trawl-operator",
            "namesake",
            Some(uid),
            &status,
        )
        .await
    };
    let refused = write(&old).await.unwrap_err();
    assert!(trawl_kube::apply::is_conflict(&refused), "{refused}");
    assert_eq!(world.captures().get("namesake").await.unwrap().status, None);
    write(&new.uid().unwrap()).await.unwrap();
    world.end().await;
}
