//! Graph files from text to plan: what is accepted, what is refused, and what people read then.

mod fuzz;
mod hostile;
mod layers;
mod plans;
mod register;
mod snapshots;
mod toys;

use omni_flow::{CheckCx, Code, Diagnostics, GraphFile, Plan, Warnings};

/// A graph that is right in all its parts.
pub const VOICE: &str = include_str!("voice.yaml");

fn check(text: &str) -> Result<(Plan, Warnings), Diagnostics> {
    GraphFile::parse("graph.yaml", text)?.check(&toys::registry(), &CheckCx::default())
}

/// Code and line of each finding of a graph, refused or not.
pub fn found(text: &str) -> Vec<(Code, u32)> {
    let all = match check(text) {
        Ok((_, w)) => w,
        Err(d) => d,
    };
    all.iter().map(|d| (d.code, d.span.map_or(0, |s| s.line))).collect()
}
