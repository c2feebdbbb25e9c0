//! Keys that only some nodes have a use for. Written on another node they are refused; said for all nodes, they pass over
//! those that have no use for them.

use super::Place;
use super::check::Check;
use super::node::Draft;
use crate::file::{Code, Tree};

/// Looks at `slots`, `active-streams` and `threads` of a node whose place is known.
pub(super) fn check(c: &mut Check<'_>, d: &mut Draft<'_>, node: &Tree) {
    let Some(schema) = &d.schema else { return };
    let client = schema.client.is_some();
    if !schema.shared {
        for key in ["slots", "active-streams"] {
            // None at once means all.
            if let Some(t) = node.get(key).filter(|t| key == "slots" || t.as_text() != Some("0")) {
                let m = format!("`{}` is not a model that sessions share: each session has its own", d.kind);
                c.error(Code::Place, t.span, m, format!("take `{key}` out, or give it to a model"));
            }
        }
        (d.slots, d.active_streams) = (None, None);
    }
    if client || d.place == Place::Task {
        if let Some(t) = node.get("threads") {
            let m = format!("`{}` runs on the async workers and has no threads of its own", d.kind);
            let hint = if client { "take `threads` out" } else { "write `place: pool`, or take `threads` out" };
            c.error(Code::Place, t.span, m, hint);
        }
        d.threads = None;
    }
}
