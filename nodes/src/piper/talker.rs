//! The first half of a voice: phoneme ids → latents, one sentence at a time.
//!
//! Promises the same latents for the same ids, scales and seed: the voice's two random tensors are filled here from
//! a seeded generator, not drawn by the runtime. One call is one unit of work (about 25 ms per second of speech on
//! one core) and cannot be interrupted; bound it with [`MAX_IDS`].

use std::path::PathBuf;

use rten::{NodeId, Value, ValueOrView};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::config::VoiceConfig;
use super::g2p::Phonemes;
use super::noise::Noise;
use super::voice::{Voice, WHOLE_HOP, floats};
use crate::text::speakable;

/// Longest sentence in phoneme ids (about 90 s of speech); attention takes memory with its square.
pub const MAX_IDS: usize = 4096;

/// Why a sentence or a piece of it cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum TalkError {
    /// The runtime failed.
    #[error("{}: the model run failed: {reason}", file.display())]
    Run {
        /// The model file.
        file: PathBuf,
        /// The runtime's reason.
        reason: String,
    },
    /// A result has an unexpected shape.
    #[error("{}: {what}", file.display())]
    Shape {
        /// The model file.
        file: PathBuf,
        /// What was found.
        what: String,
    },
    /// A result has an unexpected element type.
    #[error("the model gave something else than {expected}")]
    Type {
        /// What was expected.
        expected: &'static str,
    },
    /// The sentence is longer than [`MAX_IDS`].
    #[error("a sentence of {ids} phoneme ids is too long (at most {max}); split the text into sentences")]
    TooLong {
        /// Its length.
        ids: usize,
        /// The limit.
        max: usize,
    },
    /// A speaker number that the voice does not have.
    #[error("speaker {speaker} does not exist, the voice has {speakers}")]
    Speaker {
        /// What was asked for.
        speaker: u32,
        /// How many there are.
        speakers: u32,
    },
    /// A scale that is not a finite number in its range.
    #[error("{name} is {value}, expected {low} to 10")]
    Scale {
        /// Which scale.
        name: &'static str,
        /// Its value.
        value: f32,
        /// The least allowed value.
        low: f32,
    },
    /// The voice speaks a language that there are no phonemes for.
    #[error("no phonemes for `{language}`: only English text can be spoken; give this voice phoneme ids")]
    Language {
        /// The voice's language code.
        language: String,
    },
    /// Latents of another width than the decoder has.
    #[error("latents of {found} numbers for frames of {width}")]
    Width {
        /// Numbers given.
        found: usize,
        /// Numbers of one frame.
        width: usize,
    },
}

/// A sentence ready to be spoken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Utterance {
    /// Phoneme ids as [`Voice::talk`] takes them; empty when nothing in the text can be spoken.
    pub ids: Vec<i32>,
    /// What the text sounds like, and what of it was guessed or skipped.
    pub phonemes: Phonemes,
    /// Phoneme symbols that the voice was not trained with (left out).
    pub unknown: usize,
}

/// How a sentence is spoken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scales {
    /// Variation of the voice, 0 to 10; 0 is flat.
    pub noise: f32,
    /// Time per phoneme, 0.05 to 10; 1 as trained.
    pub length: f32,
    /// Variation of the rhythm, 0 to 10.
    pub noise_w: f32,
}

impl Scales {
    /// The voice's own defaults.
    pub fn of(config: &VoiceConfig) -> Self {
        Self { noise: config.noise_scale, length: config.length_scale, noise_w: config.noise_w }
    }

    fn check(self) -> Result<Self, TalkError> {
        for (name, value, low) in
            [("noise", self.noise, 0.0), ("length", self.length, 0.05), ("noise_w", self.noise_w, 0.0)]
        {
            if !(low..=10.0).contains(&value) {
                return Err(TalkError::Scale { name, value, low });
            }
        }
        Ok(self)
    }
}

/// Frames between talker and vocoder, frame after frame (`rows` is [frames, width]).
#[derive(Debug, Clone, PartialEq)]
pub struct Latents {
    width: usize,
    rows: Vec<f32>,
}

impl Latents {
    /// Numbers of one frame: 192 for Piper voices; the hop for a voice that cannot be split.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of frames; one is [`Voice::hop`] samples.
    pub fn frames(&self) -> usize {
        self.rows.len() / self.width
    }

    /// All numbers, frame-major.
    pub fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// The numbers, frame-major, without a copy.
    pub fn into_rows(self) -> Vec<f32> {
        self.rows
    }
}

impl Voice {
    /// Prepares a piece of text: writes it out as it is said, then finds its phonemes and their ids
    /// (about a millisecond per sentence).
    ///
    /// # Errors
    /// [`TalkError::Language`] if the voice is not English.
    pub fn utterance(&self, text: &str) -> Result<Utterance, TalkError> {
        if !self.config.is_english() {
            return Err(TalkError::Language { language: self.config.spoken().to_owned() });
        }
        let phonemes = self.phonemizer().phonemes(&speakable(text));
        if !phonemes.symbols.chars().any(char::is_alphabetic) {
            return Ok(Utterance { phonemes, ..Utterance::default() });
        }
        let (ids, unknown) = self.config.encode(&phonemes.symbols);
        Ok(Utterance { ids, phonemes, unknown })
    }

    /// Speaks one sentence into latents. `ids` come from [`VoiceConfig::encode`]. A voice that cannot be split gives
    /// audio in frames of 256 samples, which a [`Decoder`](super::Decoder) hands through.
    ///
    /// # Errors
    /// [`TalkError`]: sentence too long, no such speaker, scale out of range, or the runtime failed.
    pub fn talk(&self, ids: &[i32], scales: Scales, speaker: u32, seed: u64) -> Result<Latents, TalkError> {
        let scales = scales.check()?;
        if ids.len() > MAX_IDS {
            return Err(TalkError::TooLong { ids: ids.len(), max: MAX_IDS });
        }
        if speaker >= self.config.speakers {
            return Err(TalkError::Speaker { speaker, speakers: self.config.speakers });
        }
        let target = self.nodes.latents.unwrap_or(self.nodes.output);
        let value = self.synthesise(ids, scales, speaker, seed, target)?;
        let (shape, data) = (value.shape().to_vec(), floats(value)?);
        if !self.is_split() {
            return Ok(whole(data));
        }
        let &[1, width, frames] = &shape[..] else {
            return Err(TalkError::Shape {
                file: self.file.clone(),
                what: format!("latents have the shape {shape:?}, expected [1, width, frames]"),
            });
        };
        let mut rows = vec![0.0; data.len()];
        for (c, column) in data.chunks_exact(frames.max(1)).enumerate() {
            for (t, &x) in column.iter().enumerate() {
                rows[t * width + c] = x;
            }
        }
        Ok(Latents { width: width.max(1), rows })
    }

    /// Runs to `target`, stopping at each random tensor to fill it from the seed.
    fn synthesise(
        &self,
        ids: &[i32],
        scales: Scales,
        speaker: u32,
        seed: u64,
        target: NodeId,
    ) -> Result<Value, TalkError> {
        let mut noise = Noise::new(seed);
        let mut known: Vec<(NodeId, Value)> = vec![
            (self.nodes.input, NdTensor::from_data([1, ids.len()], ids.to_vec()).into()),
            (self.nodes.lengths, NdTensor::from_data([1], vec![ids.len() as i32]).into()),
            (self.nodes.scales, NdTensor::from_data([3], vec![scales.noise, scales.length, scales.noise_w]).into()),
        ];
        if let Some(id) = self.nodes.speaker {
            known.push((id, NdTensor::from_data([1], vec![speaker as i32]).into()));
        }
        for &(like, output) in &self.nodes.noise {
            let part = self.run_part(views(&known), target)?;
            // What the run does not need any more is not handed back; inputs may still be needed further on.
            for (id, value) in part {
                if !known.iter().any(|(k, _)| *k == id) {
                    known.push((id, value));
                }
            }
            let Some(shape) = known.iter().find(|(id, _)| *id == like).map(|(_, v)| v.shape().to_vec()) else {
                // Not on the way to the target.
                continue;
            };
            let filled = noise.take(shape.iter().product());
            known.push((output, rten_tensor::Tensor::from_data(&shape, filled).into()));
        }
        self.run(views(&known), target)
    }
}

fn views(known: &[(NodeId, Value)]) -> Vec<(NodeId, ValueOrView<'_>)> {
    known.iter().map(|(id, value)| (*id, ValueOrView::View(value.as_view()))).collect()
}

/// Audio as frames of [`WHOLE_HOP`] samples; a last short one is filled with silence.
fn whole(mut audio: Vec<f32>) -> Latents {
    audio.resize(audio.len().next_multiple_of(WHOLE_HOP), 0.0);
    Latents { width: WHOLE_HOP, rows: audio }
}
