//! The reporter with a real token against a real API server, whose kubeconfig is in `TRAWL_TEST_KUBECONFIG`.

mod world;

use std::time::Duration;

use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use trawl_api::CaptureJob;
use trawl_reporter::{Arguments, ReportError, Tempo, run_at};
use world::{World, records};

/// As in the pod, but with less patience for what will not succeed.
fn brisk() -> Tempo {
    Tempo {
        look: Duration::from_millis(20),
        retry: Duration::from_millis(100),
        retry_max: Duration::from_millis(200),
        request: Duration::from_secs(5),
        farewell: Duration::from_secs(2),
    }
}

/// Reads, reports and ends, as after SIGTERM.
async fn report_once(client: kube::Client, arguments: &Arguments) -> Result<(), ReportError> {
    run_at(brisk(), client, arguments.clone(), std::future::ready(())).await
}

fn denied(outcome: &Result<(), ReportError>) -> bool {
    matches!(outcome, Err(ReportError::Api(error))
        if matches!(&**error, kube::Error::Api(answer) if answer.code == 403))
}

#[tokio::test]
async fn a_reporter_writes_the_status_of_its_own_job_and_of_no_other() {
    let world = World::new("own").await;
    let (mine, other) = (world.job("mine").await, world.job("other").await);
    let client = world.reporter_client("mine").await;
    let directory = records(&mine, true);
    let arguments = world.arguments(&mine, directory.path());
    report_once(client.clone(), &arguments).await.unwrap();
    let status = world.status("mine").await;
    assert_eq!(status.resolved_interface.as_deref(), Some("mirror0"));
    assert!(status.started_at.is_some() && status.capture_ended_at.is_some());
    assert_eq!(status.runner_result.as_ref().unwrap().packet_count, Some(42));
    let conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|c| (c.type_.as_str(), c.status.as_str()))
        .collect();
    assert_eq!(conditions, [("FilterValid", "True"), ("CaptureStarted", "True")]);
    assert!(
        status.conditions.iter().all(|c| c.observed_generation == Some(1)),
        "{:?}",
        status.conditions
    );

    let directory = records(&other, true);
    let outcome = report_once(client.clone(), &world.arguments(&other, directory.path())).await;
    assert!(denied(&outcome), "{outcome:?}");
    let patch = Patch::Merge(json!({"status": {"resolvedInterface": "eth0"}}));
    let api: Api<CaptureJob> = Api::namespaced(client, &world.namespace);
    assert!(
        api.patch_status("other", &PatchParams::default(), &patch)
            .await
            .is_err()
    );
    assert!(
        api.patch(
            "mine",
            &PatchParams::default(),
            &Patch::Merge(json!({"spec": {}}))
        )
        .await
        .is_err()
    );
    assert!(api.list(&Default::default()).await.is_err());
    assert_eq!(world.status("other").await.resolved_interface, None);
}

#[tokio::test]
async fn a_job_of_the_same_name_with_another_uid_is_left_alone() {
    let world = World::new("uid").await;
    let first = world.job("mine").await;
    let client = world.reporter_client("mine").await;
    let directory = records(&first, false);
    let arguments = world.arguments(&first, directory.path());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(run_at(brisk(), client.clone(), arguments.clone(), stopped));
    world.until(|status| status.started_at.is_some()).await;
    world.jobs.delete("mine", &DeleteParams::default()).await.unwrap();
    let second = world.job("mine").await;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    // The reporter that knew the first job has more to say now.
    world::finish(directory.path(), &first);
    stop.send(()).unwrap();
    let outcome = running.await.unwrap();
    assert!(
        matches!(outcome, Err(ReportError::OtherJob { .. })),
        "{outcome:?}"
    );
    // One that starts anew notices before it writes.
    let outcome = report_once(client, &arguments).await;
    assert!(
        matches!(outcome, Err(ReportError::OtherJob { .. })),
        "{outcome:?}"
    );
    assert_eq!(world.status("mine").await, Default::default());
}

#[tokio::test]
async fn the_controllers_fields_stay_the_controllers() {
    let world = World::new("owners").await;
    let job = world.job("mine").await;
    let condition = json!({
        "type": "TargetReady", "status": "True", "reason": "TargetReady", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-08-29T19:30:20Z",
    });
    world
        .apply_as_operator("mine", json!({"phase": "Capturing", "conditions": [condition]}))
        .await
        .unwrap();
    let directory = records(&job, true);
    let client = world.reporter_client("mine").await;
    report_once(client, &world.arguments(&job, directory.path()))
        .await
        .unwrap();
    let stored = world.jobs.get("mine").await.unwrap();
    let status = stored.status.unwrap();
    assert_eq!((status.phase.is_some(), status.conditions.len()), (true, 3));
    let managed = stored.metadata.managed_fields.unwrap();
    let own = managed
        .iter()
        .find(|m| m.manager.as_deref() == Some("trawl-capture-reporter"))
        .unwrap();
    assert_eq!(
        (own.operation.as_deref(), own.subresource.as_deref()),
        (Some("Apply"), Some("status"))
    );
    let fields = own.fields_v1.as_ref().unwrap().0["f:status"].as_object().unwrap();
    let mut fields: Vec<_> = fields.keys().map(String::as_str).collect();
    fields.sort_unstable();
    let expected = [
        "f:captureEndedAt",
        "f:conditions",
        "f:resolvedInterface",
        "f:runnerResult",
        "f:startedAt",
    ];
    assert_eq!(fields, expected);
    // The operator can go on without taking what is the reporter's.
    let again = json!({"phase": "Storing", "conditions": [condition]});
    world.apply_as_operator("mine", again).await.unwrap();
    assert!(world.status("mine").await.runner_result.is_some());
}

#[tokio::test]
async fn a_field_that_somebody_else_owns_is_not_taken_by_force() {
    let world = World::new("conflict").await;
    let job = world.job("mine").await;
    world
        .apply_as_operator("mine", json!({"resolvedInterface": "eth9"}))
        .await
        .unwrap();
    let directory = records(&job, true);
    let client = world.reporter_client("mine").await;
    let outcome = report_once(client, &world.arguments(&job, directory.path())).await;
    let Err(ReportError::Api(error)) = &outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        matches!(&**error, kube::Error::Api(answer) if answer.code == 409),
        "{error}"
    );
    assert_eq!(
        world.status("mine").await.resolved_interface.as_deref(),
        Some("eth9")
    );
}

#[tokio::test]
async fn a_restarted_reporter_with_nothing_new_writes_nothing_new() {
    let world = World::new("same").await;
    let job = world.job("mine").await;
    let directory = records(&job, true);
    let client = world.reporter_client("mine").await;
    let arguments = world.arguments(&job, directory.path());
    report_once(client.clone(), &arguments).await.unwrap();
    let before = world.jobs.get("mine").await.unwrap().metadata.resource_version;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    report_once(client, &arguments).await.unwrap();
    assert_eq!(
        world.jobs.get("mine").await.unwrap().metadata.resource_version,
        before
    );
}

#[tokio::test]
async fn an_api_server_that_is_away_is_waited_for() {
    let world = World::new("away").await;
    let job = world.job("mine").await;
    let directory = records(&job, false);
    let (client, door) = world.reporter_client_through_a_door("mine").await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(run_at(
        brisk(),
        client,
        world.arguments(&job, directory.path()),
        stopped,
    ));
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(world.status("mine").await.started_at, None, "the door was closed");
    door.open();
    world.until(|status| status.started_at.is_some()).await;
    world::finish(directory.path(), &job);
    world.until(|status| status.runner_result.is_some()).await;
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_job_that_was_deleted_is_no_failure_of_the_reporter() {
    let world = World::new("gone").await;
    let job = world.job("mine").await;
    let client = world.reporter_client("mine").await;
    world.jobs.delete("mine", &DeleteParams::default()).await.unwrap();
    let directory = records(&job, true);
    report_once(client, &world.arguments(&job, directory.path()))
        .await
        .unwrap();
}

#[tokio::test]
async fn records_of_another_job_are_not_reported() {
    let world = World::new("foreign").await;
    let (mine, other) = (world.job("mine").await, world.job("other").await);
    let directory = records(&other, true);
    let client = world.reporter_client("mine").await;
    report_once(client, &world.arguments(&mine, directory.path()))
        .await
        .unwrap();
    assert_eq!(world.status("mine").await, Default::default());
}

#[tokio::test]
async fn a_record_is_reported_when_it_is_written_and_not_at_the_next_look() {
    let world = World::new("news").await;
    let job = world.job("mine").await;
    let directory = records(&job, false);
    let arguments = world.arguments(&job, directory.path());
    let seldom = Tempo {
        look: Duration::from_secs(600),
        ..brisk()
    };
    let client = world.reporter_client("mine").await;
    let reporter = tokio::spawn(run_at(seldom, client, arguments, std::future::pending::<()>()));
    world.until(|status| status.started_at.is_some()).await;
    world::finish(directory.path(), &job);
    world.until(|status| status.runner_result.is_some()).await;
    reporter.abort();
}
