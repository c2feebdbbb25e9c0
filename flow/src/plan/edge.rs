//! Edges, as they are written on their consumers, and the ports that they mean.

use std::time::Duration;

use super::check::Check;
use super::keys::{self, Shape};
use super::node::Draft;
use super::{EdgeClass, Policy};
use crate::file::de::{from_tree, integer};
use crate::file::{Code, Diagnostic, Entry, Severity, Span, Tree, kebab, ticks};
use crate::units::{Dur, Size};
use crate::{Amount, Client, MediaTime, Port, Schema};

/// An edge as far as it could be understood.
pub(super) struct Wire {
    pub from: (usize, usize),
    pub to: (usize, usize),
    /// The source as written.
    pub span: Span,
    pub limit: Amount,
    pub policy: Policy,
    pub deadline: Option<Duration>,
    pub strict: bool,
    pub class: EdgeClass,
    pub feedback: bool,
}

/// Bounds that an edge has if nothing else is said.
const ITEMS: u64 = 32;
const BYTES: u64 = 4 << 20;
const SPAN_MS: i64 = 500;
const PLAYER_SPAN_MS: i64 = 200;
const DEADLINE: Duration = Duration::from_secs(600);
const KEYS: [&str; 9] =
    ["from", "window", "policy", "deadline", "class", "via", "fallback", "window-size", "max-inflight"];

/// All edges of the graph.
pub(super) fn wires(c: &mut Check<'_>, drafts: &mut [Draft<'_>]) -> Vec<Wire> {
    let root = &c.file.root;
    let defaults = root.find("defaults.edge");
    if let Some(d) = defaults {
        // Said once here, and not again for each edge.
        options(c, d, Target { to: None, defaults: None, node: None }, true);
    }
    let mut all: Vec<Wire> = Vec::new();
    for i in 0..drafts.len() {
        let d = &drafts[i];
        let Some(input) = d.input.filter(|t| !t.is_null()) else {
            unfed(c, d, &[]);
            continue;
        };
        let mut sources: Vec<(Option<usize>, &Tree)> = Vec::new();
        let mut broken = d.schema.is_none();
        match (input.as_seq(), input.as_map()) {
            (Some(items), _) => {
                for (n, t) in items.iter().enumerate() {
                    match &d.schema {
                        Some(s) if n >= s.inputs.len() => {
                            let m = format!("`{}` has {} but this is source {}", d.name, inputs(s), n + 1);
                            c.error(Code::UnknownEnd, t.span, m, "take it out");
                        }
                        _ => sources.push((d.schema.is_some().then_some(n), t)),
                    }
                }
            }
            (_, Some(m)) if input.get("from").is_none() && !looks_long(m, d.schema.as_ref()) => {
                for e in m {
                    match d.schema.as_ref().map(|s| (s.find_input(&kebab(&e.key)), s)) {
                        Some((None, s)) => {
                            broken = true;
                            let m = format!("`{}` has no input `{}`", d.name, e.key);
                            let d = Diagnostic::error(Code::UnknownEnd, e.key_span, m);
                            c.out.push(d.nearest(&e.key, s.inputs.iter().map(|p| p.name.as_str())));
                        }
                        Some((Some(p), _)) => match e.value.as_seq() {
                            Some(list) => {
                                broken = true;
                                fed_list(c, d, &e.key, list, e.value.span);
                            }
                            None => sources.push((Some(p), &e.value)),
                        },
                        None => sources.push((None, &e.value)),
                    }
                }
            }
            _ => match &d.schema {
                Some(s) => match only_input(s) {
                    Some(p) => sources.push((Some(p), input)),
                    None => {
                        broken = true;
                        let names: Vec<&str> = s.inputs.iter().map(|p| p.name.as_str()).collect();
                        if names.is_empty() {
                            let m = format!("`{}` ({}) has no inputs", d.name, d.kind);
                            c.error(Code::UnknownEnd, input.span, m, "take `in` out");
                        } else {
                            let m = format!("`{}` has several inputs: {}", d.name, ticks(&names));
                            let hint =
                                format!("name it: `in: {{ {}: {} }}`", names[0], input.as_text().unwrap_or("SOURCE"));
                            c.error(Code::Ambiguous, input.span, m, hint);
                        }
                    }
                },
                None => sources.push((None, input)),
            },
        }
        let mut fed: Vec<(usize, Span)> = Vec::new();
        for (port, source) in sources {
            if let Some(p) = port {
                if let Some((_, first)) = fed.iter().find(|(q, _)| *q == p) {
                    let name = d.schema.as_ref().map_or("", |s| s.inputs[p].name.as_str());
                    let m = format!("input `{name}` of `{}` is fed twice", d.name);
                    let d = Diagnostic::error(Code::FedTwice, source.span, m).label(*first, "first fed here");
                    c.out.push(d.hint("join the streams with a node made for it"));
                    continue;
                }
                fed.push((p, source.span));
            }
            let target = port.and_then(|p| d.schema.as_ref().map(|s| (&s.inputs[p], player(d))));
            let set = options(c, source, Target { to: target, defaults, node: d.deadline }, false);
            let Some(from) = set.from.and_then(|t| output(c, drafts, t).map(|f| (f, t.span))) else { continue };
            let ((node, out), span) = from;
            let (Some(p), Some(out)) = (port, out) else { continue };
            let limit = roomy(c, set.limit, set.span, &drafts[node], out);
            let feedback = target.is_some_and(|(port, _)| port.feedback);
            all.push(Wire {
                from: (node, out),
                to: (i, p),
                span,
                limit,
                policy: set.policy,
                deadline: set.deadline,
                strict: set.strict,
                class: set.class,
                feedback,
            });
        }
        if !broken {
            unfed(c, d, &fed);
        }
    }
    all
}

/// The bounds, with room for the longest chunk: a window that was given must have it, another one gets it.
fn roomy(c: &mut Check<'_>, mut limit: Amount, given: Option<Span>, from: &Draft<'_>, out: usize) -> Amount {
    let Some(port) = from.schema.as_ref().and_then(|s| s.outputs.get(out)) else { return limit };
    if limit.span >= port.longest {
        return limit;
    }
    if let Some(at) = given {
        let (has, needs) = (Dur(limit.span.to_duration()), Dur(port.longest.to_duration()));
        let m = format!("the window holds {has}, but a chunk of `{}.{}` is {needs} long", from.name, port.name);
        c.error(Code::Window, at, m, format!("write `span: {needs}` or more"));
    }
    limit.span = port.longest;
    limit
}

/// A map without `from` that has keys of an edge, and no input's name, was meant as the long form.
fn looks_long(m: &[Entry], schema: Option<&Schema>) -> bool {
    let port = |e: &Entry| schema.is_some_and(|s| s.find_input(&kebab(&e.key)).is_some());
    m.iter().any(|e| KEYS.contains(&kebab(&e.key).as_str())) && !m.iter().any(port)
}

fn inputs(s: &Schema) -> String {
    match s.inputs.len() {
        0 => "no inputs".to_owned(),
        1 => "one input".to_owned(),
        n => format!("{n} inputs"),
    }
}

/// True for the ends that play what they are given.
fn player(d: &Draft<'_>) -> bool {
    d.kind.ends_with(".playout") || d.schema.as_ref().is_some_and(|s| s.client == Some(Client::Out))
}

/// The only input: of several, the only one that must be fed.
fn only_input(s: &Schema) -> Option<usize> {
    if s.inputs.len() == 1 {
        return Some(0);
    }
    let mut required = s.inputs.iter().enumerate().filter(|(_, p)| p.required);
    match (required.next(), required.next()) {
        (Some((i, _)), None) => Some(i),
        _ => None,
    }
}

/// The output that is meant where none is named: the only one, or the only one that is not there for the few.
fn only_output(s: &Schema) -> Option<usize> {
    if s.outputs.len() == 1 {
        return Some(0);
    }
    let mut required = s.outputs.iter().enumerate().filter(|(_, p)| p.required);
    match (required.next(), required.next()) {
        (Some((i, _)), None) => Some(i),
        _ => None,
    }
}

fn unfed(c: &mut Check<'_>, d: &Draft<'_>, fed: &[(usize, Span)]) {
    let Some(s) = &d.schema else { return };
    for (i, p) in s.inputs.iter().enumerate() {
        if p.required && !fed.iter().any(|(q, _)| *q == i) {
            let m = format!("input `{}` of `{}` is not fed", p.name, d.name);
            let at = d.input.map_or(d.name_span, |t| t.span);
            let hint = if s.inputs.len() == 1 {
                format!("add `in: NODE`; it takes {}", p.kind)
            } else {
                format!("add `in: {{ {}: NODE }}`; it takes {}", p.name, p.kind)
            };
            c.error(Code::Unfed, at, m, hint);
        }
    }
}

fn fed_list(c: &mut Check<'_>, d: &Draft<'_>, port: &str, list: &[Tree], span: Span) {
    let second = list.get(1).map_or(span, |t| t.span);
    let mut x = Diagnostic::error(Code::FedTwice, second, format!("input `{port}` of `{}` is fed twice", d.name));
    if let Some(first) = list.first().filter(|_| list.len() > 1) {
        x = x.label(first.span, "first fed here");
    }
    c.out.push(x.hint("an input has one source; join the streams with a node made for it"));
}

/// The output that a source names; the port is `None` if its node's type is unknown.
fn output(c: &mut Check<'_>, drafts: &[Draft<'_>], t: &Tree) -> Option<(usize, Option<usize>)> {
    let Some(text) = t.as_text() else {
        c.error(Code::WrongType, t.span, format!("a source is {}", t.shape()), "write `NODE` or `NODE.PORT`");
        return None;
    };
    let (node, port) = text.split_once('.').map_or((text, None), |(n, p)| (n, Some(p)));
    let Some(i) = drafts.iter().position(|d| d.name == node) else {
        let d = Diagnostic::error(Code::UnknownEnd, t.span, format!("there is no node `{node}`"));
        c.out.push(d.nearest(node, drafts.iter().map(|d| d.name)));
        return None;
    };
    let Some(schema) = &drafts[i].schema else { return Some((i, None)) };
    let names: Vec<&str> = schema.outputs.iter().map(|p| p.name.as_str()).collect();
    match port {
        Some(p) => match schema.find_output(&kebab(p)) {
            Some(o) => Some((i, Some(o))),
            None => {
                let d = Diagnostic::error(Code::UnknownEnd, t.span, format!("`{node}` has no output `{p}`"));
                c.out.push(match crate::file::nearest(p, names.iter().copied()) {
                    Some(n) => d.hint(format!("did you mean `{node}.{n}`?")),
                    None if names.is_empty() => d.hint(format!("`{node}` has no outputs")),
                    None => d.hint(format!("it has {}", ticks(&names))),
                });
                None
            }
        },
        None if only_output(schema).is_some() => Some((i, only_output(schema))),
        None if names.is_empty() => {
            c.error(Code::UnknownEnd, t.span, format!("`{node}` has no outputs"), "take another source");
            None
        }
        None => {
            let m = format!("`{node}` has several outputs: {}", ticks(&names));
            c.error(Code::Ambiguous, t.span, m, format!("name it: `{node}.{}`", names[0]));
            None
        }
    }
}

#[derive(Clone, Copy)]
struct Target<'t> {
    /// The input port and whether it is that of a player.
    to: Option<(&'t Port, bool)>,
    defaults: Option<&'t Tree>,
    /// The node's own deadline.
    node: Option<&'t Tree>,
}

struct Set<'t> {
    from: Option<&'t Tree>,
    limit: Amount,
    policy: Policy,
    deadline: Option<Duration>,
    /// The deadline stands in a graph file.
    strict: bool,
    class: EdgeClass,
    /// Where the edge's own window in media time stands, if it has one.
    span: Option<Span>,
}

/// Reads a source in its short or long form.
fn options<'t>(c: &mut Check<'_>, t: &'t Tree, target: Target<'_>, is_default: bool) -> Set<'t> {
    let player = target.to.is_some_and(|(_, p)| p);
    let span = MediaTime::from_millis(if player { PLAYER_SPAN_MS } else { SPAN_MS });
    let mut limit = Amount { items: ITEMS, bytes: BYTES, span };
    let mut set = Set {
        from: (!is_default).then_some(t),
        limit,
        policy: Policy::Wait,
        deadline: Some(DEADLINE),
        strict: false,
        class: EdgeClass::Normal,
        span: None,
    };
    // Values of `defaults.edge` were checked once; what is wrong there is not said again.
    if let Some(d) = target.defaults {
        let before = c.out.len();
        let player_span = limit.span;
        window(c, d, &mut limit);
        if player {
            limit.span = limit.span.min(player_span);
        }
        set.policy = d.get("policy").and_then(|p| policy(c, p)).unwrap_or_default();
        if let Some(x) = d.get("deadline") {
            (set.deadline, set.strict) = (deadline(c, x), true);
        }
        set.class = d.get("class").and_then(|x| class(c, x)).unwrap_or_default();
        c.out.truncate(before);
        if target.to.is_some_and(|(p, _)| !p.lossy) {
            set.policy = Policy::Wait;
        }
    }
    if let Some(n) = target.node {
        (set.deadline, set.strict) = (deadline(c, n), true);
    }
    set.limit = limit;
    let Some(m) = t.as_map() else { return set };
    set.from = t.get("from");
    for e in m {
        let key = kebab(&e.key);
        match key.as_str() {
            "from" if !is_default => {}
            "via" | "fallback" => c.not_yet(e.key_span, &format!("`{key}`")),
            "window" | "window-size" | "max-inflight" => {}
            "policy" => {
                set.policy = policy(c, &e.value).unwrap_or_default();
                if let Some((port, _)) = target.to.filter(|(p, _)| !p.lossy && set.policy != Policy::Wait) {
                    let m = format!("input `{}` does not tolerate loss", port.name);
                    c.error(Code::Lossy, e.value.span, m, "write `policy: wait`, or leave it out");
                }
            }
            "deadline" => (set.deadline, set.strict) = (deadline(c, &e.value), true),
            "class" => set.class = class(c, &e.value).unwrap_or_default(),
            _ => {
                let d = Diagnostic::error(Code::UnknownKey, e.key_span, format!("unknown key `{}` of an edge", e.key));
                c.out.push(d.nearest(&e.key, KEYS));
            }
        }
    }
    if set.from.is_none() && !is_default {
        c.error(Code::MissingKey, t.span, "the edge has no `from`", "add `from: NODE`");
    }
    window(c, t, &mut limit);
    set.span = t.find("window.span").map(|t| t.span);
    if limit.items == u64::MAX && limit.bytes == u64::MAX && limit.span == MediaTime::from_ticks(i64::MAX) {
        let at = t.get("window").map_or(t.span, |w| w.span);
        c.error(Code::Bounds, at, "the edge has no bound", "give at least one of `items`, `bytes`, `span`");
    }
    set.limit = limit;
    set
}

fn policy(c: &mut Check<'_>, t: &Tree) -> Option<Policy> {
    let words = ["wait", "drop-oldest", "latest"];
    let at = word(c, t, "policy", &words)?;
    Some([Policy::Wait, Policy::DropOldest, Policy::Latest][at])
}

fn class(c: &mut Check<'_>, t: &Tree) -> Option<EdgeClass> {
    let at = word(c, t, "class", &["realtime", "normal", "background"])?;
    Some([EdgeClass::Realtime, EdgeClass::Normal, EdgeClass::Background][at])
}

fn word(c: &mut Check<'_>, t: &Tree, key: &str, words: &[&str]) -> Option<usize> {
    let text = t.as_text().unwrap_or_default();
    let at = words.iter().position(|w| *w == text);
    if at.is_none() {
        let d = Diagnostic::error(Code::WrongType, t.span, format!("`{text}` is no value of `{key}`"));
        c.out.push(d.nearest(text, words.iter().copied()));
    }
    at
}

/// `off`, or zero and below with a unit, is no deadline.
fn deadline(c: &mut Check<'_>, t: &Tree) -> Option<Duration> {
    let text = t.as_text().unwrap_or_default();
    if text == "off" || (text.starts_with('-') && text[1..].parse::<Dur>().is_ok()) {
        return None;
    }
    c.read::<Dur>(t).map(|d| d.0).filter(|d| !d.is_zero())
}

/// Reads `window` and the names that other systems give to its parts. Nothing (`~`) takes a bound away.
fn window(c: &mut Check<'_>, edge: &Tree, limit: &mut Amount) {
    for (name, ours) in [("window-size", "window: { bytes: ... }"), ("max-inflight", "window: { items: ... }")] {
        let Some(e) = edge.entry(name) else { continue };
        let d = Diagnostic::note(Code::ReferenceName, e.key_span, format!("`{}` is understood", e.key));
        c.out.push(d.hint(format!("here it is `{ours}`")));
        if name == "window-size" { bytes(c, &e.value, name, limit) } else { items(c, &e.value, name, limit) }
    }
    let Some(w) = edge.get("window") else { return };
    let Some(m) = w.as_map() else {
        let m = format!("`window` takes a map, found {}", w.shape());
        return c.error(Code::WrongType, w.span, m, "write `window: { items: 32, bytes: 4MiB, span: 500ms }`");
    };
    for e in m {
        match kebab(&e.key).as_str() {
            "items" => items(c, &e.value, "items", limit),
            "bytes" => bytes(c, &e.value, "bytes", limit),
            "span" if e.value.is_null() => limit.span = MediaTime::from_ticks(i64::MAX),
            "span" => match keys::fits(&e.value, "span", Shape::Time, None) {
                Some(d) => c.out.push(d),
                None => {
                    if let Ok(d) = from_tree::<Dur>(&e.value) {
                        limit.span = MediaTime::from_duration(d.0);
                    }
                }
            },
            _ => {
                let d = Diagnostic::error(Code::UnknownKey, e.key_span, format!("unknown key `{}` in `window`", e.key));
                c.out.push(d.nearest(&e.key, ["items", "bytes", "span"]));
            }
        }
    }
}

fn items(c: &mut Check<'_>, t: &Tree, key: &str, limit: &mut Amount) {
    if t.is_null() {
        limit.items = u64::MAX;
        return;
    }
    match keys::fits(t, key, Shape::Count(1), None) {
        Some(d) => c.out.push(d),
        None => {
            if let Some(n) = t.as_text().and_then(integer).and_then(|n| u64::try_from(n).ok()) {
                limit.items = n;
            }
        }
    }
}

fn bytes(c: &mut Check<'_>, t: &Tree, key: &str, limit: &mut Amount) {
    if t.is_null() {
        limit.bytes = u64::MAX;
        return;
    }
    // The contract gives windows in sizes; the reference's name is in bytes by definition.
    let bare = key == "window-size" && t.as_text().and_then(integer).is_some();
    if bare {
        match keys::fits(t, key, Shape::Bytes, None) {
            Some(d) => c.out.push(d),
            None => limit.bytes = t.as_text().and_then(integer).and_then(|n| u64::try_from(n).ok()).unwrap_or(BYTES),
        }
    } else if let Some(s) = c.read::<Size>(t) {
        if s.0 == 0 {
            c.error(Code::OutOfRange, t.span, "a window of zero bytes lets nothing through", "it is above zero");
        } else {
            limit.bytes = s.0;
        }
    }
}

/// Warns of outputs that nobody takes.
pub(super) fn unused(c: &mut Check<'_>, drafts: &[Draft<'_>], wires: &[Wire]) {
    // What is wrong may have been meant for the output.
    if c.out.iter().any(|d| d.severity == Severity::Error) {
        return;
    }
    for (i, d) in drafts.iter().enumerate() {
        let Some(s) = &d.schema else { continue };
        let open = |p: &usize| !wires.iter().any(|w| w.from == (i, *p));
        let all = (0..s.outputs.len()).all(|p| open(&p));
        let loose: Vec<&str> = s
            .outputs
            .iter()
            .enumerate()
            .filter(|(p, port)| open(p) && (all || port.required))
            .map(|(_, p)| p.name.as_str())
            .collect();
        if loose.is_empty() {
            continue;
        }
        let what = if loose.len() == 1 { "output" } else { "outputs" };
        let m = format!("nothing takes the {what} {} of `{}`", ticks(&loose), d.name);
        c.out.push(if all {
            Diagnostic::warning(Code::Unused, d.name_span, m).hint("connect it, or take the node out")
        } else {
            Diagnostic::note(Code::Unused, d.name_span, m).hint("connect it if it was meant to be heard")
        });
    }
}
