//! What the API server answers with the webhooks installed.

mod certificates;
mod contract;
mod controllers;
mod identity;
mod load;
mod outage;
mod refusals;
