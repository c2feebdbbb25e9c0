//! A hash of all that two parts of one graph must agree on: stable over machines, versions of Rust and the order of keys.

use super::Plan;
use crate::file::{Tree, Value, kebab};

/// FNV-1a with 64 bits over a canonical form of the graph.
pub(super) fn hash(plan: &Plan, root: &Tree) -> u64 {
    let mut text = String::new();
    canonical(root, "", &mut text);
    // What was chosen by default counts too: another program may choose otherwise.
    for e in &plan.edges {
        text.push_str(&format!("|{:?}>{:?} {:?} {} {:?}", e.from, e.to, e.lane, e.kind, e.limit));
    }
    for n in &plan.nodes {
        text.push_str(&format!("|{} {} {:?}", n.name, n.kind, n.place));
    }
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// Maps in the order of their keys, except nodes, whose order is part of the graph; each text with its length, so that
/// no two trees read alike.
fn canonical(t: &Tree, path: &str, out: &mut String) {
    match &t.value {
        _ if t.is_null() => out.push('~'),
        Value::Scalar(s) => out.push_str(&format!("{}:{}", s.text.len(), s.text)),
        Value::Seq(items) => {
            out.push('[');
            items.iter().for_each(|i| canonical(i, ".", out));
            out.push(']');
        }
        Value::Map(m) => {
            let mut entries: Vec<_> = m.iter().filter(|e| !(path.is_empty() && e.key.starts_with("x-"))).collect();
            if path != "nodes" {
                entries.sort_by_key(|e| kebab(&e.key));
            }
            out.push('{');
            for e in entries {
                out.push_str(&format!("{}:{}=", e.key.len(), kebab(&e.key)));
                canonical(&e.value, if path.is_empty() { &e.key } else { "." }, out);
            }
            out.push('}');
        }
    }
}
