//! The memory of received frames, readable by other threads for as long as they hold frames in it.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::batch::Held;

/// A handle to the frame memory of one queue. The memory stays mapped while a handle lives, also when its socket is closed.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u32,
    base: NonNull<u8>,
    length: usize,
    /// Unmaps it.
    _owner: Box<dyn Owner>,
}

/// Whatever keeps the memory mapped.
pub(crate) trait Owner: std::fmt::Debug + Send + Sync {}

/// Of rings whose frames are copied: there is nothing to keep.
impl Owner for () {}

// SAFETY: the memory is only ever read through `bytes`, and what it reads nobody writes.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Memory {
    /// A handle with a number of its own.
    ///
    /// # Safety
    /// `base` points to `length` bytes that stay mapped, at that place, as long as `owner` lives. Whoever makes a
    /// [`Held`] for this memory sees to it that its bytes are initialised and not written until it is given up.
    pub(super) unsafe fn new(base: NonNull<u8>, length: usize, owner: Box<dyn Owner>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(Arc::new(Inner {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            base,
            length,
            _owner: owner,
        }))
    }

    /// No memory at all.
    pub(super) fn none() -> Self {
        // SAFETY: no bytes, hence none that could be unmapped or written.
        unsafe { Self::new(NonNull::dangling(), 0, Box::new(())) }
    }

    /// What a [`Held`] of this memory carries.
    pub(super) fn id(&self) -> u32 {
        self.0.id
    }

    /// Bytes of a buffer; none when it is of another memory, which is a programming error.
    #[must_use]
    pub fn bytes<'a>(&'a self, held: &'a Held) -> &'a [u8] {
        let end = (held.offset() as usize).checked_add(held.len());
        let inside = end.is_some_and(|end| end <= self.0.length);
        debug_assert!(held.memory() == self.0.id && inside);
        if held.memory() != self.0.id || !inside {
            return &[];
        }
        // SAFETY: inside the mapping, which `_owner` keeps; a buffer that is held is not with the kernel, and it
        // goes back there only after the `Held`, which the result borrows, was given up.
        unsafe { std::slice::from_raw_parts(self.0.base.as_ptr().add(held.offset() as usize), held.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that is freed with its last handle, as a mapping is.
    #[derive(Debug)]
    struct Mapped(NonNull<[u8]>);

    impl Owner for Mapped {}

    // SAFETY: nobody else has the pointer to free it.
    unsafe impl Send for Mapped {}
    // SAFETY: the pointer is only used to free it.
    unsafe impl Sync for Mapped {}

    impl Drop for Mapped {
        fn drop(&mut self) {
            // SAFETY: it came from a box in `mapped`, and this is its only owner.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }

    fn mapped(bytes: &[u8]) -> (Memory, NonNull<u8>) {
        let length = bytes.len();
        let whole = NonNull::from(Box::leak(Box::<[u8]>::from(bytes)));
        let base = whole.cast();
        // SAFETY: `Mapped` frees the bytes when the last handle goes; the tests write what nobody holds.
        (
            unsafe { Memory::new(base, length, Box::new(Mapped(whole))) },
            base,
        )
    }

    #[test]
    fn held_bytes_are_read_on_another_thread_while_others_are_written() {
        let (memory, base) = mapped(&[7; 64]);
        let held = Held::new(memory.id(), 16, 8);
        let handle = memory.clone();
        let reader =
            std::thread::spawn(move || handle.bytes(&held).iter().map(|b| u32::from(*b)).sum::<u32>());
        for i in (0..16).chain(24..64) {
            // SAFETY: inside the memory, and not among the held bytes.
            unsafe { base.add(i).write(9) };
        }
        drop(memory);
        assert_eq!(reader.join().unwrap(), 56);
    }

    #[test]
    fn nothing_is_read_of_another_memory_or_beyond_the_end() {
        let (memory, _) = mapped(&[7; 64]);
        let (other, _) = mapped(&[8; 64]);
        for wrong in [
            Held::new(other.id(), 0, 8),
            Held::new(memory.id(), 60, 8),
            Held::new(memory.id(), u64::MAX, 8),
        ] {
            // A panic where programming errors are looked for, else no bytes.
            let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| memory.bytes(&wrong).len()));
            assert!(
                read.map_or(cfg!(debug_assertions), |length| length == 0),
                "{wrong:?}"
            );
        }
        assert!(memory.bytes(&Held::new(memory.id(), 56, 8)).len() == 8);
        let none = Memory::none();
        assert!(none.bytes(&Held::new(none.id(), 0, 0)).is_empty());
    }
}
