//! Templates: parsed once, rendered for each event.

use trawl_api::{TriggerType, limits::MAX_FILTER};

use crate::{Placeholder, Values, context};

/// Why a template is refused. Positions are 1-based bytes of the template, which itself is never repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Longer than a filter may be.
    #[error("has {length} bytes; at most {MAX_FILTER} are allowed: shorten it")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A control character or something outside ASCII.
    #[error("byte {position}: only printable ASCII is allowed")]
    NotPrintable {
        /// Where.
        position: usize,
    },
    /// A brace that belongs to no placeholder.
    #[error(
        "byte {position}: braces may only form placeholders such as {{{{source.ip}}}}; there are no functions, \
         conditions or variables"
    )]
    Brace {
        /// Where.
        position: usize,
    },
    /// Two pairs of braces around something that is no placeholder.
    #[error("byte {position}: unknown placeholder; {} has {}", trigger_words(*.trigger), names(*.trigger))]
    Unknown {
        /// Where.
        position: usize,
        /// The trigger of the policy.
        trigger: TriggerType,
    },
    /// A placeholder that events of this trigger have no value for.
    #[error(
        "byte {position}: {placeholder} has no value for {} triggers; use one of {}",
        trigger_words(*.trigger),
        names(*.trigger)
    )]
    OtherTrigger {
        /// Where.
        position: usize,
        /// Which.
        placeholder: Placeholder,
        /// The trigger of the policy.
        trigger: TriggerType,
    },
    /// A placeholder for text that another system words as it likes.
    #[error(
        "byte {position}: {placeholder} is free text, which cannot be part of a packet filter: a filter tests \
         addresses, ports and protocols; select events by {} instead, and filter by {{{{source.ip}}}} and \
         {{{{destination.ip}}}}",
        placeholder.selected_by()
    )]
    FreeText {
        /// Where.
        position: usize,
        /// Which.
        placeholder: Placeholder,
    },
    /// A placeholder that touches other characters, which would become one word with its value.
    #[error(
        "byte {position}: {placeholder} must stand alone, with a space, a parenthesis or the end on either side: \
         its value must not join other characters"
    )]
    Glued {
        /// Where.
        position: usize,
        /// Which.
        placeholder: Placeholder,
    },
    /// A placeholder in a calculation, a comparison, an index or a mask, where its value could widen the capture.
    #[error(
        "byte {position}: {placeholder} must be the value of a test such as host, src host, port or vlan; in a mask, \
         an index, a length or a calculation an event could widen the capture"
    )]
    Calculated {
        /// Where.
        position: usize,
        /// Which.
        placeholder: Placeholder,
    },
}

fn trigger_words(trigger: TriggerType) -> &'static str {
    match trigger {
        TriggerType::SuricataAlert => "SuricataAlert",
        TriggerType::HubbleDrop => "HubbleDrop",
    }
}

/// The placeholders that are usable in a filter for a trigger.
fn names(trigger: TriggerType) -> String {
    let usable = Placeholder::ALL
        .into_iter()
        .filter(|p| p.only_of().is_none_or(|only| only == trigger) && !p.is_free_text());
    usable.map(|p| p.to_string()).collect::<Vec<_>>().join(", ")
}

/// Why an event gives no filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The event has no usable value for a placeholder.
    #[error("the event has no value for {0}")]
    Missing(Placeholder),
    /// The filter would be longer than filters may be.
    #[error("with the values of the event the filter has {length} bytes; at most {MAX_FILTER} are allowed")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
}

/// A piece of a template and the 0-based bytes where it begins and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub at: usize,
    pub end: usize,
    pub kind: PieceKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Text(String),
    Slot(Placeholder),
}

/// A template that was understood. Rendering it cannot give other words than it holds, beside one word for each
/// placeholder.
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

/// Says how many pieces there are and not what they say, so that no log shows a template.
impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Template({} pieces)", self.pieces.len())
    }
}

impl Template {
    /// Parses the template of a policy with the given trigger.
    ///
    /// # Errors
    /// The first thing that is wrong; see [`TemplateError`]. Whether the result is a filter is not looked at: see
    /// [`crate::check`].
    pub fn parse(text: &str, trigger: TriggerType) -> Result<Self, TemplateError> {
        if text.len() > MAX_FILTER {
            return Err(TemplateError::TooLong { length: text.len() });
        }
        if let Some(at) = text.bytes().position(|b| !(b' '..=b'~').contains(&b)) {
            return Err(TemplateError::NotPrintable { position: at + 1 });
        }
        let mut pieces: Vec<Piece> = Vec::new();
        while let Some(at) = Some(pieces.last().map_or(0, |piece| piece.end)).filter(|at| *at < text.len()) {
            let rest = &text[at..];
            let (kind, length) = match rest.find(['{', '}']) {
                Some(0) => slot(rest, at, trigger).map(|(slot, length)| (PieceKind::Slot(slot), length))?,
                brace => {
                    let words = &rest[..brace.unwrap_or(rest.len())];
                    (PieceKind::Text(words.to_owned()), words.len())
                }
            };
            pieces.push(Piece {
                at,
                end: at + length,
                kind,
            });
        }
        context::check(&pieces)?;
        Ok(Self { pieces })
    }

    /// Puts the values of an event in place.
    ///
    /// # Errors
    /// See [`RenderError`]. A filter that leaves out what is missing would be a wider one, so there is none.
    pub fn render(&self, values: &Values) -> Result<String, RenderError> {
        let mut text = String::new();
        for piece in &self.pieces {
            match &piece.kind {
                PieceKind::Text(words) => text.push_str(words),
                PieceKind::Slot(placeholder) => {
                    let word = values.word(*placeholder);
                    text.push_str(&word.ok_or(RenderError::Missing(*placeholder))?);
                }
            }
        }
        if text.len() > MAX_FILTER {
            return Err(RenderError::TooLong { length: text.len() });
        }
        Ok(text)
    }

    /// Whether it has no words at all: every packet is captured.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.pieces
            .iter()
            .all(|piece| matches!(&piece.kind, PieceKind::Text(text) if text.trim().is_empty()))
    }

    /// The placeholders in it, in order.
    pub fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece.kind {
            PieceKind::Slot(placeholder) => Some(placeholder),
            PieceKind::Text(_) => None,
        })
    }

    /// Whether it uses `placeholder`.
    #[must_use]
    pub fn uses(&self, placeholder: Placeholder) -> bool {
        self.placeholders().any(|p| p == placeholder)
    }

    /// The 1-based byte of the template that the 1-based byte `position` of the text rendered with `values` came from.
    /// Bytes of a value come from their placeholder; what is behind the last byte stays there.
    pub(crate) fn origin(&self, values: &Values, position: usize) -> usize {
        let (mut rendered, mut end) = (0, 0);
        for piece in &self.pieces {
            let (length, written) = match &piece.kind {
                PieceKind::Text(text) => (text.len(), text.len()),
                PieceKind::Slot(slot) => (values.word(*slot).map_or(0, |word| word.len()), 1),
            };
            if position <= rendered + length {
                return piece.at + (position - rendered).min(written);
            }
            rendered += length;
            end = piece.end;
        }
        end + position - rendered
    }
}

/// The placeholder at the beginning of `text`, which begins with a brace, and its length in bytes.
fn slot(text: &str, at: usize, trigger: TriggerType) -> Result<(Placeholder, usize), TemplateError> {
    let position = at + 1;
    let inner = text.strip_prefix("{{").and_then(|tail| tail.split_once("}}"));
    let (inner, _) = inner
        .filter(|(inner, _)| !inner.contains(['{', '}']))
        .ok_or(TemplateError::Brace { position })?;
    let placeholder = Placeholder::from_name(inner.trim_matches(' '))
        .ok_or(TemplateError::Unknown { position, trigger })?;
    if placeholder.only_of().is_some_and(|only| only != trigger) {
        return Err(TemplateError::OtherTrigger {
            position,
            placeholder,
            trigger,
        });
    }
    if placeholder.is_free_text() {
        return Err(TemplateError::FreeText {
            position,
            placeholder,
        });
    }
    Ok((placeholder, inner.len() + 4))
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
