//! The mapped frame memory of a queue, as the receive thread sees it.

use std::ptr::NonNull;

use super::super::bpf::{STAMP_BYTES, STAMP_MAGIC};

/// Where the buffers are. Addresses are offsets, as in descriptors.
#[derive(Debug)]
pub(super) struct Region {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping is no thread's own; what may be touched when is the contract of the methods.
unsafe impl Send for Region {}

impl Region {
    /// # Safety
    /// `base` points to `length` mapped bytes, which stay mapped as long as this lives.
    pub unsafe fn new(base: NonNull<u8>, length: usize) -> Self {
        Self { base, length }
    }

    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// Bytes of a frame.
    ///
    /// # Safety
    /// The buffer is not with the kernel and does not go there while the result lives.
    pub unsafe fn bytes<'a>(&self, address: usize, length: usize) -> &'a [u8] {
        assert!(
            address + length <= self.length,
            "the kernel gave a frame outside of the memory"
        );
        // SAFETY: inside the mapping, and nobody writes the bytes of a received frame, says the caller.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(address), length) }
    }

    /// Has the processor fetch the stamp and the beginning of a frame, which are on one cache line.
    pub fn prefetch(&self, address: usize) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint that reads nothing, whatever the address; the memory is not touched in the sense of the
        // language.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.base.as_ptr().wrapping_add(address).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }

    /// The stamp before a frame; none when the program left none.
    ///
    /// # Safety
    /// The buffer is not with the kernel.
    pub unsafe fn stamp(&self, address: usize) -> Option<u64> {
        let (stamp, magic) = self.metadata(address)?;
        // SAFETY: inside the mapping; the bytes before a frame are read and written by the receive thread alone.
        unsafe { (magic.read_unaligned() == STAMP_MAGIC).then(|| stamp.read_unaligned()) }
    }

    /// Corrects the stamp before a frame.
    ///
    /// # Safety
    /// The buffer is not with the kernel.
    pub unsafe fn set_stamp(&mut self, address: usize, stamp: u64) {
        if let Some((place, _)) = self.metadata(address) {
            // SAFETY: as in `stamp`; they are no part of what others hold.
            unsafe { place.write_unaligned(stamp) };
        }
    }

    fn metadata(&self, address: usize) -> Option<(*mut u64, *mut u64)> {
        let start = address.checked_sub(STAMP_BYTES)?;
        if address > self.length {
            return None;
        }
        // SAFETY: both words lie before `address`, inside the mapping.
        let stamp = unsafe { self.base.as_ptr().add(start).cast::<u64>() };
        // SAFETY: as above.
        Some((stamp, unsafe { stamp.add(1) }))
    }
}
