//! What `speech.turn` and `speech.guess` have in common: their options and how a window goes into the machine. The type
//! of `speech.turn` does not declare `speculate-after`, so that a graph file cannot set it there.

use omni_flow::units::Dur;
use omni_flow::{Kind, MediaTime, Opt, OptionError, Pcm, Port, Schema};
use serde::Deserialize;

use crate::turn::{TurnConfig, TurnError, TurnEvent, TurnMachine, TurnRules, WINDOW};

pub(super) const RATE: u32 = 16_000;

/// Options of turn detection; the defaults are those of the sessions' contract.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TurnOptions {
    threshold: Option<f32>,
    prefix_padding: Option<Dur>,
    silence_duration: Option<Dur>,
    min_speech_duration: Option<Dur>,
    max_utterance: Option<Dur>,
    speculate_after: Option<Dur>,
}

impl TurnOptions {
    /// The rules of `speech.turn`, which gives no guesses: none is made, and no audio copied for one.
    pub(super) fn sure(&self) -> Result<TurnRules, OptionError> {
        self.rules(0)
    }
    /// The rules of `speech.guess`.
    pub(super) fn guessing(&self) -> Result<TurnRules, OptionError> {
        self.rules(TurnConfig::default().speculate_after_ms)
    }
    /// `speculate` is the silence before a guess, ms, where the options do not say; 0 = never.
    fn rules(&self, speculate: u32) -> Result<TurnRules, OptionError> {
        let d = TurnConfig::default();
        let ms = |given: Option<Dur>, default: u32| {
            given.map_or(default, |g| g.0.as_millis().min(u128::from(u32::MAX)) as u32)
        };
        let config = TurnConfig {
            threshold: self.threshold.unwrap_or(d.threshold),
            prefix_padding_ms: ms(self.prefix_padding, d.prefix_padding_ms),
            silence_duration_ms: ms(self.silence_duration, d.silence_duration_ms),
            min_speech_duration_ms: ms(self.min_speech_duration, d.min_speech_duration_ms),
            max_utterance_s: self.max_utterance.map_or(d.max_utterance_s, |g| g.0.as_secs_f32()),
            speculate_after_ms: ms(self.speculate_after, speculate),
        };
        config.rules().map_err(|e| {
            let option = match e.param() {
                "threshold" => "threshold",
                "max_utterance_s" => "max-utterance",
                "prefix_padding_ms" => "prefix-padding",
                "silence_duration_ms" => "silence-duration",
                "min_speech_duration_ms" => "min-speech-duration",
                _ => "speculate-after",
            };
            OptionError::new(option, e.to_string(), "the defaults suit a conversation")
        })
    }
}

/// The input and the options of both.
pub(super) fn schema(about: &str) -> Schema {
    Schema::new(about)
        .input(Port::new("in", Kind::mono(RATE), "windows with their speech probability, as `speech.vad` gives them"))
        .option(Opt::new(
            "threshold",
            "number",
            "0.5",
            "speech probability from which a window is speech, above 0.15 up to 1",
        ))
        .option(Opt::new("prefix-padding", "duration", "300ms", "audio kept before the first window of speech"))
        .option(Opt::new("silence-duration", "duration", "500ms", "silence that ends a turn"))
        .option(Opt::new("min-speech-duration", "duration", "96ms", "unbroken speech that begins a turn"))
        .option(Opt::new(
            "max-utterance",
            "duration",
            "30s",
            "longest utterance; then it is given as it stands and a new one begins",
        ))
}

/// The option that only `speech.guess` has.
pub(super) fn speculate_after() -> Opt {
    Opt::new("speculate-after", "duration", "160ms", "silence after which the utterance so far is given; 0ms = never")
}

pub(super) fn at(sample: u64) -> MediaTime {
    MediaTime::from_samples(sample, RATE)
}

/// The machine, and the probability of a last, short window.
pub(super) struct Windows {
    machine: TurnMachine,
    rules: TurnRules,
    last: Option<f32>,
}

impl Windows {
    pub(super) fn new(rules: TurnRules) -> Self {
        Self { machine: TurnMachine::new(rules), rules, last: None }
    }
    pub(super) fn push(&mut self, window: &Pcm, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        self.machine.audio(&window.f32())?;
        // Audio that no detector has looked at is not speech.
        let p = window.voice().unwrap_or(0.0);
        if window.frames() == WINDOW {
            return self.machine.probability(p, out);
        }
        self.last = Some(p);
        Ok(())
    }
    pub(super) fn end(&mut self, out: &mut Vec<TurnEvent>) {
        self.machine.end(self.last.take(), out);
    }
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.rules);
    }
}
