//! One request from body to answer: decide, record, answer.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use trawl_admission::{Caller, Operation, Request, Rules, TapReference};
use trawl_api::webhooks::{Hooked, Purpose};
use trawl_audit::{Ledger, LedgerError};

use super::review::{Answer, Asked, Malformed};
use super::taps::Taps;
use super::{entry, refusal};

/// Everything that an answer needs must be done by then: the API server gives up after ten seconds.
const DEADLINE: Duration = Duration::from_secs(8);
/// What deciding alone may take; the rest is for the record.
const DECIDING: Duration = Duration::from_secs(5);

/// Answers the API server.
pub struct Webhooks {
    rules: Arc<Rules>,
    ledger: Arc<dyn Ledger>,
    taps: Taps,
    /// Compiling filters is work for the processor: more at once would only wait for each other. What compiles nothing
    /// needs no place, so that no number of filters holds up a disarming, a deletion or a finalizer.
    pub(super) places: Arc<Semaphore>,
    now: fn() -> Timestamp,
}

impl Webhooks {
    /// Webhooks that decide by `rules` and record in `ledger`.
    pub fn new(rules: Rules, ledger: Arc<dyn Ledger>, taps: Taps, now: fn() -> Timestamp) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            rules: Arc::new(rules),
            ledger,
            taps,
            places: Arc::new(Semaphore::new(2 * processors)),
            now,
        }
    }

    /// The body of the answer to a body that came in at the path of `hooked` and `purpose`.
    ///
    /// # Errors
    /// It is no request for admission.
    pub async fn review(&self, hooked: &Hooked, purpose: Purpose, body: &[u8]) -> Result<Value, Malformed> {
        let mut asked = Asked::read(body)?;
        let start = Instant::now();
        let answer = match asked.misplaced(hooked, purpose) {
            Some(why) => Answer::Refused(refusal::misplaced(why)),
            None => self.answer(hooked, purpose, &mut asked, start).await,
        };
        if let Answer::Refused(refusal) = &answer {
            tracing::info!(
                kind = hooked.kind.as_str(),
                name = asked.name,
                operation = asked.operation,
                code = refusal.code,
                "a request is refused"
            );
        }
        Ok(answer.to_review(&asked))
    }

    async fn answer(&self, hooked: &Hooked, purpose: Purpose, asked: &mut Asked, start: Instant) -> Answer {
        let request = Arc::new(self.request(hooked, purpose, asked).await);
        let until = start + DECIDING;
        match purpose {
            Purpose::Mutate => match self
                .off_the_workers(&request, until, false, trawl_admission::mutate)
                .await
            {
                Ok(mutation) => Answer::Admitted {
                    patch: mutation.patch,
                    warnings: mutation.warnings,
                },
                Err(why) => Answer::Refused(refusal::undecided(why)),
            },
            Purpose::Validate => {
                let compiles = trawl_admission::compiles(&request);
                let verdict = self.off_the_workers(&request, until, compiles, trawl_admission::validate);
                match verdict.await {
                    Ok(verdict) => {
                        self.record_and_answer(hooked, asked, &request, verdict, start)
                            .await
                    }
                    Err(why) => Answer::Refused(refusal::undecided(why)),
                }
            }
        }
    }

    /// Commits the record that the verdict calls for. Without it nothing is admitted; a refusal stays one.
    async fn record_and_answer(
        &self,
        hooked: &Hooked,
        asked: &Asked,
        request: &Request,
        verdict: trawl_admission::Verdict,
        start: Instant,
    ) -> Answer {
        let forbidden = refusal::is_forbidden(&self.rules, request, &verdict.problems);
        if let Some(action) = verdict.action
            && !asked.dry_run.unwrap_or_default()
        {
            let entry = entry::entry(hooked, asked, request, &verdict, action, forbidden);
            let slow = || LedgerError::Unavailable("it did not answer in time".into());
            let committed = timeout_at(start + DEADLINE, self.ledger.commit(entry)).await;
            if let Err(error) = committed.unwrap_or_else(|_| Err(slow())) {
                tracing::error!(%error, uid = asked.uid, "a decision could not be recorded");
                if verdict.problems.is_empty() {
                    return Answer::Refused(refusal::unrecorded(&error));
                }
            }
        }
        if verdict.problems.is_empty() {
            Answer::Admitted {
                patch: Vec::new(),
                warnings: verdict.warnings,
            }
        } else {
            Answer::Refused(refusal::of_verdict(verdict.problems, verdict.warnings, forbidden))
        }
    }

    async fn off_the_workers<T: Send + 'static>(
        &self,
        request: &Arc<Request>,
        until: Instant,
        compiles: bool,
        decide: fn(&Rules, &Request) -> T,
    ) -> Result<T, &'static str> {
        let (rules, request, places) = (self.rules.clone(), request.clone(), self.places.clone());
        let work = async move {
            let place = match compiles {
                true => Some(places.acquire_owned().await.map_err(|_| "the operator stops")?),
                false => None,
            };
            let decided = tokio::task::spawn_blocking(move || {
                let decided = decide(&rules, &request);
                drop(place);
                decided
            });
            decided
                .await
                .map_err(|_| "deciding failed; the operator's log says more")
        };
        timeout_at(until, work)
            .await
            .unwrap_or(Err("the operator has too much to do"))
    }

    /// What is decided about. The objects move there: they may be large, and many requests may be under way.
    async fn request(&self, hooked: &Hooked, purpose: Purpose, asked: &mut Asked) -> Request {
        let operation = match asked.operation.as_str() {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            _ => Operation::Delete,
        };
        let named = asked
            .object
            .as_ref()
            .and_then(|o| o["spec"]["tapRef"]["name"].as_str());
        let ours = asked.namespace == self.rules.namespace;
        let tap = match named {
            Some(name) if purpose == Purpose::Validate && ours => self.taps.look(name).await,
            _ => TapReference::Unknown,
        };
        Request {
            kind: hooked.kind,
            operation,
            namespace: asked.namespace.clone(),
            object: asked.object.take(),
            old: asked.old_object.take(),
            caller: Caller {
                username: asked.user_info.username.clone(),
                groups: asked.user_info.groups.clone().unwrap_or_default(),
            },
            now: (self.now)(),
            tap,
        }
    }
}
