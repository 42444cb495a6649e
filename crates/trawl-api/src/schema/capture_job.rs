//! CaptureJob.

use super::{
    Kind, cel,
    node::{Node, Rule},
    shared,
};
use crate::{limits, words};

/// Lays the limits of CaptureJob over its derived schema.
pub fn overlay(root: &mut Node<'_>) {
    let mut spec = root.at("spec");
    shared::local_ref(&mut spec.at("tapRef"));
    shared::name(&mut spec.at("targetNode"));
    shared::filter(&mut spec, ".filter");
    shared::duration(&mut spec.at("duration"), limits::CAPTURE_DURATION);
    shared::snaplen(&mut spec.at("snaplen"));
    shared::max_size(&mut spec.at("maxSize"));
    spec.at("preTrigger").default("0s");
    shared::duration(&mut spec.at("preTrigger"), limits::PRE_TRIGGER);
    spec.at("retention").default("30d");
    shared::duration(&mut spec.at("retention"), limits::RETENTION);
    shared::name(&mut spec.at("policyRef.name"));
    shared::uid(&mut spec.at("policyRef.uid"));
    spec.at("policyRef.generation").set("minimum", 1);
    trigger(&mut spec.at("trigger"));
    shared::sha256_form(&mut spec.at("deduplicationKey"));

    spec.rule(
        Rule::new(
            "self.requestType != 'Manual' || has(self.targetNode)",
            words::required_when("requestType", "Manual"),
        )
        .names(".targetNode")
        .required(),
    );
    for field in [".policyRef", ".trigger", ".deduplicationKey"] {
        shared::branch(&mut spec, "requestType", "Policy", field);
    }
    immutable(&mut spec);
    status(&mut root.at("status"));
}

fn immutable(spec: &mut Node<'_>) {
    for field in [
        ".requestType",
        ".tapRef",
        ".targetNode",
        ".filter",
        ".snaplen",
        ".policyRef",
        ".trigger",
        ".deduplicationKey",
    ] {
        shared::immutable(
            spec,
            Kind::CaptureJob,
            field,
            cel::unchanged(field.trim_start_matches('.')),
        );
    }
    for field in [".duration", ".preTrigger"] {
        shared::immutable(
            spec,
            Kind::CaptureJob,
            field,
            cel::unchanged_by(field.trim_start_matches('.'), cel::short_duration),
        );
    }
    shared::immutable(
        spec,
        Kind::CaptureJob,
        ".maxSize",
        cel::quantity_unchanged("maxSize"),
    );
}

fn trigger(trigger: &mut Node<'_>) {
    shared::branch(trigger, "source", "SuricataAlert", ".suricata");
    shared::branch(trigger, "source", "HubbleDrop", ".hubble");
    shared::sha256_form(&mut trigger.at("fingerprint"));

    shared::time(&mut trigger.at("eventTime"));
    shared::time(&mut trigger.at("observedAt"));

    let mut flow = trigger.at("flow");
    for address in ["sourceIP", "destinationIP"] {
        flow.at(address)
            .length(0, 45)
            .rule(Rule::new("isIP(self)", words::ADDRESS));
    }
    for port in ["sourcePort", "destinationPort"] {
        flow.at(port).range(0, 65_535);
    }
    flow.at("protocol").form(16, "^[A-Za-z0-9-]+$", words::PROTOCOL);
    flow.at("communityID")
        .form(64, "^[0-9]+:[A-Za-z0-9+/=]+$", words::COMMUNITY_ID);

    let mut alert = trigger.at("suricata");
    alert.at("severity").range(1, 4);
    shared::recorded_word(&mut alert, ".category");
    alert.at("message").length(0, 512);

    let mut drop = trigger.at("hubble");
    shared::recorded_word(&mut drop, ".dropReason");
    shared::namespace(&mut drop.at("sourceNamespace"));
    shared::namespace(&mut drop.at("destinationNamespace"));
}

fn status(status: &mut Node<'_>) {
    for counter in ["observedGeneration", "packetCount", "sizeBytes"] {
        status.at(counter).counter();
    }
    shared::uid(&mut status.at("resolvedTapUID"));
    shared::reported_interface(&mut status.at("resolvedInterface"));
    shared::local_ref(&mut status.at("runnerJobRef"));
    shared::sha256(&mut status.at("sha256"));

    let mut artifact = status.at("artifact");
    artifact.at("profile").length(1, 63);
    artifact.at("key").length(1, 1024);
    artifact.at("etag").length(0, 256);
    artifact.at("versionID").length(0, 1024);

    shared::message(&mut status.at("failure.message"));
    status.at("failure.attempts").counter();

    let mut result = status.at("runnerResult");
    for counter in ["packetCount", "sizeBytes"] {
        result.at(counter).counter();
    }
    shared::sha256(&mut result.at("sha256"));
    result.at("exitCode").range(0, 255);
    shared::message(&mut result.at("message"));
}
