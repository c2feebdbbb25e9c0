//! One utterance on its way through the model, in units of work, so that a scheduler can interleave sessions.
//!
//! Units: encode a window, make its keys and values, read the prompt, then one token each. Dropping it at any point
//! leaves nothing behind. Audio without speech gives an empty text and says so.

use super::decoder::KeyValues;
use super::guard::{RepetitionGuard, token_cap};
use super::model::WhisperModel;
use super::sampling::{choose, log_probability};
use super::speech::{gather, next_window};
use super::{Progress, Stop, Transcript, Unit, WhisperError};
use candle_core::Tensor;
use std::sync::Arc;

/// The thresholds of the model's paper (Radford et al. 2022, section 4.5): there is no speech where the no-speech
/// probability is above 0.6 and the mean log-probability of the text below -1; neither alone is trusted.
const NO_SPEECH: f32 = 0.6;
const UNSURE: f32 = -1.0;
/// Ours: the mean over so few tokens says nothing (what is made of noise is "you" or "Thank you.", at about -1), so that
/// the no-speech probability decides. Measured with tiny.en: 0.75 to 0.88 for noise, at most 0.42 for single words.
const FEW: usize = 4;
/// Silence that is encoded with the speech (0.3 s).
const TAIL: usize = 4_800;

/// The state of one utterance.
pub struct Transcription {
    model: Arc<WhisperModel>,
    language: Option<String>,
    pcm: Vec<f32>,
    at: usize,
    stage: Stage,
    out: Transcript,
    log_sum: f32,
}

enum Stage {
    Window,
    Rows(Tensor, usize),
    Prompt(KeyValues, usize),
    Tokens(Box<Window>),
}

struct Window {
    audio: KeyValues,
    cache: KeyValues,
    logits: Vec<f32>,
    tokens: Vec<u32>,
    guard: RepetitionGuard,
    cap: usize,
    no_speech: f32,
    log_sum: f32,
}

impl Transcription {
    /// Begins with 16 kHz mono samples in -1..1; `language` is a code such as `en`, `None` to detect it (a model that
    /// knows English only takes `None` or `en`).
    ///
    /// # Errors
    /// [`WhisperError::Language`].
    pub fn new(model: Arc<WhisperModel>, pcm: &[f32], language: Option<&str>) -> Result<Self, WhisperError> {
        model.tokens.prompt(language)?;
        let pcm = gather(pcm);
        let out = Transcript { samples: pcm.len(), ..Transcript::default() };
        let language = language.map(str::to_owned);
        Ok(Self { model, language, pcm, at: 0, stage: Stage::Window, out, log_sum: 0. })
    }

    /// Does one unit of work. After `Done` it gives `Done` again.
    ///
    /// # Errors
    /// [`WhisperError::Run`] if the numeric library fails, [`WhisperError::Malformed`] if the weights give no numbers.
    pub fn step(&mut self) -> Result<Progress, WhisperError> {
        match std::mem::replace(&mut self.stage, Stage::Window) {
            Stage::Window => self.encode(),
            Stage::Rows(rows, samples) => {
                let audio = self.model.compute(|m| {
                    let head = m.decoder.audio(&rows)?;
                    if rows.dim(0)? < m.sizes.audio_rows { KeyValues::spliced(&head, m.silence()?) } else { Ok(head) }
                })?;
                self.stage = Stage::Prompt(audio, samples);
                Ok(Progress::More(Unit::KeyValues))
            }
            Stage::Prompt(audio, samples) => self.prompt(audio, samples),
            Stage::Tokens(window) => self.token(window),
        }
    }

    /// The text so far; what is in the middle of a character is left out.
    pub fn partial(&self) -> String {
        let mut text = self.out.text.clone();
        if let Stage::Tokens(window) = &self.stage {
            let tail = self.model.tokens.text(&window.tokens).unwrap_or_default();
            text.push_str(tail.trim_end_matches('\u{fffd}'));
        }
        text.trim().to_owned()
    }

    /// Bytes held between two units: samples, encoder rows, keys and values, logits, tokens. What a unit needs only
    /// while it runs is not counted.
    pub fn bytes(&self) -> usize {
        let stage = match &self.stage {
            Stage::Window => 0,
            Stage::Rows(rows, _) => rows.elem_count() * rows.dtype().size_in_bytes(),
            Stage::Prompt(audio, _) => audio.bytes(),
            Stage::Tokens(w) => {
                w.audio.bytes() + w.cache.bytes() + size_of_val(&w.logits[..]) + size_of_val(&w.tokens[..])
            }
        };
        stage + size_of_val(&self.pcm[..]) + size_of_val(&self.out.tokens[..]) + self.out.text.len()
    }

    fn encode(&mut self) -> Result<Progress, WhisperError> {
        let limit = self.model.sizes.audio_rows * 320;
        let Some(window) = next_window(&self.pcm, &mut self.at, limit) else {
            return Ok(Progress::Done(self.finish()));
        };
        let samples = window.len();
        // An even number of frames, and one row more than nothing.
        let total = (samples + TAIL).next_multiple_of(320).min(limit);
        let pcm = &self.pcm[window];
        let rows = self.model.compute(|m| m.encode(pcm, total))?;
        self.stage = Stage::Rows(rows, samples);
        Ok(Progress::More(Unit::Encode))
    }

    fn prompt(&mut self, audio: KeyValues, samples: usize) -> Result<Progress, WhisperError> {
        let tokens = &self.model.tokens;
        let prompt = match tokens.prompt(self.language.as_deref())? {
            Some(prompt) => prompt,
            None => {
                let mut none = KeyValues::default();
                let row =
                    self.model.compute(|m| last_row(&m.decoder.forward(&[tokens.start], &mut none, &audio)?))?;
                let best = tokens.languages.iter().max_by(|a, b| row[a.1 as usize].total_cmp(&row[b.1 as usize]));
                let (code, id) = best.cloned().unwrap_or_default();
                self.language = Some(code);
                tokens.prompt_with(id)
            }
        };
        let mut cache = KeyValues::default();
        let rows = self.model.compute(|m| m.decoder.forward(&prompt, &mut cache, &audio)?.to_vec2::<f32>())?;
        let no_speech = match (tokens.no_speech, rows.first()) {
            (Some(id), Some(first)) => log_probability(first, id).exp(),
            _ => 0.,
        };
        let logits = rows.into_iter().next_back().unwrap_or_default();
        let room = self.model.sizes.text_rows.saturating_sub(prompt.len());
        let cap = token_cap(samples).min(room);
        let (tokens, guard) = (Vec::new(), RepetitionGuard::default());
        self.stage =
            Stage::Tokens(Box::new(Window { audio, cache, logits, tokens, guard, cap, no_speech, log_sum: 0. }));
        Ok(Progress::More(Unit::Prompt))
    }

    fn token(&mut self, mut window: Box<Window>) -> Result<Progress, WhisperError> {
        let tokens = &self.model.tokens;
        let first: &[u32] = if window.tokens.is_empty() { &tokens.suppressed_first } else { &[] };
        let Some((id, log)) = choose(&window.logits, &[&tokens.suppressed, first]) else {
            let what = "the weights give no numbers".to_owned();
            return Err(WhisperError::Malformed { file: self.model.weights_file().to_owned(), what });
        };
        window.log_sum += log;
        if id == tokens.end {
            return self.close(*window, Stop::EndOfText);
        }
        window.tokens.push(id);
        if let Some(keep) = window.guard.push(id) {
            window.tokens.truncate(keep);
            return self.close(*window, Stop::Repetition);
        }
        if window.tokens.len() >= window.cap {
            return self.close(*window, Stop::TokenCap);
        }
        let Window { cache, audio, .. } = &mut *window;
        window.logits = self.model.compute(|m| last_row(&m.decoder.forward(&[id], cache, audio)?))?;
        self.stage = Stage::Tokens(window);
        Ok(Progress::More(Unit::Token))
    }

    fn close(&mut self, window: Window, stop: Stop) -> Result<Progress, WhisperError> {
        let average = window.log_sum / (window.tokens.len() + 1) as f32;
        self.out.no_speech_prob = self.out.no_speech_prob.min(window.no_speech);
        let speech = heard(window.no_speech, average, window.tokens.len());
        if speech && !window.tokens.is_empty() {
            let text = self.model.tokens.text(&window.tokens)?;
            let text = text.trim();
            if !self.out.text.is_empty() && !text.is_empty() {
                self.out.text.push(' ');
            }
            self.out.text.push_str(text);
            self.out.tokens.extend(&window.tokens);
            self.log_sum += window.log_sum;
            self.out.stop = stop;
        }
        self.stage = Stage::Window;
        Ok(Progress::More(Unit::Token))
    }

    fn finish(&mut self) -> Transcript {
        let mut out = self.out.clone();
        out.language = self.language.clone().unwrap_or_else(|| "en".into());
        out.avg_logprob = self.log_sum / (out.tokens.len() + 1) as f32;
        if out.text.is_empty() {
            out.stop = Stop::NoSpeech;
        }
        out
    }
}

/// Whether a text of so many tokens was spoken.
fn heard(no_speech: f32, average: f32, tokens: usize) -> bool {
    no_speech < NO_SPEECH || (average > UNSURE && tokens > FEW)
}

fn last_row(logits: &Tensor) -> candle_core::Result<Vec<f32>> {
    let n = logits.dim(0)?;
    logits.narrow(0, n - 1, 1)?.flatten_all()?.to_vec1::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_told_from_speech() {
        // As measured: "you" made of noise, single words, a sentence, a sentence that the model doubts.
        for (no_speech, average, tokens, speech) in [
            (0.85, -0.90, 1, false),
            (0.75, -1.37, 1, false),
            (0.41, -0.74, 2, true),
            (0.29, -0.54, 2, true),
            (0.03, -0.25, 11, true),
            (0.70, -0.30, 11, true),
            (0.70, -1.20, 11, false),
            (0.10, -1.50, 11, true),
        ] {
            assert_eq!(heard(no_speech, average, tokens), speech, "{no_speech} {average} {tokens}");
        }
    }
}
