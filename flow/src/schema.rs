//! What a node type declares about itself, so that the engine, the checker and `omni-flow nodes` can decide.
//!
//! A [`Schema`] holds facts, not behaviour: ports and their kinds, options, whether a step is cheap or heavy, which
//! inputs tolerate loss. It is made once per node type and refined by the options of one node of a graph.

use crate::{Kind, MediaTime};

/// The declared facts of a node type.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// What it does, in one line.
    pub about: String,
    /// Inputs, in the order in which a list `in: [a, b]` feeds them.
    pub inputs: Vec<Port>,
    /// Outputs.
    pub outputs: Vec<Port>,
    /// Options: every key of the node in a graph file that the engine does not reserve.
    pub options: Vec<Opt>,
    /// How long one step may take.
    pub weight: Weight,
    /// Set for the ends of a graph at which a client puts chunks in or takes them out.
    pub client: Option<Client>,
    /// True if the type decides turns: a node of it may say `fences: LANE`.
    pub fences: bool,
    /// True for a model used by many sessions: it runs on place `shared`.
    pub shared: bool,
    /// What whoever serves a graph with this node may tell its clients (`chunk_period_ms`, `barge_in`). The
    /// engine does not read them.
    pub facts: serde_json::Map<String, serde_json::Value>,
    /// A node of this type as it would stand in a graph file, YAML.
    pub example: String,
}

/// How long one step takes, in orders of magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Weight {
    /// Well under a millisecond: may run on an async worker.
    #[default]
    Cheap,
    /// More: refused on place `task`.
    Heavy,
}

/// The client ends of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The client puts chunks in here.
    In,
    /// The client takes chunks out here.
    Out,
}

/// One port.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its name in graph files.
    pub name: String,
    /// What flows.
    pub kind: Kind,
    /// Outputs only: the kind is that of what feeds this input.
    pub like: Option<String>,
    /// Inputs: must be fed. Outputs: worth a note if nothing takes it while others of the node are taken.
    pub required: bool,
    /// Inputs only: a lossy policy is allowed on an edge into this port.
    pub lossy: bool,
    /// Inputs only: may close a cycle.
    pub feedback: bool,
    /// Outputs only: media time of the longest chunk that it gives, where the options decide it; else zero.
    pub longest: MediaTime,
    /// Outputs only: what it gives comes in segments of several chunks, each with its last one marked.
    pub segments: bool,
    /// What it is for, in one line.
    pub about: String,
}

impl Port {
    /// A required port named `name`.
    pub fn new(name: &str, kind: Kind, about: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            like: None,
            required: true,
            lossy: false,
            feedback: false,
            longest: MediaTime::ZERO,
            segments: false,
            about: about.to_owned(),
        }
    }
    /// It gives no chunk longer than `len`, and chunks of that length. An edge must have room for one.
    #[must_use]
    pub fn longest(mut self, len: MediaTime) -> Self {
        self.longest = len;
        self
    }
    /// It gives the parts of a whole (an answer, a sentence), the last of which is marked
    /// ([`Stamp::last`](crate::Stamp::last)). In a graph with `chunked: false` its edges hand on the whole.
    #[must_use]
    pub fn segments(mut self) -> Self {
        self.segments = true;
        self
    }
    /// It may stay unfed, or untaken.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }
    /// Its consumer tolerates loss.
    #[must_use]
    pub fn lossy(mut self) -> Self {
        self.lossy = true;
        self
    }
    /// It may close a cycle, and its consumer takes from it while its own output waits.
    #[must_use]
    pub fn feedback(mut self) -> Self {
        self.feedback = true;
        self.required = false;
        self
    }
    /// It gives what feeds the input named `input`.
    #[must_use]
    pub fn like(mut self, input: &str) -> Self {
        self.like = Some(input.to_owned());
        self
    }
}

/// One option of a node type.
#[derive(Clone, Debug)]
pub struct Opt {
    /// Its key in graph files, `kebab-case`.
    pub name: String,
    /// What its value looks like: `integer`, `text`, `duration`, `size`, `number`, `yes/no`, `list`, `map`, or the
    /// allowed words separated by `|`.
    pub value: String,
    /// Its default as it would be written; `None` if it has none.
    pub default: Option<String>,
    /// True if a node without it is refused.
    pub required: bool,
    /// What it does, with its unit and range, in one line.
    pub about: String,
}

impl Opt {
    /// An option with a default.
    pub fn new(name: &str, value: &str, default: &str, about: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: value.to_owned(),
            default: Some(default.to_owned()),
            required: false,
            about: about.to_owned(),
        }
    }
    /// An option that may be left out and has no default.
    pub fn maybe(name: &str, value: &str, about: &str) -> Self {
        Self { default: None, ..Self::new(name, value, "", about) }
    }
    /// An option that must be given.
    pub fn required(name: &str, value: &str, about: &str) -> Self {
        Self { required: true, ..Self::maybe(name, value, about) }
    }
}

impl Schema {
    /// A schema with its one line.
    pub fn new(about: &str) -> Self {
        Self { about: about.to_owned(), ..Self::default() }
    }
    /// Adds an input.
    #[must_use]
    pub fn input(mut self, port: Port) -> Self {
        self.inputs.push(port);
        self
    }
    /// Adds an output.
    #[must_use]
    pub fn output(mut self, port: Port) -> Self {
        self.outputs.push(port);
        self
    }
    /// Adds an option.
    #[must_use]
    pub fn option(mut self, opt: Opt) -> Self {
        self.options.push(opt);
        self
    }
    /// Declares steps that take more than a millisecond.
    #[must_use]
    pub fn heavy(mut self) -> Self {
        self.weight = Weight::Heavy;
        self
    }
    /// Declares a model that sessions share.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self.weight = Weight::Heavy;
        self
    }
    /// Allows `fences: LANE`.
    #[must_use]
    pub fn fences(mut self) -> Self {
        self.fences = true;
        self
    }
    /// Adds a fact for whoever serves a graph with this node; a later one of the same name counts.
    pub fn fact(&mut self, name: &str, value: impl Into<serde_json::Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }
    /// Sets the example.
    #[must_use]
    pub fn example(mut self, yaml: &str) -> Self {
        self.example = yaml.to_owned();
        self
    }
    /// The input named `name`.
    pub fn find_input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|p| p.name == name)
    }
    /// The output named `name`.
    pub fn find_output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|p| p.name == name)
    }
}
