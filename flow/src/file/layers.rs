//! The layers above a graph file, and how layers are merged.
//!
//! Highest first: overrides, flags, environment, the file's `platforms`, the file, what it extends. Maps merge key by
//! key, nodes by name; lists and scalars replace. Nothing is read from the process here: the caller hands in all.

use std::collections::HashMap;

use super::code::Code;
use super::diagnostic::{Diagnostic, nearest};
use super::parse::parse;
use super::span::{Layer, Sources, Span};
use super::tree::{Entry, Tree, Value, kebab};

/// What stands above the file.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// `--set` values, `nodes.tts.slots=8`; later ones win.
    pub sets: Vec<String>,
    /// `--override` values, JSON objects of the shape of a graph file; `sets` win over them.
    pub overrides: Vec<String>,
    /// Flags with the key that each sets: (`--listen`, `serve.listen`, `0.0.0.0:80`).
    pub flags: Vec<(String, String, String)>,
    /// Environment variables; those that do not concern graph files are skipped.
    pub env: Vec<(String, String)>,
    /// Names of platforms that this machine matches; later ones win.
    pub platforms: Vec<String>,
}

/// Sections that an environment variable can name.
pub(crate) const SECTIONS: [&str; 7] = ["session", "serve", "nodes", "places", "defaults", "scheduler", "placement"];

/// Merges `over` into `base`.
pub(crate) fn merge(base: &mut Tree, over: Tree, path: &str, out: &mut Vec<Diagnostic>) {
    if path == "nodes.*.in" || !matches!((&base.value, &over.value), (Value::Map(_), Value::Map(_))) {
        let differ = matches!(base.value, Value::Map(_)) != matches!(over.value, Value::Map(_));
        if differ && !base.is_null() && !over.is_null() && path != "nodes.*.in" {
            out.push(
                Diagnostic::warning(Code::Replaced, over.span, format!("{} replaces {}", over.shape(), base.shape()))
                    .label(base.span, "this is replaced whole")
                    .hint("write a map if single keys were meant"),
            );
        }
        *base = over;
        return;
    }
    let Value::Map(over) = over.value else { return };
    let Value::Map(entries) = &mut base.value else { return };
    // Keys of the base by their meaning, so that merging takes one pass.
    let spelt = |k: &str| if path == "env" { k.to_owned() } else { kebab(k) };
    let mut index: HashMap<String, usize> = entries.iter().enumerate().map(|(i, e)| (spelt(&e.key), i)).collect();
    for e in over {
        let below = match path {
            "" => e.key.clone(),
            "nodes" => "nodes.*".to_owned(),
            p => format!("{p}.{}", kebab(&e.key)),
        };
        match index.get(&spelt(&e.key)).and_then(|i| entries.get_mut(*i)) {
            // A map in `in` that names ports is merged port by port; the long form is a value of its own.
            Some(b) if below == "nodes.*.in" && both_ports(&b.value, &e.value) => {
                merge(&mut b.value, e.value, "nodes.*.in.ports", out);
            }
            Some(b) => merge(&mut b.value, e.value, &below, out),
            None => {
                index.insert(spelt(&e.key), entries.len());
                entries.push(e);
            }
        }
    }
}

fn both_ports(a: &Tree, b: &Tree) -> bool {
    a.as_map().is_some() && b.as_map().is_some()
}

/// A tree that has only `value`, at a dotted path.
pub(crate) fn nest(path: &[&str], value: Tree, key_span: Span) -> Tree {
    path.iter().rev().fold(value, |value, key| Tree {
        span: key_span,
        value: Value::Map(vec![Entry { key: (*key).to_owned(), key_span, value }]),
    })
}

/// The tree of one `--set`.
pub(crate) fn set(sources: &mut Sources, text: &str, out: &mut Vec<Diagnostic>) -> Option<Tree> {
    let file = sources.add("--set", text, Layer::Override);
    let all = whole(file, text);
    let Some((path, value)) = text.split_once('=') else {
        let d = Diagnostic::error(Code::Override, all, "there is no `=`");
        out.push(d.hint("write `--set nodes.NAME.KEY=VALUE`"));
        return None;
    };
    assign(file, path, value, path.len() as u32 + 1, out)
}

/// The tree of one flag.
pub(crate) fn flag(
    sources: &mut Sources,
    name: &str,
    path: &str,
    value: &str,
    out: &mut Vec<Diagnostic>,
) -> Option<Tree> {
    let file = sources.add(name, value, Layer::Flag);
    assign(file, path, value, 0, out)
}

/// A value read as YAML (so that lists and maps can be given) at a dotted path.
fn assign(file: u32, path: &str, value: &str, offset: u32, out: &mut Vec<Diagnostic>) -> Option<Tree> {
    let keys: Vec<&str> = path.trim().split('.').collect();
    let key_span = if offset == 0 { whole(file, value) } else { whole(file, path) };
    if keys.iter().any(|k| k.is_empty()) || keys.len() > 32 {
        let d = Diagnostic::error(Code::Override, key_span, format!("`{path}` is not a path of keys"));
        out.push(d.hint("write `nodes.NAME.KEY`"));
        return None;
    }
    let mut found = Vec::new();
    let tree = if value.trim().is_empty() {
        Some(Tree::scalar("", true, whole(file, value)))
    } else {
        parse(file, value, &mut found)
    };
    let columns = offset; // `path=` is counted in bytes; paths of keys are ASCII in every valid file
    for mut d in found {
        if let Some(s) = &mut d.span {
            *s = shifted(*s, columns);
        }
        for (s, _) in &mut d.labels {
            *s = shifted(*s, columns);
        }
        out.push(d);
    }
    let mut tree = tree?;
    shift(&mut tree, columns);
    Some(nest(&keys, tree, key_span))
}

/// The tree of one `--override`.
pub(crate) fn json(sources: &mut Sources, text: &str, out: &mut Vec<Diagnostic>) -> Option<Tree> {
    let file = sources.add("--override", text, Layer::Override);
    // YAML 1.2 contains JSON, so our own reader gives the places; JSON's own checks that it is JSON.
    if let Err(e) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let d = Diagnostic::error(Code::Override, whole(file, text), format!("not JSON: {e}"));
        out.push(d.hint("write `--override '{\"nodes\": {\"NAME\": {\"KEY\": 1}}}'`"));
        return None;
    }
    let tree = parse(file, text, out)?;
    if tree.as_map().is_none() {
        let d = Diagnostic::error(Code::Override, tree.span, format!("{} is not a part of a graph", tree.shape()));
        out.push(d.hint("write an object with the keys of a graph file"));
        return None;
    }
    Some(tree)
}

/// The tree of one environment variable, or `None` if it does not concern graph files.
pub(crate) fn variable(
    sources: &mut Sources,
    base: &Tree,
    name: &str,
    value: &str,
    out: &mut Vec<Diagnostic>,
) -> Option<Tree> {
    let rest = name.strip_prefix("OMNI_FLOW_")?;
    let path: Vec<String> = match rest {
        "INPUT_WAIT_TIMEOUT_S" => {
            let file = sources.add(name, value, Layer::Environment);
            let span = whole(file, value);
            let Some(n) = super::de::number(value.trim()) else {
                let d = Diagnostic::error(Code::Environment, span, format!("`{value}` is not a number of seconds"));
                out.push(d.hint(format!("set {name} to seconds; 0 or less for no limit")));
                return None;
            };
            let text = if n <= 0.0 { "off".to_owned() } else { format!("{}ms", (n * 1000.0).round()) };
            return Some(nest(&["defaults", "edge", "deadline"], Tree::scalar(text, true, span), span));
        }
        _ if !rest.contains("__") => return None,
        _ => rest.split("__").map(|p| kebab(&p.to_lowercase())).collect(),
    };
    let file = sources.add(name, value, Layer::Environment);
    let span = whole(file, value);
    let mut path: Vec<&str> = path.iter().map(String::as_str).collect();
    if path[0] == "storage" {
        path.insert(0, "serve");
    }
    if !SECTIONS.contains(&path[0]) || path.iter().any(|p| p.is_empty()) {
        let d = Diagnostic::error(Code::Environment, span, format!("{name} names no section of a graph"));
        out.push(match nearest(path[0], SECTIONS) {
            Some(n) => d.hint(format!("did you mean `OMNI_FLOW_{}__...`?", n.to_uppercase())),
            None => d.hint("sections are SESSION, SERVE, NODES, PLACES, DEFAULTS, SCHEDULER, PLACEMENT"),
        });
        return None;
    }
    // Names in the file keep the spelling of the file.
    let mut at = Some(base);
    let mut keys = Vec::new();
    for p in &path {
        let entry = at.and_then(|t| t.entry(p));
        keys.push(entry.map_or(*p, |e| e.key.as_str()));
        at = entry.map(|e| &e.value);
    }
    Some(nest(&keys, Tree::scalar(value, true, span), span))
}

fn whole(file: u32, text: &str) -> Span {
    super::span::Index::new(text).span(file, 0, text.len() as u32)
}

fn shifted(s: Span, by: u32) -> Span {
    let column = if s.line == 1 { s.column + by } else { s.column };
    Span { start: s.start + by, end: s.end + by, column, ..s }
}

fn shift(t: &mut Tree, by: u32) {
    t.span = shifted(t.span, by);
    match &mut t.value {
        Value::Scalar(_) => {}
        Value::Seq(v) => v.iter_mut().for_each(|t| shift(t, by)),
        Value::Map(m) => m.iter_mut().for_each(|e| {
            e.key_span = shifted(e.key_span, by);
            shift(&mut e.value, by);
        }),
    }
}
