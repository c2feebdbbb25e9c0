//! What holds where no layer says anything: the last line of `omni-flow check --explain`.

use super::tree::{kebab, same_key};
use super::{Explained, GraphFile, Layer};
use crate::Registry;

/// Defaults of the engine's own keys, as they would be written.
const TOP: [(&str, &str); 7] = [
    ("version", "1"),
    ("chunked", "true"),
    ("lanes", "[]"),
    ("session.max-sessions", "64, or the fewest `slots` of a node"),
    ("session.idle-ttl", "300s"),
    ("scheduler.starvation-picks", "32"),
    ("scheduler.starvation", "100ms"),
];
/// The same, of a node.
const NODE: [(&str, &str); 12] = [
    ("lane", "main"),
    ("replicas", "1"),
    ("balance", "random"),
    ("slots", "as many as `session.max-sessions`"),
    ("active-streams", "0"),
    ("threads", "those of the engine's pool"),
    ("place", "as the type declares: `task`, `pool` for heavy steps, `shared` for models"),
    ("deadline", "600s of a producer that has something to do"),
    ("restart", "never"),
    ("required", "true"),
    ("init-timeout", "300s"),
    ("memory", "not limited"),
];
/// The same, of an edge.
const EDGE: [(&str, &str); 5] = [
    ("window", "{ items: 32, bytes: 4MiB, span: 500ms }, into a player span: 200ms"),
    ("policy", "wait"),
    ("deadline", "600s of a producer that has something to do"),
    ("class", "normal"),
    ("via", "memory"),
];

/// The default of a key that no layer sets; `None` if there is no such key, or it has none.
pub(super) fn default_of(file: &GraphFile, registry: &Registry, key: &str) -> Option<Explained> {
    let said = |at: &str, value: &str| Explained {
        key: key.to_owned(),
        value: serde_json::Value::String(value.to_owned()),
        layer: Layer::Default.to_string(),
        at: at.to_owned(),
    };
    let in_table = |table: &[(&str, &str)], key: &str| {
        table.iter().find(|(k, _)| *k == kebab(key)).map(|(_, value)| said("the engine", value))
    };
    let Some((node, rest)) = key.strip_prefix("nodes.").and_then(|r| r.split_once('.')) else {
        return in_table(&TOP, key);
    };
    let kind = file.root.get("nodes")?.get(node)?.get("use")?.as_text()?;
    if let Some(option) = registry.get(kind)?.options.into_iter().find(|o| same_key(&o.name, rest)) {
        return option.default.map(|value| said(kind, &value));
    }
    match rest.strip_prefix("in.") {
        Some(edge) => in_table(&EDGE, edge.rsplit('.').next().unwrap_or_default()),
        None => in_table(&NODE, rest),
    }
}
