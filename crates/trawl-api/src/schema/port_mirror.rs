//! PortMirror.

use super::{
    Kind,
    node::{Node, Rule},
    shared,
};
use crate::{limits, words};

/// Port names of switches, such as `ether1` or `sfp-sfpplus2`.
const PORT: &str = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$";

/// Lays the limits of PortMirror over its derived schema.
pub fn overlay(root: &mut Node<'_>) {
    let mut spec = root.at("spec");
    shared::local_ref(&mut spec.at("deviceRef"));
    spec.at("sources").items(1, limits::MAX_SOURCES).is_set();
    port(&mut spec.at("sources.[]"));
    port(&mut spec.at("target"));
    spec.rule(Rule::new("!(self.target in self.sources)", words::LOOP).names(".target"));
    shared::immutable(
        &mut spec,
        Kind::PortMirror,
        ".provider",
        "self.provider == oldSelf.provider".into(),
    );
    shared::immutable(
        &mut spec,
        Kind::PortMirror,
        ".deviceRef",
        "self.deviceRef == oldSelf.deviceRef".into(),
    );

    let mut status = root.at("status");
    status.at("observedGeneration").counter();
    status.at("observedSources").items(0, 256).is_set();
    status.at("observedSources.[]").length(1, limits::MAX_PORT);
    status.at("observedTarget").length(0, limits::MAX_PORT);
    status.at("observedDirections").set("maxProperties", 256);
    status.at("deviceIdentity").length(0, 256);
}

fn port(node: &mut Node<'_>) {
    node.form(limits::MAX_PORT, PORT, words::port());
}
