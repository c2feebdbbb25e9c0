//! What a graph can do, from its plan: what its nodes declare, else what its ends allow.

use omni_flow::{GraphFile, Lane, Plan};
use serde_json::Value;

use super::ends::{Ends, EndsError};
use crate::realtime::config::capability::{Capabilities, Level};

/// The unit of a graph of which no node declares one, in ms.
const UNIT_MS: u32 = 20;

/// Why it cannot be said what a graph can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// Nobody could talk to it.
    #[error(transparent)]
    Ends(#[from] EndsError),
    /// `session.capabilities` is no map of flags.
    #[error("`session.capabilities` is a map of yes or no: `session: {{ capabilities: {{ resume: no }} }}`")]
    Shape,
    /// A flag that does not exist.
    #[error("`session.capabilities.{0}` is no capability of a session")]
    Unknown(String),
    /// More than the graph can do.
    #[error(
        "`session.capabilities.{0}` cannot be promised: the graph does not have it; it may only be taken away here"
    )]
    Wider(String),
}

/// What a session of a graph can do, for [`Host::new`](super::Host::new) and for whoever lists models.
///
/// A node may declare facts ([`Schema::facts`](omni_flow::Schema)): `implementation_level`, `chunk_period_ms`,
/// `target_barge_in_latency_ms`, `fixed_voice`, `fixed_persona`, and flags by their short names (`resume`, `barge_in`,
/// `truncate`, `playback_ack`, `image`, `text_only_turn`, `tools`, ...). What no node declares follows from the ends: a
/// graph that is asked (`ask`) takes turns of text alone, and tools if it tells of calls; its answers can be interrupted if
/// they have a lane of their own; it finds turns if it takes their rules (`control`) and tells of them. A graph that is not
/// asked answers by itself. `session.capabilities` of the file takes flags away and adds none.
///
/// # Errors
/// [`FactsError`].
pub fn facts(plan: &Plan, file: &GraphFile) -> Result<Capabilities, FactsError> {
    let ends = Ends::of(plan)?;
    let asked = ends.ask.is_some();
    let mut can = Capabilities {
        level: if asked { Level::TurnBased } else { Level::ModelNative },
        chunk_period_ms: Some(UNIT_MS),
        barge_in: ends.lane != Lane::MAIN,
        resume: true,
        playback_ack: true,
        truncate: true,
        text_only_turn: asked,
        tools: asked && ends.events.is_some(),
        detects: ends.traits().detects,
        ..Capabilities::default()
    };
    for (name, value) in plan.nodes.iter().flat_map(|n| &n.schema.facts) {
        declare(&mut can, name, value);
    }
    match file.get("session.capabilities").map(|tree| tree.to_json()) {
        None | Some(Value::Null) => {}
        Some(Value::Object(flags)) => {
            for (name, value) in flags {
                let flag = can.flag(&name.replace('-', "_")).ok_or_else(|| FactsError::Unknown(name.clone()))?;
                match value.as_bool() {
                    Some(true) if !*flag => return Err(FactsError::Wider(name)),
                    Some(on) => *flag = on,
                    None => return Err(FactsError::Shape),
                }
            }
        }
        Some(_) => return Err(FactsError::Shape),
    }
    Ok(can)
}

fn declare(can: &mut Capabilities, name: &str, value: &Value) {
    let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
    match (name, value) {
        ("implementation_level", Value::String(level)) => {
            can.level = if level == Level::ModelNative.as_str() { Level::ModelNative } else { Level::TurnBased };
        }
        ("chunk_period_ms", _) => can.chunk_period_ms = number,
        ("target_barge_in_latency_ms", _) => can.target_barge_in_latency_ms = number,
        ("fixed_voice", Value::Bool(on)) => can.fixed_voice = *on,
        ("fixed_persona", Value::Bool(on)) => can.fixed_persona = *on,
        (name, Value::Bool(on)) => {
            if let Some(flag) = can.flag(name) {
                *flag = *on;
            }
        }
        _ => {}
    }
}
