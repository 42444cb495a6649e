//! What a tap says of itself.

use k8s_openapi::jiff::Timestamp;
use trawl_api::TapPhase;

use crate::support::prelude::*;

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
