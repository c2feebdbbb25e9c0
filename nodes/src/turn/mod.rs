//! Where a speaker's turn begins and ends: the machine behind `speech.turn`.
//!
//! [`TurnMachine`] takes audio and one speech probability per window of 512 samples and cuts the stream into items. It
//! promises that items never overlap, that an item holds exactly the samples it states, that results do not depend on
//! how the audio was cut, and that its memory is bounded. It runs no model, reads no clock and decides nothing about
//! replies. Its rules may change at a place of the stream ([`Change`]), and a client may end a turn by itself
//! ([`TurnMachine::commit`]) or take back what it said ([`Change::Clear`]). All positions are samples since the stream began, on a clock that never goes back.

mod config;
mod echo;
mod event;
mod machine;

pub use config::{TurnConfig, TurnConfigError, TurnMode, TurnRules};
pub use echo::EchoGate;
pub use event::{Commit, EndReason, TurnError, TurnEvent};
pub use machine::{Change, TurnMachine};

/// Sample rate of the audio, Hz.
pub const RATE: u32 = 16_000;
/// Samples of one detector window (32 ms).
pub const WINDOW: usize = 512;
