//! Filter text to a program, and what was made of it on the way.

use std::time::Duration;

use crate::code::{Code, Instruction};
use crate::expansion::{Compiled, Expansion, Layer, LeftOut, Options};
use crate::program::{Program, Views};
use crate::syntax::{self, Misread};
use crate::tree::{Node, Polarity};
use crate::view::MAX_TAGS;
use crate::words::{self, Word};
use crate::{Filter, FilterError, away, libpcap, survey};

/// How long one compilation may take unless told otherwise. Usual filters need microseconds.
pub const COMPILE_DEADLINE: Duration = Duration::from_secs(2);

/// Compiles a filter with the usual [`Options`], within [`COMPILE_DEADLINE`].
///
/// # Errors
/// See [`FilterError`].
pub fn compile(text: &str) -> Result<Filter, FilterError> {
    compile_with(text, &Options::default()).map(|compiled| compiled.filter)
}

/// Compiles a filter within [`COMPILE_DEADLINE`]. Blocks that long at most; call it away from async workers.
///
/// # Errors
/// See [`FilterError`].
pub fn compile_with(text: &str, options: &Options) -> Result<Compiled, FilterError> {
    if words::split(text)?.is_empty() {
        return Ok(Compiled::everything());
    }
    let (text, options) = (text.to_owned(), *options);
    away::within(COMPILE_DEADLINE, move || {
        let words = words::split(&text)?;
        Reading::of(&words, options)?.compiled()
    })
}

/// A text that libpcap has taken, and what of it we understand.
pub(crate) struct Reading<'a> {
    pub(crate) tree: Option<Node<'a>>,
    main: Vec<Instruction>,
    normalized: String,
    pub(crate) views: Views,
    left_out: Vec<LeftOut>,
}

impl<'a> Reading<'a> {
    /// Has libpcap compile the text as it is, and reads it beside that.
    pub(crate) fn of(words: &[Word<'a>], options: Options) -> Result<Self, FilterError> {
        let original = words::join(words);
        let parsed = syntax::parse(words);
        let main = libpcap::compile(&original).map_err(|error| placed(error, &parsed))?;
        let wrong = parsed.as_ref().ok().and_then(|tree| {
            let mut tests = tree.tests().into_iter();
            tests.find_map(|(test, _)| Some((test.position, test.objection()?)))
        });
        if let Some((position, advice)) = wrong {
            return Err(FilterError::Refused { position, advice });
        }
        let understood = parsed.ok().map(|tree| (tree.text(), tree));
        // What libpcap does not take for the same is not what we take it for.
        let understood = understood
            .filter(|(text, _)| *text == original || libpcap::compile(text).is_ok_and(|code| code == main));
        let (normalized, tree) = match understood {
            Some((text, tree)) => (text, Some(tree)),
            None => (original, None),
        };
        let (views, left_out) = match &tree {
            Some(tree) if !options.literal => survey::views(tree, options.tunnels),
            Some(_) => nothing(options, "it was asked for as written"),
            None => nothing(options, "the text has a form that only libpcap understands"),
        };
        Ok(Self {
            tree,
            main,
            normalized,
            views,
            left_out,
        })
    }

    /// Whether later fragments are judged by code of their own.
    pub(crate) fn judges_later_fragments(&self) -> bool {
        !self.left_out.iter().any(|out| out.layer == Layer::LaterFragments)
    }

    fn compiled(self) -> Result<Compiled, FilterError> {
        let tests = self.tree.as_ref().map(Node::tests).unwrap_or_default();
        let widened = |(test, polarity): &(&crate::tree::Test<'_>, Polarity)| {
            test.ports_of().is_some() && *polarity == Polarity::Positive
        };
        let later_fragments = self.judges_later_fragments() && tests.iter().any(widened);
        let apart = tests.iter().any(|(test, _)| test.differs_for_later_fragments());
        let later = self
            .tree
            .as_ref()
            .filter(|_| apart && self.judges_later_fragments());
        let later = later.map(|tree| libpcap::compile_part(&tree.text_for_later_fragments()));
        let later = later.transpose()?.filter(|code| *code != self.main);
        let warnings = self.tree.as_ref().map(|tree| survey::warnings(tree, self.views));
        Ok(Compiled {
            filter: Filter::Program(program(self.main, later, self.views)?),
            normalized: self.normalized,
            expansion: Expansion {
                vlan_tags: if self.views.tags { MAX_TAGS as u8 } else { 0 },
                later_fragments,
                ip6_extension_headers: self.views.extensions,
                tunnels: self.views.tunnels,
                left_out: self.left_out,
            },
            warnings: warnings.unwrap_or_default(),
        })
    }
}

pub(crate) fn program(
    main: Vec<Instruction>,
    later: Option<Vec<Instruction>>,
    views: Views,
) -> Result<Program, FilterError> {
    let checked = |code| Code::new(code).map_err(FilterError::Internal);
    Ok(Program::new(
        checked(main)?,
        later.map(checked).transpose()?,
        views,
    ))
}

fn nothing(options: Options, reason: &str) -> (Views, Vec<LeftOut>) {
    let wanted = Layer::ALL.into_iter();
    let wanted = wanted.filter(|layer| *layer != Layer::Tunnels || options.tunnels);
    let left_out = wanted.map(|layer| LeftOut {
        layer,
        reason: reason.into(),
    });
    (Views::default(), left_out.collect())
}

/// libpcap does not say where a text is wrong: we may know, or find the first test that is wrong by itself.
fn placed(error: FilterError, parsed: &Result<Node<'_>, Misread>) -> FilterError {
    let FilterError::Syntax { advice } = error else {
        return error;
    };
    let tree = match parsed {
        Ok(tree) => tree,
        Err(Misread { position, advice }) => {
            return FilterError::Refused {
                position: *position,
                advice,
            };
        }
    };
    let wrong = tree
        .tests()
        .into_iter()
        .find_map(|(test, _)| match libpcap::compile(&test.text()) {
            Err(FilterError::Syntax { advice }) => Some(FilterError::Refused {
                position: test.position,
                advice,
            }),
            _ => None,
        });
    wrong.unwrap_or(FilterError::Syntax { advice })
}
