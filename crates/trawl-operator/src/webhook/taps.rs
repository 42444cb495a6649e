//! Whether a tap is there, without ever holding an admission up.

use std::time::Duration;

use kube::Api;
use tokio::sync::Semaphore;
use trawl_admission::TapReference;
use trawl_api::NetworkTap;
use trawl_api::validation::is_subdomain;

/// A look that takes longer is given up.
const PATIENCE: Duration = Duration::from_millis(500);
/// Looks at a time; whoever comes on top of that goes without.
const AT_ONCE: usize = 16;

/// Looks taps up.
pub struct Taps {
    api: Api<NetworkTap>,
    places: Semaphore,
}

impl Taps {
    /// Looks at the taps behind `api`.
    pub fn new(api: Api<NetworkTap>) -> Self {
        Self {
            api,
            places: Semaphore::new(AT_ONCE),
        }
    }

    /// What is known about the tap of this name within half a second.
    pub async fn look(&self, name: &str) -> TapReference {
        // Anything else would be the path of another object.
        if !is_subdomain(name) {
            return TapReference::Unknown;
        }
        let Ok(_place) = self.places.try_acquire() else {
            return TapReference::Unknown;
        };
        match tokio::time::timeout(PATIENCE, self.api.get_metadata_opt(name)).await {
            Ok(Ok(Some(_))) => TapReference::Found,
            Ok(Ok(None)) => TapReference::Missing,
            Ok(Err(_)) | Err(_) => TapReference::Unknown,
        }
    }
}
