//! What a session took: latency per answer, time per node, high-water marks per edge; as a table and as JSON.

use std::time::Duration;

use omni_flow::{MediaTime, SessionStats};
use serde_json::{Value, json};

use super::print::label;
use super::take::Taken;
use super::timing::{Answer, Ear};
use crate::output::table;

/// All that is reported at the end.
pub struct Report<'a> {
    pub graph: &'a str,
    pub stats: SessionStats,
    pub taken: &'a [Taken],
    pub ear: Option<&'a Ear>,
    /// Whether the input was fed at its own pace; else no latency means anything.
    pub paced: bool,
    /// Time to build the nodes, and of the session.
    pub started: Duration,
    pub ran: Duration,
    pub stopped: bool,
}

impl Report<'_> {
    /// From the end of the speech that was answered (or from the arrival of the text) to the first chunk.
    fn latency(&self, a: &Answer) -> Option<Duration> {
        match self.ear {
            Some(_) if !self.paced => None,
            Some(ear) => ear.speech_end(a.origin).map(|end| a.first.since(end)),
            None => Some(a.first.since(a.origin)),
        }
    }

    /// The table for people.
    pub fn table(&self) -> String {
        let mut all = String::new();
        let from = if self.ear.is_some() { "speech end to first" } else { "input to first" };
        let mut rows = vec![["answer", from, "audio", "underruns", ""].map(str::to_owned).to_vec()];
        for t in self.taken {
            for (i, a) in t.answers.all().iter().enumerate() {
                let audio = a.audio > MediaTime::ZERO;
                let under =
                    if a.underruns > 0 { format!("{} (to {})", a.underruns, ms(a.longest_gap)) } else { "0".into() };
                rows.push(vec![
                    format!("{} {}", label(&t.node), i + 1),
                    self.latency(a).map_or("-".to_owned(), ms),
                    if audio { format!("{:.2} s", a.audio.as_secs_f64()) } else { "-".to_owned() },
                    if audio { under } else { "-".to_owned() },
                    if a.interrupted { "interrupted".to_owned() } else { String::new() },
                ]);
            }
        }
        if rows.len() > 1 {
            all.push_str(&format!("\n{}", table(&rows, &[1, 2, 3])));
        }
        let mut rows = vec![["node", "busy", "steps", "longest"].map(str::to_owned).to_vec()];
        for n in self.stats.nodes.iter().filter(|n| n.steps > 0) {
            rows.push(vec![n.name.clone(), ms(n.busy), n.steps.to_string(), ms(n.longest)]);
        }
        if rows.len() > 1 {
            all.push_str(&format!("\n{}", table(&rows, &[1, 2, 3])));
        }
        for n in self.stats.nodes.iter().filter(|n| n.restarts + n.over_budget > 0) {
            let (restarts, over) = (n.restarts, n.over_budget);
            all.push_str(&format!("{}: made anew {restarts} times, {over} steps above its budget\n", n.name));
        }
        let head = ["edge", "chunks", "most held", "of", "blocked", "dropped"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for e in &self.stats.edges {
            let c = &e.counts;
            let held = [
                format!("{} chunks", c.depth_high),
                bytes(c.bytes_high),
                if c.span_high > MediaTime::ZERO { ms(c.span_high.to_duration()) } else { "-".to_owned() },
            ];
            rows.push(vec![
                e.name.clone(),
                c.chunks.to_string(),
                held.join(", "),
                limit(&e.limit),
                ms(c.blocked),
                dropped(c.stale, c.policy, c.closed, c.lost),
            ]);
        }
        all.push_str(&format!("\n{}", table(&rows, &[1, 4])));
        let fed = self.ear.map_or(String::new(), |e| format!(", {:.2} s heard", e.fed().as_secs_f64()));
        let spoken: Vec<String> =
            self.taken.iter().filter(|t| t.answers.audio() > MediaTime::ZERO).map(spoken).collect();
        let spoken = if spoken.is_empty() { String::new() } else { format!(", {} spoken", spoken.join(", ")) };
        let stopped = if self.stopped { ", stopped by Ctrl-C" } else { "" };
        let (started, ran) = (self.started.as_secs_f64(), self.ran.as_secs_f64());
        all.push_str(&format!("\n{}: ready in {started:.2} s, ran {ran:.2} s{fed}{spoken}{stopped}\n", self.graph));
        all
    }

    /// The same for machines.
    pub fn to_json(&self) -> Value {
        let answer = |a: &Answer| {
            json!({ "first_ms": self.latency(a).map(millis), "audio_s": a.audio.as_secs_f64(), "underruns": a.underruns,
                    "longest_gap_ms": millis(a.longest_gap), "interrupted": a.interrupted })
        };
        let output = |t: &Taken| {
            json!({ "output": t.node, "other_chunks": t.other,
                    "answers": t.answers.all().iter().map(answer).collect::<Vec<_>>() })
        };
        let node = |n: &omni_flow::NodeStats| {
            json!({ "node": n.name, "busy_ms": millis(n.busy), "steps": n.steps, "longest_ms": millis(n.longest),
                    "faults": n.faults, "restarts": n.restarts, "over_budget": n.over_budget })
        };
        let edge = |e: &omni_flow::EdgeStats| {
            let c = &e.counts;
            json!({ "edge": e.name, "chunks": c.chunks, "bytes": c.bytes, "high": { "chunks": c.depth_high,
                    "bytes": c.bytes_high, "ms": c.span_high.as_secs_f64() * 1e3 }, "blocked_ms": millis(c.blocked),
                    "dropped": { "stale": c.stale, "policy": c.policy, "closed": c.closed, "restart": c.lost } })
        };
        json!({
            "event": "summary", "graph": self.graph, "paced": self.paced, "stopped": self.stopped,
            "latency_from": if self.ear.is_some() { "end_of_speech" } else { "input" },
            "ready_s": self.started.as_secs_f64(), "ran_s": self.ran.as_secs_f64(),
            "heard_s": self.ear.map(|e| e.fed().as_secs_f64()),
            "outputs": self.taken.iter().map(output).collect::<Vec<_>>(),
            "nodes": self.stats.nodes.iter().map(node).collect::<Vec<_>>(),
            "edges": self.stats.edges.iter().map(edge).collect::<Vec<_>>(),
        })
    }
}

fn spoken(t: &Taken) -> String {
    format!("{:.2} s", t.answers.audio().as_secs_f64())
}

fn millis(d: Duration) -> f64 {
    (d.as_secs_f64() * 1e5).round() / 100.0
}

fn ms(d: Duration) -> String {
    let ms = d.as_secs_f64() * 1e3;
    if ms == 0.0 || ms >= 10.0 { format!("{ms:.0} ms") } else { format!("{ms:.2} ms") }
}

fn bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..1_048_576 => format!("{:.1} KiB", n as f64 / 1024.0),
        _ => format!("{:.1} MiB", n as f64 / 1_048_576.0),
    }
}

fn limit(a: &omni_flow::Amount) -> String {
    let mut all = Vec::new();
    if a.items != u64::MAX {
        all.push(a.items.to_string());
    }
    if a.bytes != u64::MAX {
        all.push(bytes(a.bytes));
    }
    if a.span != MediaTime::from_ticks(i64::MAX) {
        all.push(ms(a.span.to_duration()));
    }
    all.join(", ")
}

fn dropped(stale: u64, policy: u64, closed: u64, lost: u64) -> String {
    let all = [(stale, "stale"), (policy, "by policy"), (closed, "unread"), (lost, "by a restart")];
    let some: Vec<String> = all.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
    if some.is_empty() { "0".to_owned() } else { some.join(", ") }
}
