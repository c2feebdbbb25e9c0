//! One node of a graph file: the keys that belong to the engine, and its type with its options.

use std::sync::Arc;
use std::time::Duration;

use super::check::Check;
use super::keys::{self, Shape};
use super::pin::{self, Pin};
use super::{Memory, Place, restart};
use crate::file::secrets::{Reference, is_secret, reference};
use crate::file::{Code, Diagnostic, Entry, Layer, Span, Tree, Value, kebab, same_key};
use crate::node::RestartPolicy;
use crate::registry::{Configured, RESERVED, is_name, options_of};
use crate::units::{Dur, Size};
use crate::{BuildCx, Kind, Lane, Schema, Weight};

/// Most streams of one shared stage.
const MOST_SLOTS: usize = 65_536;
/// Most threads of one node.
const MOST_THREADS: usize = 1024;

/// A node as far as it could be understood.
pub(super) struct Draft<'a> {
    pub name: &'a str,
    pub name_span: Span,
    pub kind: String,
    /// Refined if the options could be read, else as declared; `None` if the type is unknown.
    pub schema: Option<Schema>,
    pub configured: Option<Arc<dyn Configured>>,
    pub input: Option<&'a Tree>,
    pub lane: Lane,
    pub fences: Option<Lane>,
    pub place: Place,
    pub slots: Option<usize>,
    pub threads: Option<usize>,
    pub active_streams: Option<usize>,
    pub deadline: Option<&'a Tree>,
    pub step_budget: Option<Duration>,
    pub restart: Option<RestartPolicy>,
    pub pin: Pin,
    pub init_timeout: Duration,
    pub required: bool,
    pub memory: Memory,
    pub memory_span: Span,
    pub sampling: Option<serde_json::Value>,
    pub chunk: Option<serde_json::Value>,
    /// Per output port, what its chunks mean for a listener.
    pub chunks: Vec<(String, String)>,
    pub env: Vec<(String, String)>,
}

impl<'a> Draft<'a> {
    /// Reads one entry of `nodes`.
    pub fn read(c: &mut Check<'_>, e: &'a Entry, defaults: Option<&'a Tree>) -> Self {
        let mut d = Self {
            name: &e.key,
            name_span: e.key_span,
            kind: String::new(),
            schema: None,
            configured: None,
            input: None,
            lane: Lane::MAIN,
            fences: None,
            place: Place::Task,
            slots: None,
            threads: None,
            active_streams: None,
            deadline: None,
            step_budget: None,
            restart: None,
            pin: Pin::default(),
            init_timeout: Duration::from_secs(300),
            required: true,
            memory: Memory::default(),
            memory_span: e.key_span,
            sampling: None,
            chunk: None,
            chunks: Vec::new(),
            env: Vec::new(),
        };
        if !is_name(&e.key) {
            c.bad_name(e.key_span, &e.key);
        }
        if e.value.as_map().is_none() {
            let m = format!("node `{}` is {}, not a map", e.key, e.value.shape());
            let at = if e.value.is_null() { e.key_span } else { e.value.span };
            c.error(Code::WrongType, at, m, "indent its keys below it, or write `{ use: TYPE }`");
            return d;
        }
        let node = &e.value;
        let get = |k: &str| node.get(k).or_else(|| defaults.and_then(|t| t.get(k)));
        d.input = node.get("in");
        d.find_type(c, node, e, get("sampling"));
        d.engine_keys(c, node, &get);
        d.choose_place(c, get("place"));
        super::applies::check(c, &mut d, node);
        d.restart = restart::read(c, node, defaults, d.schema.as_ref());
        d.pin = pin::read(c, node, defaults, d.schema.as_ref(), d.place);
        d.no_steps(c, node);
        d
    }
    fn find_type(&mut self, c: &mut Check<'_>, node: &Tree, e: &Entry, sampling: Option<&Tree>) {
        let Some(kind) = node.get("use") else {
            let layer = c.file.sources.get(e.key_span.file).map(|s| &s.layer);
            if matches!(layer, Some(Layer::Override | Layer::Environment)) {
                // A node that only an override names is a misspelt one.
                let nodes = c.file.root.get("nodes").and_then(Tree::as_map).unwrap_or_default();
                let others = nodes.iter().filter(|n| n.value.get("use").is_some()).map(|n| n.key.as_str());
                let d = Diagnostic::error(Code::MissingKey, e.key_span, format!("there is no node `{}`", e.key));
                c.out.push(d.nearest(&e.key, others));
            } else {
                c.error(Code::MissingKey, e.key_span, format!("node `{}` has no `use`", e.key), "add `use: TYPE`");
            }
            return;
        };
        let Some(name) = c.read::<String>(kind) else { return };
        let name = c.registry.canonical(&name).map_or(name, str::to_owned);
        self.kind = name.clone();
        let options = with_sampling(options_of(node), sampling);
        for o in options.as_map().unwrap_or_default() {
            if is_secret(&o.key) {
                keys::secret(&o.key, &o.value, &mut c.out);
            }
        }
        let Some(make) = c.registry.make(&name).cloned() else {
            let d = Diagnostic::error(Code::UnknownType, kind.span, format!("there is no node type `{name}`"));
            let d = match crate::file::nearest(&name, c.registry.names()) {
                Some(n) => d.hint(format!("did you mean `{n}`?")),
                None => d.hint("`omni-flow nodes` lists the types"),
            };
            c.out.push(d);
            return;
        };
        let given = options;
        let mut options = c.resolved(&given);
        options.span = e.key_span;
        match make.configure(&options) {
            Ok(configured) => {
                if c.cx.files {
                    let cx = BuildCx {
                        path: e.key.clone(),
                        folder: c.file.folder().to_owned(),
                        offline: c.cx.offline,
                        ..BuildCx::default()
                    };
                    if let Err(wrong) = configured.look(&cx) {
                        let at = options.get(&wrong.option).map_or(kind.span, |t| t.span);
                        let d =
                            Diagnostic::error(Code::ModelFile, at, format!("`{}`: {}", wrong.option, wrong.message));
                        c.out.push(if wrong.hint.is_empty() { d } else { d.hint(wrong.hint) });
                    }
                }
                self.schema = Some(configured.schema().clone());
                self.configured = Some(configured);
            }
            Err(mut found) => {
                // A message may hold the value of a variable, which is never shown.
                let mut hidden = Vec::new();
                references(&given, &mut hidden);
                for d in &mut found {
                    if let Some((_, name)) = hidden.iter().find(|(s, _)| Some(*s) == d.span) {
                        d.message = format!("the value of the variable {name} cannot be used here");
                        d.hint = Some(format!("check {name}"));
                    }
                }
                c.out.extend(found);
                self.schema = Some(make.schema());
            }
        }
    }
    fn engine_keys<'t>(&mut self, c: &mut Check<'_>, node: &Tree, get: &dyn Fn(&str) -> Option<&'t Tree>)
    where
        't: 'a,
    {
        let own = |k: &str| RESERVED.iter().any(|r| same_key(r, k));
        let mut seen: Vec<(String, Span)> = Vec::new();
        for e in node.as_map().unwrap_or_default().iter().filter(|e| own(&e.key)) {
            let key = kebab(&e.key);
            if let Some((_, first)) = seen.iter().find(|(k, _)| *k == key) {
                let d = Diagnostic::error(Code::DuplicateKey, e.key_span, format!("`{}` is given twice", e.key));
                c.out.push(d.label(*first, "first given here").hint("remove one of them"));
            }
            seen.push((key, e.key_span));
        }
        if let Some(t) = get("lane") {
            self.lane = c.lane(t).unwrap_or(Lane::MAIN);
        }
        if let Some(t) = node.get("fences") {
            self.fences = c.lane(t);
            if self.fences == Some(Lane::MAIN) {
                self.fences = None;
                c.error(
                    Code::Lane,
                    t.span,
                    "`main` is never fenced",
                    "declare a lane for the answer: `lanes: [reply]`",
                );
            } else if self.schema.as_ref().is_some_and(|s| !s.fences) {
                let m = format!("`{}` decides no turns, so it cannot fence", self.kind);
                c.error(Code::Fences, t.span, m, "say `fences` on a node such as `speech.turn`");
            }
        }
        let count = |c: &mut Check<'_>, key: &str, min: i64, most: usize| {
            let t = get(key)?;
            if let Some(d) = keys::fits(t, key, Shape::Count(min), None) {
                c.out.push(d);
                return None;
            }
            let n = t.as_text().and_then(crate::file::de::integer).and_then(|n| usize::try_from(n).ok());
            if n.is_none_or(|n| n > most) {
                let m = format!("`{key}` is {}, more than {most}", t.as_text().unwrap_or_default());
                c.error(Code::OutOfRange, t.span, m, "each takes memory or a thread: write what the machine can carry");
                return None;
            }
            n
        };
        self.slots = count(c, "slots", 1, MOST_SLOTS);
        self.threads = count(c, "threads", 1, MOST_THREADS);
        self.active_streams = count(c, "active-streams", 0, usize::MAX).filter(|n| *n > 0);
        if count(c, "replicas", 1, usize::MAX).is_some_and(|n| n > 1)
            && let Some(t) = get("replicas")
        {
            c.not_yet(t.span, "more than one replica");
        }
        if let Some(t) = get("devices") {
            c.not_yet(t.span, "`devices`");
        }
        if let Some(t) = get("balance") {
            const WORDS: [&str; 5] = ["random", "round-robin", "least-queue", "session", "least-queue-length"];
            match t.as_text() {
                Some("least-queue-length") => c.out.push(
                    Diagnostic::note(Code::ReferenceName, t.span, "`least-queue-length` is understood")
                        .hint("here it is `least-queue`"),
                ),
                _ => c.out.extend(keys::fits(t, "balance", Shape::Words(&WORDS), None)),
            }
        }
        self.deadline = get("deadline");
        self.step_budget = get("step-budget").and_then(|t| positive(c, t, "step-budget"));
        if let Some(d) = get("init-timeout").and_then(|t| positive(c, t, "init-timeout")) {
            self.init_timeout = d;
        }
        if let Some(t) = get("required") {
            self.required = c.read(t).unwrap_or(true);
        }
        if let Some(t) = get("memory") {
            self.memory_span = t.span;
            self.memory = memory(c, t);
        }
        self.env = c.env_map(get("env"));
        if let Some(t) = get("sampling") {
            if t.as_map().is_none() {
                c.error(Code::WrongType, t.span, "`sampling` takes a map", "write `sampling: { temperature: 0.7 }`");
            }
            self.sampling = Some(t.to_json());
        }
        super::chunk::read(c, self, node.get("chunk"), get("chunk"));
    }
    /// A client's end takes no steps.
    fn no_steps(&mut self, c: &mut Check<'_>, node: &Tree) {
        if self.schema.as_ref().is_some_and(|s| s.client.is_some()) {
            self.step_budget = None;
            if let Some(e) = node.entry("step-budget") {
                let m = format!("`{}` is a client's end and takes no steps", self.kind);
                c.error(Code::Place, e.key_span, m, "leave `step-budget` out");
            }
        }
    }
    fn choose_place(&mut self, c: &mut Check<'_>, given: Option<&Tree>) {
        let Some(schema) = &self.schema else { return };
        let (heavy, shared) = (schema.weight == Weight::Heavy, schema.shared);
        self.place = match (shared, heavy) {
            (true, _) => Place::Shared,
            (false, true) => Place::Pool,
            _ => Place::Task,
        };
        let Some(t) = given else { return };
        let Some(word) = c.read::<String>(t) else { return };
        let at = t.span;
        let kind = &self.kind;
        self.place = match word.as_str() {
            "shared" if !shared => {
                let m = format!("`{kind}` is not a model that sessions share");
                return c.error(Code::Place, at, m, "use `pool` or `thread`, or leave `place` out");
            }
            "task" | "pool" | "thread" if shared => {
                let m = format!("`{kind}` is a model that sessions share, so it runs on `shared`");
                return c.error(Code::Place, at, m, "write `place: shared`, or leave `place` out");
            }
            "task" if heavy => {
                let m = format!("a step of `{kind}` is heavy and would stop all other work on a task");
                return c.error(Code::Place, at, m, "write `place: pool`, or `place: thread` if it owns a device");
            }
            "task" => Place::Task,
            "pool" => Place::Pool,
            "thread" => Place::Thread,
            "shared" => Place::Shared,
            other => {
                let places = c.file.root.get("places");
                if places.is_some_and(|p| p.entry(other).is_some()) {
                    return c.not_yet(at, &format!("place `{other}`: another process"));
                }
                let names = places.and_then(Tree::as_map).unwrap_or_default().iter().map(|e| e.key.as_str());
                let d = Diagnostic::error(Code::Place, at, format!("there is no place `{other}`"));
                c.out.push(d.nearest(other, ["task", "pool", "thread", "shared"].into_iter().chain(names)));
                return;
            }
        };
    }
    /// What the input takes, if it is known.
    pub fn input_kind(&self, port: usize) -> Option<Kind> {
        self.schema.as_ref()?.inputs.get(port).map(|p| p.kind.clone())
    }
}

/// The options, with those of `sampling` that the node does not set itself.
fn with_sampling(mut options: Tree, sampling: Option<&Tree>) -> Tree {
    let (Value::Map(own), Some(more)) = (&mut options.value, sampling.and_then(Tree::as_map)) else { return options };
    let missing: Vec<Entry> = more.iter().filter(|m| !own.iter().any(|o| same_key(&o.key, &m.key))).cloned().collect();
    own.extend(missing);
    options
}

/// A duration above zero.
pub(super) fn positive(c: &mut Check<'_>, t: &Tree, key: &str) -> Option<Duration> {
    if let Some(d) = keys::fits(t, key, Shape::Time, None) {
        c.out.push(d);
        return None;
    }
    c.read::<Dur>(t).map(|d| d.0)
}

/// All `${env:NAME}` in a value.
fn references(t: &Tree, out: &mut Vec<(Span, String)>) {
    match &t.value {
        Value::Scalar(s) => {
            if let Some(Reference::Env(name)) = reference(&s.text) {
                out.push((t.span, name.to_owned()));
            }
        }
        Value::Seq(items) => items.iter().for_each(|t| references(t, out)),
        Value::Map(m) => m.iter().for_each(|e| references(&e.value, out)),
    }
}

fn memory(c: &mut Check<'_>, t: &Tree) -> Memory {
    let mut m = Memory::default();
    let Value::Map(entries) = &t.value else {
        c.error(Code::WrongType, t.span, "`memory` takes a map", "write `memory: { host: 512MiB, device: 2GiB }`");
        return m;
    };
    for e in entries {
        let into = match e.key.as_str() {
            "host" => &mut m.host,
            "device" => &mut m.device,
            _ => {
                let d = Diagnostic::error(Code::UnknownKey, e.key_span, format!("unknown key `{}` in `memory`", e.key));
                c.out.push(d.nearest(&e.key, ["host", "device"]));
                continue;
            }
        };
        if let Some(s) = c.read::<Size>(&e.value) {
            *into = s.0;
        }
    }
    m
}
