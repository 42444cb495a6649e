//! The bytes of single blocks: integers in the section's byte order, options, interface descriptions.

use super::{Interface, Resolution, WalkError};

pub(super) const SECTION_HEADER: u32 = 0x0A0D_0D0A;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
pub(super) const PACKET: u32 = 2;
pub(super) const SIMPLE_PACKET: u32 = 3;
pub(super) const ENHANCED_PACKET: u32 = 6;

const OPT_END: u16 = 0;
pub(super) const OPT_COMMENT: u16 = 1;
pub(super) const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// Byte order of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// From the four bytes of the byte-order magic.
    pub(super) fn from_magic(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x4D, 0x3C, 0x2B, 0x1A] => Some(Self::Little),
            [0x1A, 0x2B, 0x3C, 0x4D] => Some(Self::Big),
            _ => None,
        }
    }

    /// The integer at `at`; 0 beyond the end, which callers exclude by checking lengths first.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let Some(raw) = bytes.get(at..at + 4).and_then(|s| <[u8; 4]>::try_from(s).ok()) else {
            return 0;
        };
        match self {
            Self::Little => u32::from_le_bytes(raw),
            Self::Big => u32::from_be_bytes(raw),
        }
    }

    /// As [`Order::u32`].
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let Some(raw) = bytes.get(at..at + 2).and_then(|s| <[u8; 2]>::try_from(s).ok()) else {
            return 0;
        };
        match self {
            Self::Little => u16::from_le_bytes(raw),
            Self::Big => u16::from_be_bytes(raw),
        }
    }

    fn i64(self, raw: [u8; 8]) -> i64 {
        match self {
            Self::Little => i64::from_le_bytes(raw),
            Self::Big => i64::from_be_bytes(raw),
        }
    }
}

/// Calls `each` with code and value of every option in `bytes`. `at` is the block's offset, for errors.
pub(super) fn options<'a>(
    order: Order,
    mut bytes: &'a [u8],
    at: u64,
    mut each: impl FnMut(u16, &'a [u8]) -> Result<(), WalkError>,
) -> Result<(), WalkError> {
    while !bytes.is_empty() {
        if bytes.len() < 4 {
            return Err(WalkError::BadOption { at, code: 0 });
        }
        let code = order.u16(bytes, 0);
        let length = usize::from(order.u16(bytes, 2));
        if code == OPT_END {
            return Ok(());
        }
        let value = bytes
            .get(4..4 + length)
            .ok_or(WalkError::BadOption { at, code })?;
        each(code, value)?;
        bytes = bytes
            .get(4 + length.next_multiple_of(4)..)
            .ok_or(WalkError::BadOption { at, code })?;
    }
    Ok(())
}

/// Reads the body of an interface description (link type to options). `body` is at least 8 bytes.
pub(super) fn interface(order: Order, body: &[u8], at: u64) -> Result<Interface, WalkError> {
    let mut found = Interface {
        link_type: order.u16(body, 0),
        snaplen: order.u32(body, 4),
        name: None,
        resolution: Resolution::Decimal(6),
        offset_secs: 0,
    };
    options(order, &body[8..], at, |code, value| {
        match code {
            IF_NAME => found.name = Some(text(value)),
            IF_TSRESOL => found.resolution = resolution(value).ok_or(WalkError::BadOption { at, code })?,
            IF_TSOFFSET => {
                let raw = value.try_into().map_err(|_| WalkError::BadOption { at, code })?;
                found.offset_secs = order.i64(raw);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

fn resolution(value: &[u8]) -> Option<Resolution> {
    match *value {
        [n] if n & 0x80 == 0 && n <= 18 => Some(Resolution::Decimal(n)),
        [n] if n & 0x80 != 0 && n & 0x7F <= 63 => Some(Resolution::Binary(n & 0x7F)),
        _ => None,
    }
}

/// Text of an option: UTF-8 as the format demands, damaged bytes replaced, without trailing NULs.
pub(super) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}
