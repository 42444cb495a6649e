//! PortMirror.

use super::{FieldProblem, checks::Problems};
use crate::{PortMirrorSpec, limits, words};

impl PortMirrorSpec {
    /// Every rule that this spec breaks; empty when it is sound.
    pub fn validate(&self) -> Vec<FieldProblem> {
        let mut problems = Problems::default();
        problems.name("spec.deviceRef.name", &self.device_ref.name);
        problems.set("spec.sources", &self.sources, 1, limits::MAX_SOURCES);
        for (index, port) in self.sources.iter().enumerate() {
            port_name(&mut problems, format!("spec.sources[{index}]"), port);
        }
        port_name(&mut problems, "spec.target".into(), &self.target);
        problems.require(!self.sources.contains(&self.target), "spec.target", words::LOOP);
        problems.into_vec()
    }
}

fn port_name(problems: &mut Problems, field: String, name: &str) {
    let max = limits::MAX_PORT;
    let holds = name.len() <= max
        && name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(&b));
    problems.require(holds, field, words::port());
}
