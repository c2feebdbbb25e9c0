//! What any speech recogniser offers to the node that uses it.

use super::{Transcription, WhisperError, WhisperModel};
use std::sync::Arc;

/// A recogniser shared by many sessions.
pub trait Recognizer: Send + Sync {
    /// Begins with 16 kHz mono samples in -1..1 and an optional language code.
    ///
    /// # Errors
    /// A language that the model does not know.
    fn begin(&self, pcm: &[f32], language: Option<&str>) -> Result<Box<dyn Recognition>, WhisperError>;
}

/// One utterance being recognised.
pub trait Recognition: Send {
    /// Does one unit of work.
    ///
    /// # Errors
    /// The numeric library failed; this utterance is lost, the recogniser is not.
    fn step(&mut self) -> Result<Progress, WhisperError>;

    /// The text so far.
    fn partial(&self) -> String;

    /// Bytes that this utterance holds now, the weights not included.
    fn bytes(&self) -> usize;
}

/// What a unit of work led to.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// There is more to do.
    More(Unit),
    /// Finished.
    Done(Transcript),
}

/// The kind of a unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Features and encoder for one window: the longest unit, proportional to the speech.
    Encode,
    /// Keys and values of the audio for the decoder.
    KeyValues,
    /// The tokens in front of the text.
    Prompt,
    /// One token.
    Token,
}

/// Why a transcript ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stop {
    /// There was no speech; the text is empty.
    #[default]
    NoSpeech,
    /// The model said so.
    EndOfText,
    /// More tokens than the duration allows.
    TokenCap,
    /// The model went into a loop, which was cut to one round.
    Repetition,
}

/// What was heard.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The text, trimmed; empty if there was no speech.
    pub text: String,
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// Code of the language, asked for or detected.
    pub language: String,
    /// Mean log-probability of the tokens and of the end.
    pub avg_logprob: f32,
    /// The model's probability, 0 to 1, that there is no speech: the lowest of all windows.
    pub no_speech_prob: f32,
    /// Samples of the utterance at 16 kHz.
    pub samples: usize,
    /// Why the last window ended.
    pub stop: Stop,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            text: String::new(),
            tokens: Vec::new(),
            language: String::new(),
            avg_logprob: 0.,
            no_speech_prob: 1.,
            samples: 0,
            stop: Stop::NoSpeech,
        }
    }
}

impl Recognizer for Arc<WhisperModel> {
    fn begin(&self, pcm: &[f32], language: Option<&str>) -> Result<Box<dyn Recognition>, WhisperError> {
        Ok(Box::new(Transcription::new(self.clone(), pcm, language)?))
    }
}

impl Recognition for Transcription {
    fn step(&mut self) -> Result<Progress, WhisperError> {
        Transcription::step(self)
    }

    fn partial(&self) -> String {
        Transcription::partial(self)
    }

    fn bytes(&self) -> usize {
        Transcription::bytes(self)
    }
}
