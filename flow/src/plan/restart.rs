//! The key `restart` of a node.

use super::check::Check;
use super::keys::{self, Shape};
use crate::file::{Code, Diagnostic, Tree, kebab};
use crate::node::RestartPolicy;
use crate::units::Dur;
use crate::{Schema, file::same_key};

/// What a node's `restart` says, its own or by default; a default does not reach a client's end, which cannot fail.
pub(super) fn read(
    c: &mut Check<'_>,
    node: &Tree,
    defaults: Option<&Tree>,
    schema: Option<&Schema>,
) -> Option<RestartPolicy> {
    let own = node.get("restart");
    let t = own.or_else(|| defaults.and_then(|d| d.get("restart")))?;
    let policy = policy(c, t)?;
    if schema.is_some_and(|s| s.client.is_some()) {
        if own.is_some() {
            let m = "a client's end of a graph has nothing that could be made anew";
            c.error(Code::Place, t.span, m, "leave `restart` out");
        }
        return None;
    }
    Some(policy)
}

fn policy(c: &mut Check<'_>, t: &Tree) -> Option<RestartPolicy> {
    if t.as_text() == Some("never") {
        return None;
    }
    let fault = t.as_map().filter(|m| m.len() == 1 && same_key(&m[0].key, "on-fault")).map(|m| &m[0].value);
    let Some(map) = fault.and_then(Tree::as_map) else {
        let m = "`restart` is `never` or `{ on-fault: { max, window } }`";
        c.error(Code::WrongType, t.span, m, "write for instance `{ on-fault: { max: 3, window: 60s } }`");
        return None;
    };
    let at = fault.map_or(t.span, |f| f.span);
    let (mut max, mut window) = (None, None);
    for e in map {
        match kebab(&e.key).as_str() {
            "max" => {
                let wrong = keys::fits(&e.value, "max", Shape::Count(1), None).map(|d| {
                    if e.value.as_text() == Some("0") { d.hint("it is at least 1; write `restart: never`") } else { d }
                });
                let n = e.value.as_text().and_then(crate::file::de::integer).and_then(|n| usize::try_from(n).ok());
                max = Some(n.filter(|_| wrong.is_none()));
                c.out.extend(wrong);
            }
            "window" => {
                let wrong = keys::fits(&e.value, "window", Shape::Time, None);
                window = Some(if wrong.is_none() { c.read::<Dur>(&e.value).map(|d| d.0) } else { None });
                c.out.extend(wrong);
            }
            _ => {
                let m = format!("unknown key `{}` in `on-fault`", e.key);
                c.out.push(Diagnostic::error(Code::UnknownKey, e.key_span, m).nearest(&e.key, ["max", "window"]));
            }
        }
    }
    for (key, given, example) in [("max", max.is_some(), "max: 3"), ("window", window.is_some(), "window: 60s")] {
        if !given {
            c.error(Code::MissingKey, at, format!("`on-fault` has no `{key}`"), format!("add `{example}`"));
        }
    }
    Some(RestartPolicy { max: max??, window: window?? })
}
