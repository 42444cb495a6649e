//! Where a placeholder may stand: alone, and as the value of a test.

use crate::{
    TemplateError,
    template::{Piece, PieceKind},
};

/// Words whose value is a width or a bound and not one thing to look for.
const WIDTHS: [&str; 3] = ["mask", "greater", "less"];

/// Checks the surroundings of every placeholder.
pub fn check(pieces: &[Piece]) -> Result<(), TemplateError> {
    let text = |index: Option<usize>| match index.and_then(|i| pieces.get(i)).map(|p| &p.kind) {
        Some(PieceKind::Text(text)) => Some(text.as_str()),
        Some(PieceKind::Slot(_)) => Some("{"),
        None => None,
    };
    let mut open = 0_i32;
    for (index, piece) in pieces.iter().enumerate() {
        let placeholder = match &piece.kind {
            PieceKind::Text(text) => {
                open += brackets(text);
                continue;
            }
            PieceKind::Slot(placeholder) => *placeholder,
        };
        let position = piece.at + 1;
        let (before, after) = (text(index.checked_sub(1)), text(Some(index + 1)));
        let alone =
            before.is_none_or(|t| t.ends_with([' ', '('])) && after.is_none_or(|t| t.starts_with([' ', ')']));
        if !alone {
            return Err(TemplateError::Glued {
                position,
                placeholder,
            });
        }
        if open > 0 || is_operand(before.unwrap_or_default(), after.unwrap_or_default()) {
            return Err(TemplateError::Calculated {
                position,
                placeholder,
            });
        }
    }
    Ok(())
}

fn brackets(text: &str) -> i32 {
    text.bytes().fold(0, |open, byte| match byte {
        b'[' => open + 1,
        b']' => open - 1,
        _ => open,
    })
}

/// Whether what stands between the two texts is part of a calculation, a comparison or a width. Parentheses around
/// it change nothing: `host (X)` is a test, and `(X) + 1` is a calculation.
fn is_operand(before: &str, after: &str) -> bool {
    let before = before.trim_end_matches([' ', '(']);
    let after = after.trim_start_matches([' ', ')']);
    let last = before.rsplit([' ', '(', ')']).next().unwrap_or_default();
    let calculates = |c: char| "+-*/%&|^<>=:".contains(c);
    let joins_tests = |text: &str| ["&&", "||"].contains(&text);
    let follows = last.chars().next_back().is_some_and(calculates)
        && !before.ends_with("&&")
        && !before.ends_with("||");
    let first: String = after.chars().take(2).collect();
    let precedes =
        after.starts_with(calculates) && !joins_tests(&first) || first == "!=" || after.starts_with('[');
    let width_after = after.split([' ', '(', ')']).next() == Some("mask");
    follows || precedes || width_after || WIDTHS.contains(&last)
}
