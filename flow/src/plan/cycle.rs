//! Cycles: refused unless they pass a feedback port, and never in a way that cannot start. Also depths.

use super::check::Check;
use super::edge::Wire;
use super::node::Draft;
use crate::file::{Code, Diagnostic};

/// Finds cycles. True if one is not allowed.
pub(super) fn check(c: &mut Check<'_>, drafts: &[Draft<'_>], wires: &[Wire]) -> bool {
    let plain: Vec<usize> = (0..wires.len()).filter(|w| !wires[*w].feedback).collect();
    let group = groups(drafts.len(), wires, &plain);
    let mut found = false;
    let mut told: Vec<usize> = Vec::new();
    for &w in &plain {
        let (a, b) = (wires[w].from.0, wires[w].to.0);
        if group[a] != group[b] || told.contains(&group[a]) {
            continue;
        }
        told.push(group[a]);
        found = true;
        // From the consumer back to the producer: the shortest way, so that the message is short too.
        let path = if a == b { vec![w] } else { way(b, a, wires, &plain, w) };
        let names: Vec<&str> = path.iter().map(|w| drafts[wires[*w].from.0].name).collect();
        let first = names.first().copied().unwrap_or_default();
        let m = if path.len() == 1 {
            format!("`{first}` feeds itself")
        } else {
            format!("a cycle: {} -> {first}", names.join(" -> "))
        };
        let mut d = Diagnostic::error(Code::Cycle, wires[path[0]].span, m);
        for p in &path[1..] {
            let (x, y) = (drafts[wires[*p].from.0].name, drafts[wires[*p].to.0].name);
            d = d.label(wires[*p].span, format!("{x} -> {y}, line {}", wires[*p].span.line));
        }
        c.out.push(d.hint("let the cycle pass an input that its node type declares as `feedback`"));
    }
    // A declared cycle: the input that closes it must not hold up the start.
    let all: Vec<usize> = (0..wires.len()).collect();
    let group = groups(drafts.len(), wires, &all);
    for w in wires.iter().filter(|w| w.feedback && group[w.from.0] == group[w.to.0]) {
        let Some(port) = drafts[w.to.0].schema.as_ref().map(|s| &s.inputs[w.to.1]) else { continue };
        if port.required {
            let m = format!("the cycle over input `{}` of `{}` cannot start", port.name, drafts[w.to.0].name);
            let d = Diagnostic::error(Code::Deadlock, w.span, m);
            c.out.push(d.hint("a feedback input that closes a cycle must be optional in its node type"));
        }
    }
    found
}

/// The strongly connected component of each node, by a walk with an explicit stack (Tarjan 1972).
fn groups(n: usize, wires: &[Wire], use_only: &[usize]) -> Vec<usize> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); n];
    for w in use_only {
        next[wires[*w].from.0].push(wires[*w].to.0);
    }
    let none = usize::MAX;
    let (mut index, mut low, mut group) = (vec![none; n], vec![0; n], vec![none; n]);
    let (mut stack, mut count, mut groups) = (Vec::new(), 0, 0);
    for root in 0..n {
        if index[root] != none {
            continue;
        }
        let mut walk = vec![(root, 0)];
        while let Some((v, at)) = walk.pop() {
            if at == 0 {
                index[v] = count;
                low[v] = count;
                count += 1;
                stack.push(v);
            }
            if let Some(&w) = next[v].get(at) {
                walk.push((v, at + 1));
                if index[w] == none {
                    walk.push((w, 0));
                } else if group[w] == none {
                    low[v] = low[v].min(index[w]);
                }
                continue;
            }
            if low[v] == index[v] {
                while let Some(w) = stack.pop() {
                    group[w] = groups;
                    if w == v {
                        break;
                    }
                }
                groups += 1;
            }
            if let Some(&(parent, _)) = walk.last() {
                low[parent] = low[parent].min(low[v]);
            }
        }
    }
    // A node alone is a cycle only if it feeds itself, which the caller sees by equal ends.
    group
}

/// The edges of the shortest cycle through the edge `last`, which leads from `to` to `from`, beginning after it.
fn way(from: usize, to: usize, wires: &[Wire], use_only: &[usize], last: usize) -> Vec<usize> {
    let mut came: Vec<(usize, usize)> = vec![(from, usize::MAX)];
    let mut at = 0;
    while at < came.len() {
        let v = came[at].0;
        if v == to {
            let mut path = vec![last];
            let mut back = Vec::new();
            let mut x = at;
            while came[x].1 != usize::MAX {
                let w = came[x].1;
                back.push(w);
                x = came.iter().position(|(n, _)| *n == wires[w].from.0).unwrap_or(0);
            }
            path.extend(back.into_iter().rev());
            return path;
        }
        for &w in use_only {
            if wires[w].from.0 == v && !came.iter().any(|(n, _)| *n == wires[w].to.0) {
                came.push((wires[w].to.0, w));
            }
        }
        at += 1;
    }
    vec![last]
}

/// The longest path from any source to each node, in edges, without feedback. The graph has no other cycles.
pub(super) fn depths(drafts: &[Draft<'_>], wires: &[Wire]) -> Vec<usize> {
    let mut depth = vec![0; drafts.len()];
    for n in order(drafts.len(), wires) {
        for w in wires.iter().filter(|w| !w.feedback && w.from.0 == n) {
            depth[w.to.0] = depth[w.to.0].max(depth[n] + 1);
        }
    }
    depth
}

/// Nodes in an order in which producers come first, feedback ignored.
pub(super) fn order(n: usize, wires: &[Wire]) -> Vec<usize> {
    let mut waiting = vec![0; n];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); n];
    for w in wires.iter().filter(|w| !w.feedback) {
        waiting[w.to.0] += 1;
        next[w.from.0].push(w.to.0);
    }
    let mut ready: Vec<usize> = (0..n).filter(|i| waiting[*i] == 0).collect();
    let mut at = 0;
    while at < ready.len() {
        for &m in &next[ready[at]] {
            waiting[m] -= 1;
            if waiting[m] == 0 {
                ready.push(m);
            }
        }
        at += 1;
    }
    ready
}
