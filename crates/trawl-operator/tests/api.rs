//! The operator against a real API server, controller manager and scheduler. Kubelet, sensor, reporter and runner are
//! played by the test; `TRAWL_TEST_KUBECONFIG` names the server.

// The table of the contract; not all that goes with it is used here.
#[path = "api/captures.rs"]
mod captures;
#[allow(dead_code)]
#[path = "../../trawl-api/tests/cases/mod.rs"]
mod cases;
#[path = "api/faults.rs"]
mod faults;
#[path = "api/store.rs"]
mod store;
mod support;
#[path = "api/taps.rs"]
mod taps;
#[path = "api/webhooks/mod.rs"]
mod webhooks;
