//! How many may be served at a time, of all taps together.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of places.
#[derive(Debug)]
pub(crate) struct Places {
    all: usize,
    taken: AtomicUsize,
}

/// One that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Place(&'static Places);

impl Places {
    /// So many, none of them taken.
    pub const fn new(all: usize) -> Self {
        Self {
            all,
            taken: AtomicUsize::new(0),
        }
    }

    /// `None` when all are taken.
    pub fn take(&'static self) -> Option<Place> {
        let more = |taken| (taken < self.all).then_some(taken + 1);
        let taken = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.ok().map(|_| Place(self))
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_it_is_given_up() {
        static PLACES: Places = Places::new(2);
        let (one, two) = (PLACES.take(), PLACES.take());
        assert!(one.is_some() && two.is_some() && PLACES.take().is_none());
        drop(one);
        assert_eq!(PLACES.taken(), 1);
        assert!(PLACES.take().is_some());
    }
}
