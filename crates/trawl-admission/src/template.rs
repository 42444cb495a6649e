//! The filter template of a policy.

use trawl_api::CapturePolicySpec;
use trawl_policy::{Placeholder, SpecimenError, Template};

use crate::{Rules, capturing, findings::Findings};

const FIELD: &str = "spec.capture.filterTemplate";

/// Parses the template, tries it out, and says what is surprising about it.
pub fn check(rules: &Rules, spec: &CapturePolicySpec, findings: &mut Findings) {
    let text = spec.capture.filter_template.as_deref().unwrap_or_default();
    let template = match Template::parse(text, spec.trigger.type_) {
        Ok(template) => template,
        // The parser knows the place, where the checks of the spec know only that something is wrong.
        Err(error) => return findings.replace(FIELD, error.to_string()),
    };
    if template.is_blank() {
        return capturing::everything(FIELD, findings);
    }
    if findings.has(FIELD) {
        return;
    }
    match trawl_policy::check(&template, &rules.filter) {
        Err(error @ SpecimenError::Unknown(_)) => {
            findings.problem(FIELD, format!("{error}; try again, or make the template simpler"));
        }
        Err(error) => findings.problem(FIELD, error.to_string()),
        Ok(checked) => {
            if !checked.failing.is_empty() {
                let events = trawl_policy::describe(&checked.failing);
                findings.warn(
                    FIELD,
                    &format!("gives no filter for some events, whose captures fail: {events}"),
                );
            }
            for warning in checked.warnings {
                findings.warn(FIELD, &warning.to_string());
            }
            if template.placeholders().next().is_none() {
                findings.warn(
                    FIELD,
                    "has no placeholder: every capture of this policy takes the same packets, whatever the event is about",
                );
            }
            if template.uses(Placeholder::RuleId) || template.uses(Placeholder::Severity) {
                findings.warn(
                    FIELD,
                    "the number of a rule or of a severity is no part of a packet; the filter tests something else for it",
                );
            }
        }
    }
}
