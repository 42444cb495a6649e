//! Frames: a 4-byte big-endian length, then that many bytes of JSON. Pure; bytes in, bodies out.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::messages::{MAX_MESSAGE_BYTES, Message};

const PREFIX: usize = 4;

/// What is wrong with the bytes of a peer.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The announced body is longer than the limit; nothing was allocated for it.
    #[error("message of {announced} bytes announced; the limit is {limit} bytes")]
    TooLarge {
        /// The length in the prefix.
        announced: usize,
        /// The limit.
        limit: usize,
    },
    /// A body of no bytes cannot be JSON.
    #[error("message of 0 bytes announced; send one JSON object per message")]
    Empty,
    /// The connection ended inside a message.
    #[error("the connection ended inside a message, after {received} bytes of it")]
    Cut {
        /// Bytes of the unfinished message, its prefix included.
        received: usize,
    },
    /// The body is not the JSON that was expected. Says where, never what.
    #[error("message is not valid at line {line}, column {column}: {kind}")]
    Json {
        /// 1-based line of the body.
        line: usize,
        /// 1-based column of the body.
        column: usize,
        /// `syntax error`, `unknown or missing field, or value of the wrong type`, or `unexpected end`.
        kind: &'static str,
    },
}

/// One message as bytes, ready to send.
///
/// # Errors
/// [`CodecError::TooLarge`] when the body exceeds [`Message::LIMIT`].
pub fn encode<T: Serialize + Message>(message: &T) -> Result<Vec<u8>, CodecError> {
    let mut frame = vec![0; PREFIX];
    serde_json::to_writer(&mut frame, message).map_err(|e| json_error(&e))?;
    let length = frame.len() - PREFIX;
    match u32::try_from(length) {
        Ok(prefix) if length <= T::LIMIT => frame[..PREFIX].copy_from_slice(&prefix.to_be_bytes()),
        _ => {
            return Err(CodecError::TooLarge {
                announced: length,
                limit: T::LIMIT,
            });
        }
    }
    Ok(frame)
}

/// Reads a body as a message.
///
/// # Errors
/// [`CodecError::Json`] with the position of the fault.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, CodecError> {
    serde_json::from_slice(body).map_err(|e| json_error(&e))
}

fn json_error(error: &serde_json::Error) -> CodecError {
    use serde_json::error::Category;
    let kind = match error.classify() {
        Category::Data => "unknown or missing field, or value of the wrong type",
        Category::Eof => "unexpected end",
        Category::Syntax | Category::Io => "syntax error",
    };
    CodecError::Json {
        line: error.line(),
        column: error.column(),
        kind,
    }
}

/// Puts frames together from whatever pieces arrive. Holds at most one prefix and one body.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    prefix: [u8; PREFIX],
    have: usize,
    body: Vec<u8>,
    wanted: usize,
}

impl Default for Decoder {
    /// Takes bodies of at most [`MAX_MESSAGE_BYTES`], as a daemon does.
    fn default() -> Self {
        Self::with_limit(MAX_MESSAGE_BYTES)
    }
}

impl Decoder {
    /// Takes bodies of at most `limit` bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            prefix: [0; PREFIX],
            have: 0,
            body: Vec::new(),
            wanted: 0,
        }
    }

    /// How many bytes may be read without touching the next message.
    #[must_use]
    pub fn needs(&self) -> usize {
        if self.have < PREFIX {
            PREFIX - self.have
        } else {
            self.wanted - self.body.len()
        }
    }

    /// Takes bytes off the front of `input`; gives a body when it is complete.
    ///
    /// # Errors
    /// [`CodecError::TooLarge`] or [`CodecError::Empty`] as soon as the prefix is known. The decoder must not be
    /// used after an error: there is no way back to a frame border.
    pub fn feed(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, CodecError> {
        if self.have < PREFIX {
            let take = self.needs().min(input.len());
            self.prefix[self.have..self.have + take].copy_from_slice(&input[..take]);
            self.have += take;
            *input = &input[take..];
            if self.have < PREFIX {
                return Ok(None);
            }
            self.wanted = u32::from_be_bytes(self.prefix) as usize;
            match self.wanted {
                0 => return Err(CodecError::Empty),
                announced if announced > self.limit => {
                    let limit = self.limit;
                    return Err(CodecError::TooLarge { announced, limit });
                }
                // Memory follows what arrives, not what was announced.
                n => self.body.reserve_exact(n.min(MAX_MESSAGE_BYTES)),
            }
        }
        let take = self.needs().min(input.len());
        self.body.extend_from_slice(&input[..take]);
        *input = &input[take..];
        if self.body.len() < self.wanted {
            return Ok(None);
        }
        self.have = 0;
        self.wanted = 0;
        Ok(Some(std::mem::take(&mut self.body)))
    }

    /// Says whether the stream may end here.
    ///
    /// # Errors
    /// [`CodecError::Cut`] inside a message.
    pub fn finish(&self) -> Result<(), CodecError> {
        match self.have + self.body.len() {
            0 => Ok(()),
            received => Err(CodecError::Cut { received }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::messages::{Reply, Request, RequestBody};

    fn bodies_of(stream: &[u8], cuts: &[usize]) -> Result<Vec<Vec<u8>>, CodecError> {
        let mut decoder = Decoder::default();
        let (mut bodies, mut at, mut cut) = (Vec::new(), 0, cuts.iter().cycle());
        while at < stream.len() {
            let end = (at + cut.next().copied().unwrap_or(1).max(1)).min(stream.len());
            let mut piece = &stream[at..end];
            while !piece.is_empty() {
                bodies.extend(decoder.feed(&mut piece)?);
            }
            at = end;
        }
        decoder.finish()?;
        Ok(bodies)
    }

    #[test]
    fn a_request_survives_the_wire() {
        let request = Request {
            version: 1,
            body: RequestBody::Status,
        };
        let frame = encode(&request).unwrap();
        let bodies = bodies_of(&frame, &[3]).unwrap();
        assert_eq!(parse::<Request>(&bodies[0]).unwrap(), request);
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_body_arrives() {
        let prefix = (MAX_MESSAGE_BYTES as u32 + 1).to_be_bytes();
        let mut decoder = Decoder::default();
        let error = decoder.feed(&mut &prefix[..]).unwrap_err();
        assert!(
            matches!(error, CodecError::TooLarge { announced, .. } if announced == MAX_MESSAGE_BYTES + 1)
        );
        assert_eq!(decoder.body.capacity(), 0);
    }

    #[test]
    fn a_reply_may_be_longer_than_a_request_and_still_has_a_limit() {
        let long = |bytes: usize| {
            Reply::Error(crate::messages::ErrorReply {
                code: crate::messages::ErrorCode::Internal,
                field: None,
                message: "x".repeat(bytes),
            })
        };
        let frame = encode(&long(4 * MAX_MESSAGE_BYTES)).unwrap();
        let mut client = Decoder::with_limit(Reply::LIMIT);
        assert!(client.feed(&mut &frame[..]).unwrap().is_some());
        assert!(Decoder::default().feed(&mut &frame[..]).is_err());
        let error = encode(&long(Reply::LIMIT)).unwrap_err();
        assert!(matches!(error, CodecError::TooLarge { limit, .. } if limit == Reply::LIMIT));
    }

    #[test]
    fn an_empty_message_is_refused() {
        assert!(matches!(
            Decoder::default().feed(&mut &[0; 4][..]),
            Err(CodecError::Empty)
        ));
    }

    #[test]
    fn a_parse_error_names_the_place_and_not_the_content() {
        let error = parse::<Request>(br#"{"version":1,"secret-word":2}"#)
            .unwrap_err()
            .to_string();
        assert!(error.contains("column") && !error.contains("secret"), "{error}");
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_however_the_stream_is_cut(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..8),
            cuts in prop::collection::vec(1usize..700, 1..20),
        ) {
            let mut stream = Vec::new();
            for body in &bodies {
                stream.extend((body.len() as u32).to_be_bytes());
                stream.extend(body);
            }
            prop_assert_eq!(bodies_of(&stream, &cuts).unwrap(), bodies);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic_or_hold_more_than_the_limit(
            stream in prop::collection::vec(any::<u8>(), 0..4000),
        ) {
            let mut decoder = Decoder::default();
            let mut rest = &stream[..];
            while !rest.is_empty() {
                match decoder.feed(&mut rest) {
                    Ok(Some(body)) => {
                        prop_assert!(body.len() <= MAX_MESSAGE_BYTES);
                        let _ = parse::<Request>(&body);
                        let _ = parse::<Reply>(&body);
                    }
                    Ok(None) => prop_assert!(decoder.body.capacity() <= MAX_MESSAGE_BYTES),
                    Err(_) => break,
                }
            }
        }
    }
}
