//! `trawl-captured check`: is this NIC set up for capture?

use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use trawl_control::{NicState, NicVerdict};
use trawl_dataplane::nic::{self, Purpose};
use trawl_dataplane::ring::device;

use crate::cli::CheckArgs;
use crate::tell::tell;
use crate::{generate, privileges};

const WRONG: u8 = 1;
const CANNOT_LOOK: u8 = 2;
const NOT_ALL_KNOWN: u8 = 3;

/// What `--json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    interface: &'a str,
    purpose: &'static str,
    items: &'a [NicVerdict],
    wrong: usize,
    unknown: usize,
}

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let _ = privileges::keep_needed();
    let name = &args.interface;
    match device::link(name) {
        Ok(Some(_)) => {}
        Ok(None) => {
            tell!("trawl-captured: interface {name} does not exist here; check the name with `ip link`");
            return Ok(ExitCode::from(CANNOT_LOOK));
        }
        Err(e) => {
            tell!("trawl-captured: cannot look at {name}: {e}{}", privileges::lack());
            return Ok(ExitCode::from(CANNOT_LOOK));
        }
    }
    let (purpose, word) = match args.node {
        true => (Purpose::Node, "node"),
        false => (Purpose::Mirror, "mirror"),
    };
    let mut items = nic::check(name, purpose);
    if !args.node
        && let Some(reason) = nic::refusal(name)
    {
        items.insert(0, refused(reason));
    }
    let count = |state| items.iter().filter(|v| v.state == state).count();
    let (wrong, unknown) = (count(NicState::Wrong), count(NicState::Unknown));
    let text = if args.json {
        let report = Report {
            interface: name.as_str(),
            purpose: word,
            items: &items,
            wrong,
            unknown,
        };
        format!("{}\n", serde_json::to_string_pretty(&report)?)
    } else {
        lines(&format!("{name}, as a {word} interface"), &items)
    };
    generate::print(text.as_bytes())?;
    Ok(match (wrong, unknown) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(NOT_ALL_KNOWN),
        _ => ExitCode::from(WRONG),
    })
}

/// That a mirror interface may not be taken at all is the first thing to know.
fn refused(reason: String) -> NicVerdict {
    NicVerdict {
        item: "mirror".into(),
        found: Some("must not be taken".into()),
        wanted: Some("an interface that only receives mirrored traffic".into()),
        state: NicState::Wrong,
        consequence: reason,
    }
}

/// One word for a state.
pub(crate) fn word(state: NicState) -> &'static str {
    match state {
        NicState::Good => "good",
        NicState::Repaired => "repaired",
        NicState::Wrong => "WRONG",
        NicState::Unknown => "unknown",
    }
}

/// What a verdict found, and what would be right when it is not.
pub(crate) fn found(verdict: &NicVerdict) -> String {
    let found = verdict.found.as_deref().unwrap_or("not known");
    match (&verdict.wanted, verdict.state) {
        (Some(wanted), NicState::Wrong | NicState::Unknown) => format!("{found} (right: {wanted})"),
        _ => found.into(),
    }
}

fn lines(title: &str, items: &[NicVerdict]) -> String {
    let mut text = format!("{title}\n");
    let width = items.iter().map(|v| v.item.len()).max().unwrap_or_default();
    for verdict in items {
        let _ = writeln!(
            text,
            "  {:<8}  {:<width$}  {}",
            word(verdict.state),
            verdict.item,
            found(verdict)
        );
        if !matches!(verdict.state, NicState::Good) && !verdict.consequence.is_empty() {
            let _ = writeln!(text, "  {:<8}  {:<width$}  {}", "", "", verdict.consequence);
        }
    }
    let count = |state| items.iter().filter(|v| v.state == state).count();
    let (wrong, unknown) = (count(NicState::Wrong), count(NicState::Unknown));
    let _ = match (wrong, unknown) {
        (0, 0) => writeln!(text, "all good"),
        (0, unknown) => writeln!(text, "nothing wrong was found; {unknown} could not be looked at"),
        (wrong, unknown) => writeln!(text, "{wrong} wrong, {unknown} could not be looked at"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(state: NicState, found: Option<&str>, wanted: Option<&str>) -> NicVerdict {
        NicVerdict {
            item: "gro".into(),
            found: found.map(Into::into),
            wanted: wanted.map(Into::into),
            state,
            consequence: "It merges packets.".into(),
        }
    }

    #[test]
    fn what_is_wrong_is_shown_with_what_is_right_and_what_it_means() {
        let text = lines("eth1", &[verdict(NicState::Wrong, Some("on"), Some("off"))]);
        assert!(text.contains("WRONG     gro  on (right: off)"), "{text}");
        assert!(text.contains("It merges packets."), "{text}");
        assert!(text.contains("1 wrong, 0 could not be looked at"), "{text}");
    }

    #[test]
    fn what_is_unknown_is_never_shown_as_good() {
        let text = lines("eth1", &[verdict(NicState::Unknown, None, Some("off"))]);
        assert!(text.contains("unknown   gro  not known (right: off)"), "{text}");
        assert!(!text.contains("all good"), "{text}");
        let text = lines("eth1", &[verdict(NicState::Good, Some("off"), Some("off"))]);
        assert!(text.ends_with("all good\n") && !text.contains("merges"), "{text}");
    }
}
