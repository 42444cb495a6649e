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
