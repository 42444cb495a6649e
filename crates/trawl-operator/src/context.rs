//! What both controllers work with.

use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use trawl_config::installation::Installation;
use trawl_kube::events::Events;
use trawl_lifecycle::limits::Limits;
use trawl_store::Store;

/// Shared by all reconciliations of one operator.
pub struct Context {
    pub client: Client,
    pub config: Installation,
    pub store: Store,
    pub limits: Limits,
    pub events: Events,
    /// Only one stored object is read back at a time, so that verification cannot crowd out everything else.
    pub verifying: Semaphore,
    pub now: fn() -> Timestamp,
}

impl Context {
    /// A context with the ordinary clock.
    pub fn new(client: Client, config: Installation, store: Store, limits: Limits) -> Self {
        let events = Events::new(client.clone(), trawl_api::names::OPERATOR_FIELD_MANAGER);
        Self { client, config, store, limits, events, verifying: Semaphore::new(1), now: Timestamp::now }
    }

    /// The API of a namespaced kind in the installation's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.config.namespace)
    }
}
