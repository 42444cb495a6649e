//! Interface names, and the two kinds of interface as types: only one of them can be opened by AF_XDP.

use std::fmt;
use std::str::FromStr;

/// A Linux interface name: 1 to 15 bytes, no slash, no colon, no blank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceName(String);

/// Why a text is not an interface name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an interface name; 1 to 15 printable characters without space, slash or colon are allowed")]
pub struct BadInterfaceName;

impl FromStr for InterfaceName {
    type Err = BadInterfaceName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=15).contains(&text.len());
        let clean = text
            .bytes()
            .all(|b| b.is_ascii_graphic() && b != b'/' && b != b':');
        if fits && clean && text != "." && text != ".." {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadInterfaceName)
        }
    }
}

impl InterfaceName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An interface that receives copies of traffic and carries none of the node's own. Opened by AF_XDP, which takes
/// every frame away from the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorInterface(pub InterfaceName);

/// An interface that the node itself lives on. Opened by AF_PACKET only: AF_XDP takes a [`MirrorInterface`], and
/// nothing turns one into the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInterface {
    /// Its name.
    pub name: InterfaceName,
    /// Whether frames for other stations are wanted too.
    pub promiscuous: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_would_refuse_are_refused_here() {
        for bad in ["", "a/b", "eth0:1", "sixteen-letters-", "a b", "..", "e\u{e9}"] {
            assert!(bad.parse::<InterfaceName>().is_err(), "{bad}");
        }
        assert_eq!("enp1s0f0np0.4000".parse::<InterfaceName>(), Err(BadInterfaceName));
        assert!("enp1s0f0np0.400".parse::<InterfaceName>().is_ok());
    }
}
