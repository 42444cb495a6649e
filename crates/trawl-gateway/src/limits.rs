//! Attempt limits: one for everybody before any token is looked at, one per authenticated identity after.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// A token bucket's refill and size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    pub burst: f64,
}

/// All attempts together: what the API server is asked to review at most.
pub const GLOBAL: Rate = Rate {
    per_second: 50.0,
    burst: 200.0,
};
/// One identity: 30 a minute, 10 at once.
pub const PER_IDENTITY: Rate = Rate {
    per_second: 0.5,
    burst: 10.0,
};
/// Identities remembered at most; the one that was idle longest is forgotten first.
pub const MAX_IDENTITIES: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn full(rate: Rate, now: Instant) -> Self {
        Self {
            tokens: rate.burst,
            at: now,
        }
    }

    /// Takes one attempt, or says how long to wait for the next.
    fn take(&mut self, rate: Rate, now: Instant) -> Result<(), Duration> {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * rate.per_second).min(rate.burst);
        self.at = self.at.max(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.tokens) / rate.per_second))
    }
}

/// Both limiters. Time is always an argument.
#[derive(Debug)]
pub struct Limits {
    global: Bucket,
    identities: HashMap<String, Bucket>,
    max_identities: usize,
}

impl Limits {
    pub fn new(now: Instant) -> Self {
        Self::bounded(now, MAX_IDENTITIES)
    }

    fn bounded(now: Instant, max_identities: usize) -> Self {
        Self {
            global: Bucket::full(GLOBAL, now),
            identities: HashMap::new(),
            max_identities,
        }
    }

    /// Counts one attempt of anybody. `Err` is the time to wait.
    pub fn attempt(&mut self, now: Instant) -> Result<(), Duration> {
        self.global.take(GLOBAL, now)
    }

    /// Counts one attempt of `identity`. `Err` is the time to wait.
    pub fn attempt_by(&mut self, identity: &str, now: Instant) -> Result<(), Duration> {
        if let Some(bucket) = self.identities.get_mut(identity) {
            return bucket.take(PER_IDENTITY, now);
        }
        if self.identities.len() >= self.max_identities {
            let idlest = self
                .identities
                .iter()
                .min_by_key(|(_, bucket)| bucket.at)
                .map(|(name, _)| name.clone());
            idlest.and_then(|name| self.identities.remove(&name));
        }
        let mut bucket = Bucket::full(PER_IDENTITY, now);
        let taken = bucket.take(PER_IDENTITY, now);
        self.identities.insert(identity.to_owned(), bucket);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_has_ten_at_once_and_then_one_every_two_seconds() {
        let start = Instant::now();
        let mut limits = Limits::new(start);
        for _ in 0..10 {
            assert_eq!(limits.attempt_by("a", start), Ok(()));
        }
        assert_eq!(limits.attempt_by("a", start), Err(Duration::from_secs(2)));
        assert_eq!(
            limits.attempt_by("b", start),
            Ok(()),
            "another identity is not held up"
        );
        let later = start + Duration::from_secs(2);
        assert_eq!(limits.attempt_by("a", later), Ok(()));
        assert!(limits.attempt_by("a", later).is_err());
    }

    #[test]
    fn an_hour_of_silence_earns_no_more_than_the_burst() {
        let start = Instant::now();
        let mut limits = Limits::new(start);
        limits.attempt_by("a", start).expect("first");
        let later = start + Duration::from_secs(3600);
        let passed = (0..50).filter(|_| limits.attempt_by("a", later).is_ok()).count();
        assert_eq!(passed, 10);
    }

    #[test]
    fn everybody_together_is_limited_before_anybody_is_known() {
        let start = Instant::now();
        let mut limits = Limits::new(start);
        let passed = (0..1000).filter(|_| limits.attempt(start).is_ok()).count();
        assert_eq!(passed, GLOBAL.burst as usize);
        assert!(limits.attempt(start + Duration::from_millis(20)).is_ok());
    }

    #[test]
    fn remembered_identities_are_bounded_and_the_idlest_is_forgotten() {
        let start = Instant::now();
        let mut limits = Limits::bounded(start, 3);
        for (second, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
            limits
                .attempt_by(name, start + Duration::from_secs(second as u64))
                .expect("first attempt");
        }
        assert_eq!(limits.identities.len(), 3);
        assert!(!limits.identities.contains_key("a"));
        assert!(limits.identities.contains_key("d"));
    }

    #[test]
    fn a_clock_that_steps_back_refills_nothing() {
        let start = Instant::now() + Duration::from_secs(60);
        let mut limits = Limits::new(start);
        for _ in 0..10 {
            limits.attempt_by("a", start).expect("burst");
        }
        assert!(limits.attempt_by("a", start - Duration::from_secs(30)).is_err());
        assert!(limits.attempt_by("a", start).is_err());
    }
}
