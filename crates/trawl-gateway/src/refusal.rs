//! Every way in which the gateway says no, and its answer on the wire.

use std::time::Duration;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

/// The closed set of error codes of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Code {
    BadRequest,
    Unauthenticated,
    Forbidden,
    NotFound,
    NotDownloadable,
    Expired,
    RateLimited,
    Unavailable,
}

impl Code {
    pub const ALL: [Self; 8] = [
        Self::BadRequest,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::NotDownloadable,
        Self::Expired,
        Self::RateLimited,
        Self::Unavailable,
    ];

    pub fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::NotDownloadable => StatusCode::CONFLICT,
            Self::Expired => StatusCode::GONE,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// How the decision log names it: somebody was told no, or the gateway could not decide.
    pub fn decision(self) -> &'static str {
        if self == Self::Unavailable {
            "failed"
        } else {
            "denied"
        }
    }
}

/// How long a client should leave a dependency of the gateway alone.
const UNAVAILABLE_RETRY: Duration = Duration::from_secs(5);

/// One refusal. `message` goes to the caller, `cause` only to the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    pub retry_after: Option<Duration>,
    pub cause: Option<String>,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after: None,
            cause: None,
        }
    }

    pub fn rate_limited(message: impl Into<String>, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..Self::new(Code::RateLimited, message)
        }
    }

    /// A dependency could not be asked. The cause may name internal addresses, so the caller never sees it.
    pub fn unavailable(what: &str, cause: impl Into<String>) -> Self {
        Self {
            retry_after: Some(UNAVAILABLE_RETRY),
            cause: Some(cause.into()),
            ..Self::new(Code::Unavailable, format!("{what} is unavailable; try again"))
        }
    }

    /// The answer to the caller of request `request_id`.
    pub fn response(&self, request_id: &str) -> Response {
        let body = ErrorBody {
            code: self.code,
            message: &self.message,
            request_id,
        };
        let mut response = (self.code.status(), Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(wait) = self.retry_after {
            let seconds = (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Code::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: Code,
    message: &'a str,
    request_id: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_status_of_the_contract() {
        let table = [400, 401, 403, 404, 409, 410, 429, 503];
        for (code, status) in Code::ALL.into_iter().zip(table) {
            assert_eq!(code.status().as_u16(), status, "{code:?}");
        }
    }

    #[test]
    fn a_wait_is_rounded_up_to_whole_seconds_and_never_zero() {
        for (millis, seconds) in [(0, "1"), (400, "1"), (1000, "1"), (1001, "2")] {
            let refusal = Refusal::rate_limited("slow down", Duration::from_millis(millis));
            assert_eq!(refusal.response("r").headers()[header::RETRY_AFTER], seconds);
        }
    }

    #[test]
    fn the_cause_of_an_outage_is_not_told_to_the_caller() {
        let refusal = Refusal::unavailable("the cluster API", "connect 10.0.0.1:6443 refused");
        assert!(!refusal.message.contains("10.0.0.1"));
        assert!(refusal.response("r").headers().contains_key(header::RETRY_AFTER));
    }
}
