//! The script: options of `scripted.duplex`, as they stand in a graph file.

use std::collections::BTreeMap;
use std::fmt;

use omni_flow::OptionError;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Options of `scripted.duplex`. A server reads the first three for what it tells its clients.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ScriptedConfig {
    /// Who decides turns.
    pub level: Level,
    /// Length of a model step's input, ms.
    #[serde(alias = "unit_ms")]
    pub unit_ms: u32,
    /// Capability flags that differ from the usual.
    pub capabilities: BTreeMap<String, bool>,
    /// The n-th turn is answered by the n-th entry, and all behind the last by the last.
    pub answers: Vec<Answer>,
}

/// Who decides turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The client: an answer begins when it is asked for.
    #[default]
    TurnBasedDuplex,
    /// The model: an answer begins at a commit, or when the script says.
    ModelNativeDuplex,
}

/// Whether each piece has what is new, or all so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pieces {
    /// What is new.
    #[default]
    Delta,
    /// Everything so far.
    Cumulative,
}

/// What is said with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words {
    /// No text at all.
    None,
    /// One text, split evenly over the chunks.
    Whole(String),
    /// A text per chunk; chunks beyond the list say nothing, and what the list has beyond the chunks comes with the last.
    Each(Vec<String>),
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// Chunks of audio.
    pub chunks: u32,
    /// Length of a chunk, ms.
    #[serde(alias = "chunk-ms")]
    pub chunk_ms: u32,
    /// The words, with templates.
    pub text: Words,
    /// How text comes.
    #[serde(alias = "text-mode")]
    pub text_mode: Pieces,
    /// How audio comes.
    #[serde(alias = "audio-mode")]
    pub audio_mode: Pieces,
    /// The audio is the input of the turn as it was received, at 16 kHz, in chunks of `chunk_ms`; else a tone at 24 kHz.
    pub echo: bool,
    /// Time that a chunk takes, ms.
    #[serde(alias = "step-ms")]
    pub step_ms: u32,
    /// Decides to listen instead of answering.
    pub listen: bool,
    /// Fails before the chunk of this number, counted from 0.
    #[serde(alias = "fail-at")]
    pub fail_at: Option<u32>,
    /// Goes on producing that long after it was cancelled, ms.
    #[serde(alias = "after-cancel-ms")]
    pub after_cancel_ms: u32,
    /// Further chunks, each of which is made only after one more unit of input.
    #[serde(alias = "silence-units")]
    pub silence_units: u32,
    /// Where the model decides turns: begins by itself after so many units of the turn, without a commit.
    #[serde(alias = "after-units")]
    pub after_units: Option<u32>,
}

impl Default for ScriptedConfig {
    fn default() -> Self {
        Self { level: Level::default(), unit_ms: 1000, capabilities: BTreeMap::new(), answers: vec![Answer::default()] }
    }
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            chunks: 3,
            chunk_ms: 1000,
            text: Words::Whole("hello world".to_owned()),
            text_mode: Pieces::Delta,
            audio_mode: Pieces::Delta,
            echo: false,
            step_ms: 0,
            listen: false,
            fail_at: None,
            after_cancel_ms: 0,
            silence_units: 0,
            after_units: None,
        }
    }
}

impl ScriptedConfig {
    /// The flags of this partner by their short names (`resume`, `barge_in`), the usual ones included.
    pub fn flags(&self) -> BTreeMap<String, bool> {
        let usual = [
            ("resume", true),
            ("barge_in", true),
            ("truncate", true),
            ("playback_ack", true),
            ("image", false),
            ("text_only_turn", false),
            ("tools", false),
        ];
        let mut all: BTreeMap<String, bool> = usual.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        all.extend(self.capabilities.iter().map(|(k, v)| (k.replace('-', "_"), *v)));
        all
    }
    /// Samples of a unit of input.
    pub fn unit(&self) -> u64 {
        u64::from(self.unit_ms) * u64::from(super::HEARD_RATE) / 1000
    }
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`OptionError`] for the first that is out of range.
    pub fn check(&self) -> Result<(), OptionError> {
        let wrong = |option: &str, what: String, hint: &str| Err(OptionError::new(option, what, hint));
        if !(1..=60_000).contains(&self.unit_ms) {
            return wrong("unit-ms", format!("is {}", self.unit_ms), "1 to 60000");
        }
        if self.answers.is_empty() {
            return wrong("answers", "has no entry".to_owned(), "leave it out, or write `answers: [{ chunks: 3 }]`");
        }
        for (n, a) in self.answers.iter().enumerate() {
            let ranges = [
                ("chunks", a.chunks, 0, 10_000),
                ("chunk_ms", a.chunk_ms, 1, 60_000),
                ("silence_units", a.silence_units, 0, 10_000),
                ("step_ms", a.step_ms, 0, 600_000),
                ("after_cancel_ms", a.after_cancel_ms, 0, 600_000),
                ("after_units", a.after_units.unwrap_or(1), 1, 10_000),
            ];
            if let Some((key, given, least, most)) = ranges.into_iter().find(|r| !(r.2..=r.3).contains(&r.1)) {
                let what = format!("entry {n} has `{key}: {given}`");
                return wrong("answers", what, &format!("{least} to {most}"));
            }
            let length = u64::from(a.chunks + a.silence_units) * u64::from(a.chunk_ms);
            if a.audio_mode == Pieces::Cumulative && length > 600_000 {
                let what = format!("entry {n} repeats all of {length} ms of audio with each chunk");
                return wrong("answers", what, "at most 600000 ms with `audio_mode: cumulative`");
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Words;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a list of texts, or null")
            }
            fn visit_str<E>(self, s: &str) -> Result<Words, E> {
                Ok(Words::Whole(s.to_owned()))
            }
            fn visit_unit<E>(self) -> Result<Words, E> {
                Ok(Words::None)
            }
            fn visit_none<E>(self) -> Result<Words, E> {
                Ok(Words::None)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Words, A::Error> {
                let mut all = Vec::new();
                while let Some(s) = seq.next_element::<Option<String>>()? {
                    all.push(s.unwrap_or_default());
                }
                Ok(Words::Each(all))
            }
        }
        d.deserialize_any(Any)
    }
}
