//! The key `chunk` of a node: its keys and values, and what the node's type says of its policies.

use super::check::Check;
use super::keys::{self, Shape};
use super::node::Draft;
use crate::file::{Code, Diagnostic, Tree, same_key};
use crate::{BuildCx, Entry, Port};

/// Reads the key, `own` if the node has it, else that of all nodes. A type without policies takes no notice of what is
/// said for all.
pub(super) fn read(c: &mut Check<'_>, d: &mut Draft<'_>, own: Option<&Tree>, given: Option<&Tree>) {
    if let Some(t) = given {
        let before = c.out.len();
        values(c, t, d.schema.as_ref().map(|s| s.outputs.as_slice()));
        d.chunk = (c.out.len() == before).then(|| t.to_json());
    }
    let Some(configured) = d.configured.clone() else { return };
    let cx = BuildCx { path: d.name.to_owned(), chunk: d.chunk.clone(), ..BuildCx::default() };
    match configured.chunks(&cx) {
        Ok(notes) => {
            let at = given.map_or(d.name_span, |t| t.span);
            c.out.extend(notes.warnings.into_iter().map(|w| Diagnostic::warning(Code::Option, at, w)));
            d.chunks = notes.ports;
        }
        Err(wrong) if wrong.option == "chunk" && own.is_none() => d.chunk = None,
        Err(wrong) => {
            let key = wrong.option.rsplit('.').next().unwrap_or_default();
            let at = given.map_or(d.name_span, |t| t.get(key).map_or(t.span, |x| x.span));
            c.error(Code::Option, at, wrong.message, wrong.hint);
        }
    }
}

/// Checks keys and values, per port or for all.
fn values(c: &mut Check<'_>, t: &Tree, outputs: Option<&[Port]>) {
    let per_port = |e: &Entry| outputs.is_some_and(|o| o.iter().any(|p| same_key(&p.name, &e.key)));
    let parts: Vec<&Tree> = match t.as_map() {
        Some(m) if !m.is_empty() && m.iter().all(per_port) => m.iter().map(|e| &e.value).collect(),
        _ => vec![t],
    };
    for part in parts {
        keys::check(part, "", &keys::CHUNK, &mut c.out);
        let Some(ramp) = part.get("ramp").filter(|r| r.as_seq().is_some()) else { continue };
        let items = ramp.as_seq().unwrap_or_default();
        if items.len() < 2 {
            c.error(Code::OutOfRange, ramp.span, "a ramp has at least two entries", "write for instance `[4, 8, 16]`");
        }
        for i in items {
            c.out.extend(keys::fits(i, "ramp", Shape::Count(1), None));
        }
    }
}
