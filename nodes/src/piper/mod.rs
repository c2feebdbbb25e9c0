//! Piper voices (VITS) without an engine: text → phonemes → latents → audio.
//!
//! Promises: one copy of the weights behind an [`Arc`](std::sync::Arc) for all sessions; two small units of work
//! that a scheduler can interleave ([`Voice::talk`] for one sentence, [`Decoder::step`] for one piece of audio);
//! audio that is the same, sample for sample, for every chunking of the latents; the same audio for the same seed.
//!
//! Does not promise: phonemes for other languages than English (their words are counted as skipped), nor streaming
//! for voices whose decoder cannot be told apart in the file (they are synthesised a sentence at a time).

mod config;
mod cut;
mod decoder;
mod g2p;
mod letters;
mod noise;
mod onnx;
mod reach;
mod split;
mod talker;
mod unspoken;
mod vocoder;
mod voice;
mod weights;

pub use config::{ConfigError, VoiceConfig};
pub use decoder::{Decoder, Window};
pub use g2p::{Phonemes, Phonemizer};
pub use talker::{Latents, MAX_IDS, Scales, TalkError, Utterance};
pub use unspoken::Unspoken;
pub use voice::{Voice, VoiceError, VoiceOptions};

/// What [`Voice::load`] reads of a voice's file by itself, before the runtime sees it, in words; `None` if the bytes are no
/// ONNX file. For fuzzing only.
#[doc(hidden)]
pub fn inspect(onnx: &[u8]) -> Option<String> {
    let graph = onnx::OnnxGraph::parse(onnx)?;
    Some(format!("{:?}, {:?}", split::find_split(&graph), split::random_tensors(&graph)))
}
