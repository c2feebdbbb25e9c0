//! Placeholder head; see ARCHITECTURE.md.

pub mod chunking;
pub mod frame;
pub mod playout;
pub mod turn;
//! The node library of omni-flow: audio, speech, text, utilities and models.
//!
//! Model runtimes here know nothing of the engine: plain structs, one unit of work per call, no clock. The nodes
//! that put them into a graph are thin.

pub mod catalogue;
#[cfg(feature = "silero")]
pub mod silero;
#[cfg(test)]
mod testing;
#[cfg(feature = "whisper")]
pub mod whisper;
#[cfg(feature = "chat")]
pub mod chat;
#[cfg(feature = "piper")]
pub mod piper;
pub mod text;
