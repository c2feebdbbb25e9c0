//! Settings of turn detection, checked once.

use super::{RATE, WINDOW};
use serde::Deserialize;
use thiserror::Error;

/// Who says when a turn is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnMode {
    /// Speech begins a turn and silence ends it; a commit ends it too.
    #[default]
    Vad,
    /// A commit alone: all audio since the last commit or clear is one turn, speech or not.
    Manual,
}

/// The settings as written; defaults are those of `session.vad` and `session.max_utterance_s`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TurnConfig {
    /// Who says when a turn is over.
    pub mode: TurnMode,
    /// Whether the beginning of speech is to interrupt an answer. It changes nothing but what is told with it.
    pub interrupt: bool,
    /// Probability from which a window is speech, above 0.15 up to 1. Silence begins 0.15 below it.
    pub threshold: f32,
    /// Audio kept before the first window of speech, ms.
    pub prefix_padding_ms: u32,
    /// Silence that ends a turn, ms.
    pub silence_duration_ms: u32,
    /// Unbroken speech that begins a turn, ms; acts as at least 32.
    pub min_speech_duration_ms: u32,
    /// The longest item, s, at least 1.
    pub max_utterance_s: f32,
    /// Silence after which a guess at the turn's end is given, ms; 0 = never. Ours: the reference has no guess.
    pub speculate_after_ms: u32,
}

impl Default for TurnConfig {
    fn default() -> Self {
        Self {
            mode: TurnMode::Vad,
            interrupt: true,
            threshold: 0.5,
            prefix_padding_ms: 300,
            silence_duration_ms: 500,
            min_speech_duration_ms: 96,
            max_utterance_s: 30.0,
            speculate_after_ms: 160,
        }
    }
}

/// Why settings were refused; `param` of the wire error is [`TurnConfigError::param`].
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum TurnConfigError {
    /// The threshold leaves no room for the silence bound, or is no probability.
    #[error("`threshold` is {0}: it must be above 0.15 and at most 1")]
    Threshold(f32),
    /// The longest item is too short, too long to hold, or no number.
    #[error("`max_utterance_s` is {0}: it must be from 1 to 3600")]
    MaxUtterance(f32),
    /// A duration that cannot be meant.
    #[error("`{key}` is {ms} ms: it must be at most one hour")]
    TooLong {
        /// The setting.
        key: &'static str,
        /// What was given, ms.
        ms: u32,
    },
}

impl TurnConfigError {
    /// The name of the setting that was refused.
    pub const fn param(&self) -> &'static str {
        match self {
            Self::Threshold(_) => "threshold",
            Self::MaxUtterance(_) => "max_utterance_s",
            Self::TooLong { key, .. } => key,
        }
    }
}

/// Checked settings in samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnRules {
    pub(super) mode: TurnMode,
    pub(super) interrupt: bool,
    pub(super) threshold: f32,
    pub(super) bound: f32,
    pub(super) prefix: u64,
    pub(super) silence: u64,
    pub(super) min_speech: u64,
    pub(super) longest: u64,
    /// `None` = no guesses.
    pub(super) speculate: Option<u64>,
}

impl TurnConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`TurnConfigError`] for the first one out of range.
    pub fn rules(&self) -> Result<TurnRules, TurnConfigError> {
        const HOUR_MS: u32 = 3_600_000;
        if !(self.threshold > 0.15 && self.threshold <= 1.0) {
            return Err(TurnConfigError::Threshold(self.threshold));
        }
        if !(1.0..=3600.0).contains(&self.max_utterance_s) {
            return Err(TurnConfigError::MaxUtterance(self.max_utterance_s));
        }
        let spans = [
            ("prefix_padding_ms", self.prefix_padding_ms),
            ("silence_duration_ms", self.silence_duration_ms),
            ("min_speech_duration_ms", self.min_speech_duration_ms),
            ("speculate_after_ms", self.speculate_after_ms),
        ];
        if let Some(&(key, ms)) = spans.iter().find(|s| s.1 > HOUR_MS) {
            return Err(TurnConfigError::TooLong { key, ms });
        }
        let samples = |ms: u32| u64::from(ms) * u64::from(RATE) / 1000;
        Ok(TurnRules {
            mode: self.mode,
            interrupt: self.interrupt,
            threshold: self.threshold,
            bound: (self.threshold - 0.15).max(0.01),
            prefix: samples(self.prefix_padding_ms),
            silence: samples(self.silence_duration_ms),
            min_speech: samples(self.min_speech_duration_ms).max(WINDOW as u64),
            longest: (f64::from(self.max_utterance_s) * f64::from(RATE)) as u64,
            speculate: (self.speculate_after_ms > 0).then(|| samples(self.speculate_after_ms)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_samples() {
        let r = TurnConfig::default().rules().unwrap();
        assert_eq!((r.prefix, r.silence, r.min_speech, r.longest), (4_800, 8_000, 1_536, 480_000));
        assert_eq!(r.speculate, Some(2_560));
        assert!((r.bound - 0.35).abs() < 1e-6);
    }
    #[test]
    fn out_of_range_is_refused_with_its_name() {
        let bad = |c: TurnConfig| c.rules().unwrap_err().param();
        for threshold in [0.15, 0.0, -1.0, 1.01, f32::NAN, f32::INFINITY] {
            assert_eq!(bad(TurnConfig { threshold, ..TurnConfig::default() }), "threshold");
        }
        for max_utterance_s in [0.9, f32::NAN, f32::INFINITY] {
            assert_eq!(bad(TurnConfig { max_utterance_s, ..TurnConfig::default() }), "max_utterance_s");
        }
        assert_eq!(bad(TurnConfig { prefix_padding_ms: u32::MAX, ..TurnConfig::default() }), "prefix_padding_ms");
        let zero = TurnConfig { min_speech_duration_ms: 0, speculate_after_ms: 0, ..TurnConfig::default() };
        assert_eq!(zero.rules().unwrap().min_speech, 512);
        assert_eq!(zero.rules().unwrap().speculate, None);
        assert!(serde_json::from_str::<TurnConfig>(r#"{"treshold": 0.4}"#).is_err());
        assert_eq!(serde_json::from_str::<TurnConfig>("{}").unwrap(), TurnConfig::default());
    }
}
