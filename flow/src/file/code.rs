//! The stable codes of findings, each with its title and an explanation.
//!
//! A code never changes its meaning; a code that is no longer used is never given away again. G0 is about reading,
//! G1 about keys and values, G2 about the graph.

use std::fmt;

macro_rules! codes {
    ($($name:ident = $code:literal, $title:literal, $why:literal;)*) => {
        /// What a finding is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = $title] $name,)* }

        impl Code {
            /// All codes, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// `G203`.
            pub const fn id(self) -> &'static str { match self { $(Self::$name => $code,)* } }
            /// What it is, in one line.
            pub const fn title(self) -> &'static str { match self { $(Self::$name => $title,)* } }
            /// Why it is refused, and what to do.
            pub const fn explanation(self) -> &'static str { match self { $(Self::$name => $why,)* } }
        }
    };
}

codes! {
    Unreadable = "G001", "the file cannot be read", "The file is missing or may not be read. The path is relative to the working directory; that of `extends` to the file that says it.";
    TooLarge = "G002", "the file is too large", "A graph file has at most 1 MiB. Put prompts and data into files of their own and name these in options.";
    NotUtf8 = "G003", "the file is not UTF-8", "Graph files are UTF-8, with or without a byte order mark.";
    Syntax = "G004", "the text is not YAML", "The dialect is YAML 1.2 with the core schema. Only the first such error of a file is shown, since what follows it cannot be understood.";
    Tab = "G005", "a tab is used for indentation", "YAML is indented with spaces.";
    TooDeep = "G006", "values are nested too deeply", "At most 64 levels of lists and maps.";
    AliasBomb = "G007", "aliases expand to too much", "All aliases of a file together may stand for at most 10000 values.";
    AliasLoop = "G008", "an alias contains itself", "An anchor may be used after its value has ended, not within it.";
    DuplicateKey = "G009", "a key is given twice", "Each key of a map, and each node name, may stand once. Both places are shown.";
    BadKey = "G010", "a key is not text", "Keys are text on one line: no lists, no maps, not empty.";
    Tag = "G011", "a tag is used", "The types of values come from the schema of the node, so YAML tags have no use here. Only `!!str` is accepted: it keeps a word as text, as quotes do.";
    Documents = "G012", "more than one document", "A graph file is one YAML document.";
    NotMap = "G013", "the file is not a map", "A graph file is a map with at least `graph` and `nodes`.";
    MergeKey = "G014", "a merge key is used", "`<<` is not part of YAML 1.2. Use `extends` for whole files, or repeat an anchored value with `*name`.";
    Extends = "G020", "the chain of `extends` does not end", "A file may not extend itself, directly or through others, and a chain has at most 16 files.";
    Override = "G021", "an override cannot be used", "`--set` takes `path.to.key=value`; `--override` takes a JSON object of the shape of a graph file.";
    Environment = "G022", "an environment variable cannot be used", "`OMNI_FLOW_SECTION__KEY` sets `section.key`; deeper keys are separated by `__`. The section must exist.";
    Replaced = "G023", "a layer replaces a map by something else", "Maps of two layers are merged key by key. Here one layer has a map and the other has not, so the higher one replaces it whole.";
    UnknownKey = "G101", "unknown key", "No key is ever ignored. Keys that only hold anchors begin with `x-` and stand at the top level.";
    WrongType = "G102", "wrong type of value", "The value is not what the key takes. `yes`, `no`, `on` and `off` are text; write `true` or `false`.";
    MissingKey = "G103", "a required key is missing", "The key has no default.";
    Version = "G104", "unknown version", "This program reads version 1 of graph files.";
    Name = "G105", "not a name", "Names of graphs, nodes, lanes and places are lower-case letters, digits and `-`, and begin with a letter.";
    OutOfRange = "G106", "a limit is out of range", "Limits are positive unless their description says otherwise, and NaN is never one.";
    Unit = "G107", "a unit is missing", "Durations are written as `200ms`, `1.5s`, `10m`, `1h`; sizes as `64KiB`, `4MiB`, `1MB`.";
    Secret = "G108", "a secret stands in the file", "Keys such as `api-key`, `token`, `secret` and `password` take a reference to an environment variable, `${env:NAME}`, never the secret itself.";
    EnvUnset = "G109", "an environment variable is not set", "The file refers to a variable with `${env:NAME}` that has no value.";
    Option = "G110", "an option cannot be used", "The node type refuses the value of this option.";
    NotYet = "G111", "not on this place yet", "The key is part of graph files, but this version, which runs a graph in one process, does not act on it. It is refused rather than ignored.";
    ReferenceName = "G112", "a name of another system is used", "The name is understood, but the name of this system is clearer.";
    ModelFile = "G113", "a file that a node names is missing or damaged", "`omni-flow check` looks whether the files that nodes will read are there and whole. `omni-flow models` lists, fetches and verifies models.";
    UnknownType = "G201", "unknown node type", "`omni-flow nodes` lists the types that this program knows.";
    UnknownEnd = "G202", "an edge begins or ends nowhere", "Edges are written on the consumer: `in: node`, `in: node.port`, or by input port.";
    KindMismatch = "G203", "the ends of an edge do not agree", "There is no negotiation of formats: what the producer gives must be what the consumer takes. Put a converter between them.";
    Ambiguous = "G204", "a port must be named", "`in: x` is the only output of `x` into the only input. With several, name the port.";
    FedTwice = "G205", "an input is fed twice", "An input has one edge. Join streams with a node made for it.";
    Unfed = "G206", "a required input is not fed", "The node type cannot work without this input.";
    Unused = "G207", "an output is not used", "Nothing takes what the node gives. That is allowed, and often a mistake.";
    Cycle = "G208", "a cycle without a feedback port", "Bounded edges in a circle can wait for each other for ever. A cycle must pass an input that its node type declares as `feedback`.";
    Deadlock = "G209", "a cycle that cannot start", "The input that closes the cycle is required, so its node waits for what only it can bring about.";
    Lossy = "G210", "a lossy policy where loss is not tolerated", "`drop-oldest` and `latest` are allowed only into an input that its node type declares as `lossy`.";
    Place = "G211", "the node cannot run there", "Heavy steps would stop all other work on a `task`; they run on `pool`, on a `thread` of their own, or, for models that sessions share, on `shared`. Threads are bound (`cpus`, `numa`) to processors that are there, and a `task` has none.";
    Lane = "G212", "a lane cannot be used", "Lanes are declared in `lanes`. `main` always exists, is not declared and is never fenced; together there are at most 8.";
    Fences = "G213", "the node cannot fence", "Only types that decide turns can say `fences`.";
    Mode = "G214", "`session.mode` is missing", "A graph with `session.in` and `session.out` can be used by turns or in both directions at once, and must say which: `turn` or `duplex`.";
    Memory = "G215", "the memory budgets are above what the machine has", "The sum of all `memory` keys must fit.";
    Unfenced = "G216", "a lane that nobody fences", "A lane is of use only if some node says `fences` with its name, or the program fences it and says so (`CheckCx::fences`).";
    Bounds = "G217", "an edge without a bound", "At least one of `items`, `bytes` and `span` must be a limit.";
    NoNodes = "G218", "a graph without nodes", "A graph has at least one node.";
    ManyNodes = "G219", "a graph with too many nodes", "A graph has at most 1024 nodes.";
    Window = "G220", "a window smaller than a chunk", "A chunk longer than the window still passes, but only when the edge is empty, so that producer and consumer take turns instead of working side by side.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        assert!(Code::ALL.windows(2).all(|w| w[0].id() < w[1].id()));
    }
}
