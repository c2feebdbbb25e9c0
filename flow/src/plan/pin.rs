//! The keys `cpus` and `numa` of a node: which processors its compute threads are bound to.
//!
//! Shapes, numbers and places are checked always; whether the machine has such processors only if the check may look at
//! it ([`CheckCx::files`](super::CheckCx::files)), and again when the graph is started.

use super::Place;
use super::check::Check;
use super::keys::{self, Shape};
use crate::Schema;
use crate::file::{Code, Span, Tree};
use crate::pool::affinity::{MOST, SUPPORTED, resolve};

/// What the keys say.
#[derive(Clone, Debug, Default)]
pub(super) struct Pin {
    /// In ascending order; empty = not said.
    pub cpus: Vec<usize>,
    pub numa: Option<usize>,
}

/// The node's own keys, else those of the defaults; a default does not reach a node without compute threads.
pub(super) fn read(
    c: &mut Check<'_>,
    node: &Tree,
    defaults: Option<&Tree>,
    schema: Option<&Schema>,
    place: Place,
) -> Pin {
    let says = |t: &Tree| t.get("cpus").is_some() || t.get("numa").is_some();
    let own = says(node);
    let Some(from) = (if own { Some(node) } else { defaults.filter(|d| says(d)) }) else { return Pin::default() };
    let (cpus, numa) = (from.get("cpus"), from.get("numa"));
    let Some(at) = cpus.or(numa).map(|t| t.span) else { return Pin::default() };
    if !SUPPORTED {
        c.not_yet(at, if cpus.is_some() { "`cpus`" } else { "`numa`" });
        return Pin::default();
    }
    let pin =
        Pin { cpus: cpus.and_then(|t| list(c, t)).unwrap_or_default(), numa: numa.and_then(|t| number(c, t, "numa")) };
    if let (Some(_), Some(n)) = (cpus, numa) {
        c.error(Code::Place, n.span, "`cpus` and `numa` are given together", "keep one of the two");
        return Pin::default();
    }
    let Some(schema) = schema else { return Pin::default() };
    let client = schema.client.is_some();
    if client || place == Place::Task {
        if own && client {
            c.error(Code::Place, at, "a client's end of a graph has no compute threads to bind", "leave the key out");
        } else if own {
            let m = "a node on place `task` has no compute threads to bind";
            c.error(Code::Place, at, m, "write `place: pool` or `place: thread`, or leave the key out");
        }
        return Pin::default();
    }
    if c.cx.files && (pin.numa.is_some() || !pin.cpus.is_empty()) {
        look(c, &pin, at);
    }
    pin
}

fn look(c: &mut Check<'_>, pin: &Pin, at: Span) {
    if let Err(e) = resolve(&pin.cpus, pin.numa) {
        c.error(Code::Place, at, e.to_string(), "name processors that this process may use, or leave the key out");
    }
}

fn list(c: &mut Check<'_>, t: &Tree) -> Option<Vec<usize>> {
    let Some(items) = t.as_seq() else {
        let m = format!("`cpus` takes a list of processor numbers, found {}", t.shape());
        c.error(Code::WrongType, t.span, m, "write for instance `[0, 1]`");
        return None;
    };
    if items.is_empty() {
        c.error(Code::OutOfRange, t.span, "`cpus` names no processor", "name at least one, or leave the key out");
        return None;
    }
    let mut all = Vec::with_capacity(items.len().min(MOST));
    let mut ok = true;
    for item in items {
        match number(c, item, "cpus") {
            Some(n) if all.contains(&n) => {
                c.error(Code::OutOfRange, item.span, format!("processor {n} is named twice"), "remove one of them");
                ok = false;
            }
            Some(n) => all.push(n),
            None => ok = false,
        }
    }
    all.sort_unstable();
    ok.then_some(all)
}

/// A number of a processor or of a NUMA node.
fn number(c: &mut Check<'_>, t: &Tree, key: &str) -> Option<usize> {
    if let Some(d) = keys::fits(t, key, Shape::Range(0, MOST as i64 - 1), None) {
        c.out.push(d);
        return None;
    }
    t.as_text().and_then(crate::file::de::integer).and_then(|n| usize::try_from(n).ok())
}
