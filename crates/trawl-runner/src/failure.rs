//! From what went wrong to the one reason that the job's status names.

use trawl_artifact::outcome::FailureReason;
use trawl_artifact::sanitize::sanitize;
use trawl_artifact::text::{MAX_MESSAGE_BYTES, clean};
use trawl_control::{ClientError, ErrorCode};
use trawl_store::StoreError;

/// Why the Job failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub reason: FailureReason,
    /// At most 512 bytes, without control characters.
    pub message: String,
}

impl Failure {
    pub fn new(reason: FailureReason, message: impl AsRef<str>) -> Self {
        Self {
            reason,
            message: clean(&sanitize(message.as_ref()), MAX_MESSAGE_BYTES),
        }
    }

    pub(crate) fn internal(message: impl AsRef<str>) -> Self {
        Self::new(FailureReason::InternalError, message)
    }
}

/// What a refusal by captured means for the job.
pub fn reason_of(code: ErrorCode) -> FailureReason {
    match code {
        ErrorCode::InvalidBounds => FailureReason::InvalidBounds,
        ErrorCode::InvalidFilter | ErrorCode::FilterRejectsAll => FailureReason::InvalidFilter,
        ErrorCode::InterfaceUnavailable | ErrorCode::InterfaceConflict => FailureReason::InterfaceUnavailable,
        ErrorCode::TooManyCaptures | ErrorCode::OutputFailed => FailureReason::CaptureFailed,
        ErrorCode::MalformedRequest
        | ErrorCode::UnsupportedVersion
        | ErrorCode::MessageTooLarge
        | ErrorCode::NotAuthorized
        | ErrorCode::MissingDescriptor
        | ErrorCode::FeedFailed
        | ErrorCode::Internal => FailureReason::InternalError,
    }
}

impl From<&ClientError> for Failure {
    fn from(error: &ClientError) -> Self {
        match error {
            ClientError::Refused(refusal) => {
                let field = refusal
                    .field
                    .as_ref()
                    .filter(|f| !refusal.message.starts_with(f.as_str()))
                    .map(|f| format!("{f}: "))
                    .unwrap_or_default();
                Self::new(reason_of(refusal.code), format!("{field}{}", refusal.message))
            }
            ClientError::Unreachable { .. } => {
                Self::new(FailureReason::InterfaceUnavailable, error.to_string())
            }
            _ => Self::new(FailureReason::CaptureFailed, error.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(FailureReason::UploadFailed, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_of_captured_has_one_reason() {
        use FailureReason as R;
        let table = [
            (ErrorCode::MalformedRequest, R::InternalError),
            (ErrorCode::UnsupportedVersion, R::InternalError),
            (ErrorCode::MessageTooLarge, R::InternalError),
            (ErrorCode::NotAuthorized, R::InternalError),
            (ErrorCode::InvalidBounds, R::InvalidBounds),
            (ErrorCode::InvalidFilter, R::InvalidFilter),
            (ErrorCode::FilterRejectsAll, R::InvalidFilter),
            (ErrorCode::InterfaceUnavailable, R::InterfaceUnavailable),
            (ErrorCode::InterfaceConflict, R::InterfaceUnavailable),
            (ErrorCode::TooManyCaptures, R::CaptureFailed),
            (ErrorCode::MissingDescriptor, R::InternalError),
            (ErrorCode::OutputFailed, R::CaptureFailed),
            (ErrorCode::Internal, R::InternalError),
        ];
        for (code, reason) in table {
            assert_eq!(reason_of(code), reason, "{code:?}");
            let refusal = trawl_control::ErrorReply {
                code,
                field: Some("filter".into()),
                message: "m\n".into(),
            };
            let failure = Failure::from(&ClientError::Refused(refusal));
            assert_eq!((failure.reason, failure.message.as_str()), (reason, "filter: m "));
        }
    }

    #[test]
    fn a_field_that_the_message_already_begins_with_is_not_said_twice() {
        let refusal = trawl_control::ErrorReply {
            code: ErrorCode::InvalidFilter,
            field: Some("filter".into()),
            message: "filter, byte 1: not a filter word".into(),
        };
        let failure = Failure::from(&ClientError::Refused(refusal));
        assert_eq!(failure.message, "filter, byte 1: not a filter word");
    }

    #[test]
    fn a_daemon_that_goes_away_is_a_failed_capture_and_one_that_was_never_there_an_unavailable_interface() {
        assert_eq!(
            Failure::from(&ClientError::Closed).reason,
            FailureReason::CaptureFailed
        );
        let problem = std::io::ErrorKind::ConnectionRefused.into();
        let away = ClientError::Unreachable {
            path: "/run/trawl/captured.sock".into(),
            problem,
        };
        assert_eq!(Failure::from(&away).reason, FailureReason::InterfaceUnavailable);
    }
}
