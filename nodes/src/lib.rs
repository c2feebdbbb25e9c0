//! The node library of omni-flow: audio, speech, text, utilities and models.
//!
//! Model runtimes and rules here know nothing of the engine: plain structs, one unit of work per call, no clock. The
//! nodes that put them into a graph are thin.

pub mod audio;
pub mod catalogue;
#[cfg(feature = "chat")]
pub mod chat;
pub mod chunking;
pub mod files;
pub mod frame;
pub mod models;
#[cfg(feature = "piper")]
pub mod piper;
pub mod playout;
pub mod registry;
#[cfg(feature = "silero")]
pub mod silero;
pub mod speech;
#[cfg(test)]
mod testing;
pub mod text;
pub mod turn;
pub mod util;
#[cfg(feature = "whisper")]
pub mod whisper;
