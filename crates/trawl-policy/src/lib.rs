//! Filter templates of CapturePolicies: closed placeholders, typed values, specimens; and the classifications and drop
//! reasons that triggers name.
//!
//! A template is parsed once into a [`Template`]; what comes off the wire is parsed into [`Values`]; only the two
//! together give a filter. A value is one word of the filter language, and always the same kind of word, so no
//! value can make a capture wider than the template says.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod category;
mod context;
mod drop_reason;
mod placeholder;
mod specimen;
mod template;
mod values;

pub use category::{CATEGORIES, Category, known_category, nearly_known_category};
pub use drop_reason::{DROP_REASONS, known_drop_reason};
pub use placeholder::Placeholder;
pub use specimen::{Checked, Event, Family, SpecimenError, check, describe};
pub use template::{RenderError, Template, TemplateError};
pub use values::{Address, Port, Protocol, Severity, ValueError, Values};
