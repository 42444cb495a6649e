//! The two clients: one that may carry the token, to the gateway; one that never sees it, to the store.

use std::time::Duration;

use reqwest::{Client, redirect};

use super::endpoint::Endpoint;
use crate::{Failure, connect::causes};

/// No answer for this long is an interruption.
const SILENCE: Duration = Duration::from_secs(30);

/// A client that speaks https only, trusts only the endpoint's authorities and follows nothing by itself.
pub fn client(endpoint: &Endpoint) -> Result<Client, Failure> {
    let mut builder = Client::builder()
        .https_only(true)
        .redirect(redirect::Policy::none())
        .referer(false)
        .connect_timeout(Duration::from_secs(10))
        .read_timeout(SILENCE)
        .user_agent(concat!("trawlctl/", env!("CARGO_PKG_VERSION")));
    if let Some(authorities) = &endpoint.authorities {
        builder = builder.tls_certs_only(authorities.iter().cloned());
    }
    builder.build().map_err(|error| {
        Failure::usage(format!(
            "--ca: the authorities cannot be used: {}",
            causes(&error.without_url())
        ))
    })
}

/// What went wrong on the way, without the URL: a presigned one is a secret.
pub fn trouble(error: reqwest::Error) -> String {
    causes(&error.without_url())
}
