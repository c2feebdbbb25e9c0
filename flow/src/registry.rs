//! The node types that a program knows: registered by hand, at start, and never by linking alone.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::file::de::from_tree;
use crate::file::{Code, Diagnostic, Entry, Tree, Value, nearest, same_key};
use crate::node::{Body, BuildCx, BuildError};
use crate::schema::Schema;
use crate::units::{Dur, Size};

/// A node type: its name, its options, its facts, and how to make one.
pub trait Make: Send + Sync + 'static {
    /// Name in graph files: `audio.gain`.
    const NAME: &'static str;
    /// The options. Unknown keys never reach it: they are refused against [`Schema::options`].
    type Config: DeserializeOwned + Send + Sync + 'static;

    /// The facts that hold for every node of this type.
    fn schema() -> Schema;

    /// Checks the options and narrows the schema to them (an output's sample rate, say).
    ///
    /// # Errors
    /// An [`OptionError`] that names the option.
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        let _ = (config, schema);
        Ok(())
    }

    /// Looks at the machine: whether the files that a node with these options will read are there and whole. Fetches
    /// nothing and loads nothing. What [`Make::build`] could fetch is no error, unless `cx` is offline.
    ///
    /// # Errors
    /// An [`OptionError`] that names the option, and says what is missing and how to get it.
    fn look(config: &Self::Config, cx: &BuildCx) -> Result<(), OptionError> {
        let _ = (config, cx);
        Ok(())
    }

    /// Checks the node's `chunk` key ([`BuildCx::chunk`]), and says what its chunk policies mean for a listener.
    ///
    /// # Errors
    /// An [`OptionError`] that names the key; without an override, for any `chunk` key at all.
    fn chunks(config: &Self::Config, cx: &BuildCx) -> Result<ChunkNotes, OptionError> {
        let _ = config;
        if cx.chunk.is_none() {
            return Ok(ChunkNotes::default());
        }
        let words = format!("`{}` has no output that a chunk policy applies to", Self::NAME);
        Err(OptionError::new("chunk", words, "take it out, or chunk the output with `util.chunk`"))
    }

    /// Makes what sessions are made of. Runs once per node of a graph, on a thread where blocking is allowed: load
    /// models here, and let the returned [`Body`] make cheap per-session instances.
    ///
    /// # Errors
    /// A [`BuildError`] that says what is missing and what to do.
    fn build(config: &Self::Config, cx: &BuildCx) -> Result<Body, BuildError>;
}

/// What `omni-flow check` says of a node's chunk policies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkNotes {
    /// Output port, and in one line what its chunks mean for a listener.
    pub ports: Vec<(String, String)>,
    /// What works and is probably not meant.
    pub warnings: Vec<String>,
}

/// An option whose value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{option}`: {message}")]
pub struct OptionError {
    /// The option.
    pub option: String,
    /// What is wrong with its value.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl OptionError {
    /// An error of the option named `option`.
    pub fn new(option: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { option: option.to_owned(), message: message.into(), hint: hint.into() }
    }
}

/// A node type with the options of one node.
pub trait Configured: Send + Sync + 'static {
    /// The schema, refined by the options.
    fn schema(&self) -> &Schema;
    /// See [`Make::look`].
    ///
    /// # Errors
    /// As [`Make::look`].
    fn look(&self, cx: &BuildCx) -> Result<(), OptionError>;
    /// See [`Make::chunks`].
    ///
    /// # Errors
    /// As [`Make::chunks`].
    fn chunks(&self, cx: &BuildCx) -> Result<ChunkNotes, OptionError>;
    /// See [`Make::build`].
    ///
    /// # Errors
    /// As [`Make::build`].
    fn build(&self, cx: &BuildCx) -> Result<Body, BuildError>;
}

/// A node type whose Rust types are erased.
pub(crate) trait AnyMake: Send + Sync {
    fn schema(&self) -> Schema;
    /// Reads the options of one node: `options` is the node's map without the engine's own keys.
    fn configure(&self, options: &Tree) -> Result<Arc<dyn Configured>, Vec<Diagnostic>>;
}

/// Keys of a node that belong to the engine; no type may have an option of such a name.
pub const RESERVED: [&str; 22] = [
    "use",
    "in",
    "lane",
    "fences",
    "place",
    "replicas",
    "balance",
    "slots",
    "active-streams",
    "devices",
    "threads",
    "cpus",
    "numa",
    "memory",
    "sampling",
    "deadline",
    "step-budget",
    "chunk",
    "restart",
    "required",
    "init-timeout",
    "env",
];

/// Why a node type is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// Two types of one name.
    #[error("node type `{0}` is registered twice; give one of them another name")]
    Twice(String),
    /// A name that cannot stand in a graph file.
    #[error("`{0}` is not a name of a node type; write for instance `audio.gain`")]
    Name(String),
    /// An option named like a key of the engine.
    #[error("node type `{name}`: option `{option}` is a key of the engine; give it another name")]
    Reserved {
        /// The type.
        name: String,
        /// The option.
        option: String,
    },
    /// Two ports or options of one name, or a port that cannot be named in a graph file.
    #[error("node type `{name}`: `{what}` is declared twice or is not a name")]
    Port {
        /// The type.
        name: String,
        /// The port or option.
        what: String,
    },
    /// `like` names no input.
    #[error("node type `{name}`: output `{output}` is like `{input}`, which is no input")]
    Like {
        /// The type.
        name: String,
        /// The output.
        output: String,
        /// What it names.
        input: String,
    },
    /// An example that is not a node of this type.
    #[error("node type `{name}`: its example cannot be used: {why}")]
    Example {
        /// The type.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

/// The node types that a program knows.
#[derive(Clone, Default)]
pub struct Registry {
    types: BTreeMap<&'static str, Arc<dyn AnyMake>>,
}

impl Registry {
    /// A registry that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }
    /// A registry that knows the client's ends of a graph, `session.in` and `session.out`: where to begin.
    pub fn base() -> Self {
        let mut r = Self::new();
        for added in [r.add::<crate::SessionIn>().err(), r.add::<crate::SessionOut>().err()] {
            debug_assert!(added.is_none(), "{added:?}");
        }
        r
    }
    /// Makes a type known.
    ///
    /// # Errors
    /// A [`RegisterError`] if the type contradicts itself, another one, or the keys of the engine.
    pub fn add<M: Make>(&mut self) -> Result<&mut Self, RegisterError> {
        let name = M::NAME;
        if !name.split('.').all(is_name) {
            return Err(RegisterError::Name(name.to_owned()));
        }
        if self.types.contains_key(name) {
            return Err(RegisterError::Twice(name.to_owned()));
        }
        let schema = M::schema();
        fits(name, &schema)?;
        let make = MakeOf::<M>(PhantomData);
        example(name, &schema, &make)?;
        self.types.insert(name, Arc::new(make));
        Ok(self)
    }
    /// The schema of the type named `name`, which may be written with `_` for `.` and `-`.
    pub fn get(&self, name: &str) -> Option<Schema> {
        self.make(name).map(|m| m.schema())
    }
    /// The name under which the type is known that a graph file calls `name`: keys may be written with `_` for `-`, and
    /// types with `_` for `.` too (`speech_turn` is `speech.turn`).
    pub fn canonical(&self, name: &str) -> Option<&'static str> {
        if let Some((known, _)) = self.types.get_key_value(name) {
            return Some(known);
        }
        let same = |known: &str| {
            known.len() == name.len()
                && known.bytes().zip(name.bytes()).all(|(k, n)| k == n || (n == b'_' && matches!(k, b'.' | b'-')))
        };
        self.names().find(|known| same(known))
    }
    /// All types with their schemas, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Schema)> + '_ {
        self.types.iter().map(|(n, m)| (*n, m.schema()))
    }
    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.types.keys().copied()
    }
    pub(crate) fn make(&self, name: &str) -> Option<&Arc<dyn AnyMake>> {
        self.types.get(self.canonical(name)?)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.types.keys()).finish()
    }
}

/// `[a-z][a-z0-9-]*`.
pub(crate) fn is_name(s: &str) -> bool {
    s.starts_with(|c: char| c.is_ascii_lowercase())
        && s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

struct MakeOf<M>(PhantomData<fn() -> M>);

struct Ready<M: Make> {
    config: M::Config,
    schema: Schema,
}

impl<M: Make> AnyMake for MakeOf<M> {
    fn schema(&self) -> Schema {
        M::schema()
    }
    fn configure(&self, options: &Tree) -> Result<Arc<dyn Configured>, Vec<Diagnostic>> {
        let mut schema = M::schema();
        let (tree, mut found) = known_options(M::NAME, &schema, options);
        let config = match from_tree::<M::Config>(&tree) {
            Ok(c) => c,
            Err(d) => {
                // A missing key was already said, and better, by the schema.
                if !(d.code == Code::MissingKey && found.iter().any(|f| f.code == Code::MissingKey)) {
                    found.push(d);
                }
                for d in looks(&schema, &tree) {
                    if !found.iter().any(|f| f.span == d.span) {
                        found.push(d);
                    }
                }
                return Err(found);
            }
        };
        if !found.is_empty() {
            return Err(found);
        }
        if let Err(e) = M::refine(&config, &mut schema) {
            let at = options.get(&e.option).map_or(options.span, |t| t.span);
            let d = Diagnostic::error(Code::Option, at, format!("`{}`: {}", e.option, e.message));
            return Err(vec![if e.hint.is_empty() { d } else { d.hint(e.hint) }]);
        }
        Ok(Arc::new(Ready::<M> { config, schema }))
    }
}

impl<M: Make> Configured for Ready<M> {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn look(&self, cx: &BuildCx) -> Result<(), OptionError> {
        M::look(&self.config, cx)
    }
    fn chunks(&self, cx: &BuildCx) -> Result<ChunkNotes, OptionError> {
        M::chunks(&self.config, cx)
    }
    fn build(&self, cx: &BuildCx) -> Result<Body, BuildError> {
        M::build(&self.config, cx)
    }
}

/// The options under the names that the schema gives them, and what is unknown, double or missing.
fn known_options(name: &str, schema: &Schema, options: &Tree) -> (Tree, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    for e in options.as_map().unwrap_or_default() {
        let Some(opt) = schema.options.iter().find(|o| same_key(&o.name, &e.key)) else {
            let d = Diagnostic::error(Code::UnknownKey, e.key_span, format!("`{name}` has no option `{}`", e.key));
            let words = schema.options.iter().map(|o| o.name.as_str());
            found.push(if RESERVED.iter().any(|r| nearest(&e.key, [*r]).is_some()) {
                d.nearest(&e.key, words.chain(RESERVED))
            } else if schema.options.is_empty() {
                d.hint(format!("`{name}` has no options"))
            } else {
                d.nearest(&e.key, words)
            });
            continue;
        };
        if let Some(first) = entries.iter().find(|x| x.key == opt.name) {
            let d = Diagnostic::error(Code::DuplicateKey, e.key_span, format!("`{}` is given twice", opt.name));
            found.push(d.label(first.key_span, "first given here").hint("remove one of them"));
            continue;
        }
        entries.push(Entry { key: opt.name.clone(), ..e.clone() });
    }
    for o in schema.options.iter().filter(|o| o.required && options.entry(&o.name).is_none()) {
        let d = Diagnostic::error(Code::MissingKey, options.span, format!("`{name}` needs the option `{}`", o.name));
        found.push(d.hint(format!("add `{}: ...` ({}): {}", o.name, o.value, o.about)));
    }
    (Tree { value: Value::Map(entries), span: options.span }, found)
}

/// Values that do not look as the schema says. Asked only when the options could not be read, to name all at once.
fn looks(schema: &Schema, options: &Tree) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for e in options.as_map().unwrap_or_default() {
        let Some(o) = schema.options.iter().find(|o| o.name == e.key) else { continue };
        let read = match o.value.as_str() {
            "integer" => from_tree::<i64>(&e.value).err(),
            "number" => from_tree::<f64>(&e.value).err(),
            "yes/no" => from_tree::<bool>(&e.value).err(),
            "duration" => from_tree::<Dur>(&e.value).err(),
            "size" => from_tree::<Size>(&e.value).err(),
            "text" => from_tree::<String>(&e.value).err(),
            _ => None,
        };
        found.extend(read);
    }
    found
}

/// The schema does not contradict itself.
fn fits(name: &str, schema: &Schema) -> Result<(), RegisterError> {
    let owned = || name.to_owned();
    for o in &schema.options {
        if RESERVED.iter().any(|r| same_key(r, &o.name)) {
            return Err(RegisterError::Reserved { name: owned(), option: o.name.clone() });
        }
    }
    let unique = |names: Vec<&str>| {
        let bad = names.iter().enumerate().find(|(i, n)| names[..*i].contains(n) || !is_name(n) || **n == "from");
        bad.map_or(Ok(()), |(_, n)| Err(RegisterError::Port { name: owned(), what: (*n).to_owned() }))
    };
    unique(schema.inputs.iter().map(|p| p.name.as_str()).collect())?;
    unique(schema.outputs.iter().map(|p| p.name.as_str()).collect())?;
    let options: Vec<&str> = schema.options.iter().map(|o| o.name.as_str()).collect();
    if let Some((_, n)) = options.iter().enumerate().find(|(i, n)| options[..*i].contains(n) || n.contains('_')) {
        return Err(RegisterError::Port { name: owned(), what: (*n).to_owned() });
    }
    for p in &schema.outputs {
        if let Some(input) = p.like.as_deref().filter(|l| schema.find_input(l).is_none()) {
            return Err(RegisterError::Like { name: owned(), output: p.name.clone(), input: input.to_owned() });
        }
    }
    Ok(())
}

/// The example is a node of this type, as a map of nodes or as the node alone.
fn example(name: &str, schema: &Schema, make: &dyn AnyMake) -> Result<(), RegisterError> {
    if schema.example.is_empty() {
        return Ok(());
    }
    let fail = |why: String| RegisterError::Example { name: name.to_owned(), why };
    let mut sources = crate::file::Sources::default();
    let mut found = Vec::new();
    let tree = crate::file::parse_source(&mut sources, "example", &schema.example, &mut found);
    let why = |f: &[Diagnostic]| f.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; ");
    let Some(tree) = tree.filter(|_| found.is_empty()) else { return Err(fail(why(&found))) };
    let is_node = |t: &Tree| t.get("use").and_then(Tree::as_text) == Some(name);
    let nodes = tree.get("nodes").unwrap_or(&tree);
    let node = if is_node(nodes) {
        Some(nodes)
    } else {
        nodes.as_map().unwrap_or_default().iter().map(|e| &e.value).find(|t| is_node(t))
    };
    let Some(node) = node else { return Err(fail(format!("no node with `use: {name}` in it"))) };
    make.configure(&options_of(node)).map(|_| ()).map_err(|f| fail(why(&f)))
}

/// A node's map without the keys of the engine.
pub(crate) fn options_of(node: &Tree) -> Tree {
    let all = node.as_map().unwrap_or_default();
    let own = all.iter().filter(|e| !RESERVED.iter().any(|r| same_key(r, &e.key)));
    Tree { value: Value::Map(own.cloned().collect()), span: node.span }
}
