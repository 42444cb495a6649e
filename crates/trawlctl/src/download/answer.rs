//! What the gateway's answer means.

use std::time::Duration;

use reqwest::{Response, StatusCode, Url, header};
use serde::Deserialize;
use trawl_artifact::text::{clean, is_sha256};

use super::https::trouble;
use crate::Failure;

/// Header with the hash of the capture file.
const SHA256: &str = "x-trawl-sha256";
const REQUEST_ID: &str = "x-request-id";
/// Longest error body that is looked at, in bytes.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// Longest wait that a server may ask for.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A refusal that may pass, or one that will not.
#[derive(Debug)]
pub enum Trouble {
    /// Try again, after the time that the server asked for.
    Passing {
        failure: Failure,
        wait: Option<Duration>,
    },
    Final(Failure),
}

impl Trouble {
    pub fn passing(message: impl Into<String>) -> Self {
        Self::Passing {
            failure: Failure::new(message),
            wait: None,
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Final(failure)
    }
}

/// Where the bytes are, and what they must hash to (a manifest has no hash in the status).
#[derive(Debug)]
pub enum Answer {
    /// The gateway sends them itself.
    Bytes {
        response: Response,
        sha256: Option<String>,
    },
    /// The store has them, for whoever holds this link.
    Elsewhere { url: Url, sha256: Option<String> },
}

/// Reads the answer of the gateway at `asked`.
pub async fn read(response: Response, asked: &Url) -> Result<Answer, Trouble> {
    let sha256 = response
        .headers()
        .get(SHA256)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    if sha256.as_deref().is_some_and(|hash| !is_sha256(hash)) {
        return Err(Failure::new("the gateway announced a hash that is no SHA-256 in lower-case hex").into());
    }
    match response.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            Ok(Answer::Bytes { response, sha256 })
        }
        StatusCode::SEE_OTHER => {
            let location = response
                .headers()
                .get(header::LOCATION)
                .and_then(|value| value.to_str().ok());
            let url =
                location.ok_or_else(|| Failure::new("the gateway sent a redirect without a location"))?;
            Ok(Answer::Elsewhere {
                url: elsewhere(asked, url)?,
                sha256,
            })
        }
        _ => Err(refusal(response).await),
    }
}

fn elsewhere(asked: &Url, location: &str) -> Result<Url, Failure> {
    let url = asked
        .join(location)
        .map_err(|_| Failure::new("the gateway redirected to something that is no URL"))?;
    if url.scheme() != "https" || !url.username().is_empty() || url.password().is_some() {
        return Err(
            Failure::new("the gateway redirected to a store without https, which is not followed")
                .hint("the administrator must give the store an https endpoint"),
        );
    }
    Ok(url)
}

#[derive(Default, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

async fn refusal(mut response: Response) -> Trouble {
    let status = response.status();
    let wait = response
        .headers()
        .get(header::RETRY_AFTER)
        .and_then(|v| v.to_str().ok()?.parse().ok());
    let wait = wait.map(|seconds| Duration::from_secs(seconds).min(MAX_WAIT));
    let id = response
        .headers()
        .get(REQUEST_ID)
        .and_then(|v| v.to_str().ok())
        .map(|id| clean(id, 64));
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_ERROR_BYTES => body.extend_from_slice(&chunk),
            Ok(_) => break,
            Err(error) => {
                return Trouble::passing(format!("the answer of the gateway broke off: {}", trouble(error)));
            }
        }
    }
    let body: ErrorBody = serde_json::from_slice(&body).unwrap_or_default();
    let failure = explain(status, &body, id.as_deref());
    let passes = matches!(status, StatusCode::TOO_MANY_REQUESTS) || status.is_server_error();
    if passes {
        Trouble::Passing { failure, wait }
    } else {
        Trouble::Final(failure)
    }
}

fn explain(status: StatusCode, body: &ErrorBody, id: Option<&str>) -> Failure {
    let code = if body.code.is_empty() {
        status.to_string()
    } else {
        clean(&body.code, 64)
    };
    let id = id.map(|id| format!(" (request {id})")).unwrap_or_default();
    let failure = Failure::new(format!(
        "the gateway answered {code}: {}{id}",
        clean(&body.message, 512)
    ));
    let next = match status {
        StatusCode::UNAUTHORIZED => {
            "make a fresh token for the audience trawl-artifact-gateway, for example: \
             kubectl create token SERVICEACCOUNT --audience trawl-artifact-gateway"
        }
        StatusCode::FORBIDDEN => {
            "ask the administrator for the verb get on capturejobs/download in this namespace"
        }
        StatusCode::NOT_FOUND => {
            "check the name with: trawlctl capture list; a name that is there lost its file"
        }
        StatusCode::CONFLICT => {
            "look at its phase with: trawlctl capture describe NAME; wait with: trawlctl capture watch NAME"
        }
        StatusCode::GONE => {
            "its retention is over and the file is deleted; a new capture needs a longer --retention"
        }
        StatusCode::BAD_REQUEST => "check the name and the namespace (-n)",
        StatusCode::TOO_MANY_REQUESTS => "wait a minute: 30 downloads a minute are allowed",
        _ if status.is_server_error() => {
            "try again later; if it stays, show the administrator the request number"
        }
        _ => "is this the URL of a Trawl gateway?",
    };
    failure.hint(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_only_followed_to_https_without_credentials() {
        let asked = Url::parse("https://gateway/x").expect("url");
        assert!(elsewhere(&asked, "https://store/bucket/key?signature=1").is_ok());
        for location in [
            "http://store/key",
            "file:///etc/passwd",
            "https://user:word@store/key",
            "ftp://store/",
        ] {
            assert!(elsewhere(&asked, location).is_err(), "{location}");
        }
    }

    #[test]
    fn every_refusal_says_what_to_do_next() {
        for status in [400, 401, 403, 404, 409, 410, 429, 500, 503, 418] {
            let status = StatusCode::from_u16(status).expect("status");
            let body = ErrorBody {
                code: "Code".into(),
                message: "why\u{1b}[2J".into(),
            };
            let failure = explain(status, &body, Some("r-1"));
            assert!(format!("{failure:?}").contains("hint: Some"), "{status}");
            assert!(
                failure.to_string().contains("Code: why [2J (request r-1)"),
                "{failure}"
            );
        }
    }
}
