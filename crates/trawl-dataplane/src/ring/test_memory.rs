//! Frame memory for tests of what stands above the rings: written before it is shared, never after.

use std::ptr::NonNull;

use super::memory::{Memory, Owner};

#[derive(Debug)]
struct Bytes(#[allow(dead_code)] Box<[u8]>);

impl Owner for Bytes {}

/// Memory with this content, and its number.
pub(crate) fn of(mut content: Box<[u8]>) -> (Memory, u32) {
    let (base, length) = (NonNull::from(&mut content[..]).cast(), content.len());
    // SAFETY: the box keeps its bytes, where they are, as long as the memory lives, and nobody writes them again.
    let memory = unsafe { Memory::new(base, length, Box::new(Bytes(content))) };
    let id = memory.id();
    (memory, id)
}
