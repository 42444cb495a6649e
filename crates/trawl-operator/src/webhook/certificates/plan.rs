//! What to do next about the webhooks' own certificate: facts and the time in, one step out.
//!
//! The order makes a rotation invisible: an authority is in the bundle of every webhook, and has been for the grace
//! period, before the first certificate of it is served; and it stays there until the certificate could not be
//! served any more.

use std::time::Duration;

use jiff::Timestamp;

use super::kept::{Kept, Next, Retired};
use super::pair::Pair;

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a certificate is good for. It is replaced when two thirds of that are over.
    pub life: Duration,
    /// How long API servers may need to notice a new bundle.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            life: Duration::from_secs(90 * 24 * 3600),
            grace: Duration::from_secs(60),
        }
    }
}

/// One step. After each the facts are gathered again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make a pair and serve it as soon as it is trusted: nothing valid is served anyway.
    Make,
    /// Make the pair that will be served.
    Prepare,
    /// Put the bundle into the webhook configurations.
    Trust,
    /// Remember since when the next authority is trusted, or that it is not any more.
    Note(Option<Timestamp>),
    /// Serve the next pair from now on.
    Promote,
    /// Forget authorities that have ended.
    Forget,
    /// Nothing.
    Wait,
}

/// The next step. `trusted` is the bundle of every single webhook.
pub fn next(kept: &Kept, trusted: &[String], now: Timestamp, limits: Limits) -> Step {
    // A clock that was ahead makes certificates that begin when it was right.
    let alive = |pair: &Pair| pair.not_before <= now && now < pair.not_after;
    let following = kept.next.as_ref().filter(|n| alive(&n.pair));
    let Some(serving) = kept.serving.as_ref().filter(|p| alive(p)) else {
        return if following.is_some() {
            Step::Promote
        } else {
            Step::Make
        };
    };
    let bundle = kept.bundle(now);
    if trusted.iter().any(|t| *t != bundle) {
        // A configuration that was made anew has not known the next authority for long, whatever was noted.
        let noted = following.is_some_and(|n| n.trusted_since.is_some());
        return if noted { Step::Note(None) } else { Step::Trust };
    }
    match following {
        None if now >= serving.rotate_at() => return Step::Prepare,
        Some(Next {
            trusted_since: None, ..
        }) => return Step::Note(Some(now)),
        Some(Next {
            trusted_since: Some(since),
            ..
        }) if now >= *since + limits.grace => return Step::Promote,
        _ => {}
    }
    if kept.retired.iter().any(|r| r.not_after <= now) {
        return Step::Forget;
    }
    Step::Wait
}

/// The pair that may be served: every webhook trusts its authority.
pub fn servable<'a>(kept: &'a Kept, trusted: &[String]) -> Option<&'a Pair> {
    let pair = kept.serving.as_ref()?;
    let known = !trusted.is_empty() && trusted.iter().all(|t| t.contains(&pair.authority));
    known.then_some(pair)
}

/// The Secret after a step that changes it; `fresh` makes a pair.
pub fn carried_out<E>(
    kept: &Kept,
    step: Step,
    now: Timestamp,
    fresh: impl FnOnce() -> Result<Pair, E>,
) -> Result<Kept, E> {
    let mut kept = kept.clone();
    match step {
        Step::Make => {
            kept.serving = Some(fresh()?);
            kept.next = None;
        }
        Step::Prepare => {
            kept.next = Some(Next {
                pair: fresh()?,
                trusted_since: None,
            });
        }
        Step::Note(since) => {
            if let Some(next) = &mut kept.next {
                next.trusted_since = since;
            }
        }
        Step::Promote => {
            let next = kept.next.take().map(|n| n.pair);
            if let Some(old) = std::mem::replace(&mut kept.serving, next) {
                kept.retired.push(Retired {
                    authority: old.authority,
                    not_after: old.not_after,
                });
            }
        }
        Step::Trust | Step::Forget | Step::Wait => {}
    }
    kept.retired.retain(|r| r.not_after > now);
    Ok(kept)
}
