//! Speech recognition with Whisper, from the CTranslate2 layout or from safetensors.
//!
//! Only the speech and 0.3 s behind it are encoded; the rest of the 30 s window is a precomputed encoding of silence.
//! The decoder keeps its keys and values. One model is shared by all sessions and uses one thread; an utterance is a
//! [`Transcription`], which runs in small units of work.

mod config;
pub mod ct2;
mod decoder;
mod encoder;
mod error;
mod guard;
mod layers;
mod model;
mod recognizer;
mod sampling;
mod speech;
#[cfg(test)]
mod tests;
mod tokens;
mod transcription;
mod weights;

pub use config::Sizes;
pub use error::WhisperError;
pub use guard::{RepetitionGuard, token_cap};
pub use model::{WhisperFiles, WhisperModel};
pub use recognizer::{Progress, Recognition, Recognizer, Stop, Transcript, Unit};
pub use transcription::Transcription;
