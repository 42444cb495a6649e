//! The four kinds by name.

use std::fmt;

/// One of the four kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// NetworkTap.
    NetworkTap,
    /// CapturePolicy.
    CapturePolicy,
    /// CaptureJob.
    CaptureJob,
    /// PortMirror.
    PortMirror,
}

impl Kind {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 4] = [
        Self::NetworkTap,
        Self::CapturePolicy,
        Self::CaptureJob,
        Self::PortMirror,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NetworkTap => "NetworkTap",
            Self::CapturePolicy => "CapturePolicy",
            Self::CaptureJob => "CaptureJob",
            Self::PortMirror => "PortMirror",
        }
    }

    /// The kind of that name, exactly as it is written.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
