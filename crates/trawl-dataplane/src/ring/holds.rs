//! Which buffers are held beyond their visit, and which of those the log has forgotten meanwhile.

/// Set in a count when the buffer is no more in the log.
const PARKED: u32 = 1 << 31;

/// Counts per buffer. Kept by the receive thread alone: no atomics.
#[derive(Debug)]
pub(super) struct Holds {
    counts: Box<[u32]>,
    held: usize,
}

impl Holds {
    /// For buffers `0..buffers`, none held.
    pub fn new(buffers: usize) -> Self {
        Self {
            counts: vec![0; buffers].into_boxed_slice(),
            held: 0,
        }
    }

    /// Buffers that are held now.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Holds a buffer that is in the log this many times more.
    pub fn hold(&mut self, buffer: usize, times: u32) {
        let count = &mut self.counts[buffer];
        debug_assert!(*count & PARKED == 0);
        self.held += usize::from(*count == 0 && times > 0);
        *count += times;
    }

    /// Whether somebody holds it.
    pub fn is_held(&self, buffer: usize) -> bool {
        self.counts[buffer] > 0
    }

    /// The log forgets this buffer: true when it is held and must wait.
    pub fn park(&mut self, buffer: usize) -> bool {
        let count = &mut self.counts[buffer];
        if *count == 0 {
            return false;
        }
        *count |= PARKED;
        true
    }

    /// Gives up one hold: true when it was the last one of a parked buffer, which may now be received into.
    pub fn release(&mut self, buffer: usize) -> bool {
        let Some(count) = self.counts.get_mut(buffer).filter(|c| **c & !PARKED > 0) else {
            debug_assert!(false, "a buffer came back that nobody holds");
            return false;
        };
        *count -= 1;
        if *count & !PARKED > 0 {
            return false;
        }
        self.held -= 1;
        std::mem::take(count) == PARKED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_buffer_is_free_with_its_last_release_and_not_earlier() {
        let mut holds = Holds::new(4);
        assert!(!holds.park(0), "nobody holds it");
        holds.hold(1, 2);
        holds.hold(2, 1);
        assert_eq!(
            (holds.held(), holds.is_held(1), holds.is_held(0)),
            (2, true, false)
        );
        assert!(holds.park(1));
        assert!(!holds.release(1));
        assert!(holds.release(1));
        assert_eq!(holds.held(), 1);
        assert!(!holds.park(1), "it starts anew");
    }

    #[test]
    fn a_buffer_that_comes_back_while_it_is_in_the_log_is_freed_by_the_log() {
        let mut holds = Holds::new(1);
        holds.hold(0, 1);
        assert!(!holds.release(0));
        assert_eq!(holds.held(), 0);
        assert!(!holds.park(0));
    }
}
