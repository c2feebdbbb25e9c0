//! Graph files: text in, a tree of values with their places out, and all findings at once.

mod code;
pub(crate) mod de;
mod defaults;
mod diagnostic;
mod excerpt;
mod graph;
mod layers;
mod parse;
pub(crate) mod secrets;
mod settings;
mod span;
mod tree;

pub use code::Code;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub(crate) use diagnostic::{nearest, ticks};
pub use graph::{Explained, GraphFile};
pub use layers::Layers;
pub use settings::SecretError;
pub use span::{Layer, Source, Sources, Span};
pub use tree::{Entry, Scalar, Tree, Value};
pub(crate) use tree::{kebab, same_key};

/// Reads a text of the engine's own, such as the example of a node type.
pub(crate) fn parse_source(sources: &mut Sources, name: &str, text: &str, out: &mut Vec<Diagnostic>) -> Option<Tree> {
    let file = sources.add(name, text, Layer::File);
    parse::parse(file, text, out)
}
