//! The JSON file beside a Piper voice: sample rate, default scales, phoneme ids, speakers.
//!
//! Promises that what it returns is consistent: a rate within 4 to 192 kHz, finite positive scales, the three
//! framing symbols present, every id within the symbol table. Does not look at the ONNX file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Deserialize;

/// What is wrong with a voice's JSON file; [`VoiceError`](super::VoiceError) adds the file's name.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not JSON, or fields of the wrong type.
    #[error("is not a Piper voice configuration: {0}")]
    Json(#[from] serde_json::Error),
    /// A field has a value that no voice can have.
    #[error("`{field}` is {found}, expected {expected}; is this the .onnx.json file of the voice?")]
    Field {
        /// Path of the field, e.g. `audio.sample_rate`.
        field: &'static str,
        /// What was found.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
}

/// A checked voice configuration.
#[derive(Debug, Clone)]
pub struct VoiceConfig {
    /// Samples per second of the audio.
    pub sample_rate: u32,
    /// Default of the latents' noise.
    pub noise_scale: f32,
    /// Default of the speaking time per phoneme (1 = as trained, larger is slower).
    pub length_scale: f32,
    /// Default of the durations' noise.
    pub noise_w: f32,
    /// Language code as the file states it, e.g. `en_US`; empty when it does not.
    pub language: String,
    /// espeak voice that the training text was phonemised with, e.g. `en-us`.
    pub espeak: String,
    /// Number of speakers, at least 1.
    pub speakers: u32,
    /// Speaker names to ids; empty for most single-speaker voices.
    pub speaker_ids: HashMap<String, u32>,
    ids: HashMap<char, Vec<i32>>,
}

impl VoiceConfig {
    /// Reads and checks the configuration. Fields that a voice does not need are ignored.
    ///
    /// # Errors
    /// [`ConfigError::Json`] for what is not such a file, [`ConfigError::Field`] for impossible values.
    pub fn parse(json: &[u8]) -> Result<Self, ConfigError> {
        let raw: Raw = serde_json::from_slice(json)?;
        let field = |field, found: String, expected| ConfigError::Field { field, found, expected };
        let rate = raw.audio.sample_rate;
        if !(4_000..=192_000).contains(&rate) {
            return Err(field("audio.sample_rate", rate.to_string(), "4000 to 192000"));
        }
        for (name, value) in [
            ("inference.noise_scale", raw.inference.noise_scale),
            ("inference.length_scale", raw.inference.length_scale),
            ("inference.noise_w", raw.inference.noise_w),
        ] {
            let low = if name == "inference.length_scale" { 0.05 } else { 0.0 };
            if !(low..=10.0).contains(&value) {
                return Err(field(name, value.to_string(), "a finite number up to 10 (length_scale at least 0.05)"));
            }
        }
        if raw.num_speakers == 0 {
            return Err(field("num_speakers", "0".into(), "1 or more"));
        }
        if let Some((name, id)) = raw.speaker_id_map.iter().find(|(_, id)| **id >= raw.num_speakers) {
            return Err(field("speaker_id_map", format!("{name} = {id}"), "ids below num_speakers"));
        }
        let mut ids = HashMap::new();
        for (symbol, list) in raw.phoneme_id_map {
            // Keys of several code points do not occur in espeak voices; they could never be looked up.
            let mut chars = symbol.chars();
            let (Some(c), None) = (chars.next(), chars.next()) else { continue };
            let limit = raw.num_symbols.unwrap_or(u32::MAX).min(i32::MAX as u32);
            if list.is_empty() || list.iter().any(|&id| id >= limit) {
                return Err(field("phoneme_id_map", format!("{symbol:?} = {list:?}"), "ids below num_symbols"));
            }
            let list: Vec<i32> = list.into_iter().map(|id| id as i32).collect();
            match ids.entry(c) {
                Entry::Vacant(slot) => slot.insert(list),
                Entry::Occupied(_) => return Err(field("phoneme_id_map", format!("{c:?} twice"), "unique symbols")),
            };
        }
        for c in ['_', '^', '$'] {
            if !ids.contains_key(&c) {
                return Err(field("phoneme_id_map", format!("without {c:?}"), "the symbols `_`, `^` and `$`"));
            }
        }
        Ok(Self {
            sample_rate: rate,
            noise_scale: raw.inference.noise_scale,
            length_scale: raw.inference.length_scale,
            noise_w: raw.inference.noise_w,
            language: raw.language.code,
            espeak: raw.espeak.voice,
            speakers: raw.num_speakers,
            speaker_ids: raw.speaker_id_map,
            ids,
        })
    }

    /// Ids of one phoneme symbol, or `None` if the voice was not trained with it.
    pub fn ids(&self, symbol: char) -> Option<&[i32]> {
        self.ids.get(&symbol).map(Vec::as_slice)
    }

    /// The language that the voice speaks, for people: `en_US`.
    pub fn spoken(&self) -> &str {
        if self.language.is_empty() { &self.espeak } else { &self.language }
    }

    /// Whether the voice speaks English, the only language the phonemiser knows.
    pub fn is_english(&self) -> bool {
        let code = if self.language.is_empty() { &self.espeak } else { &self.language };
        code.get(..2).is_some_and(|c| c.eq_ignore_ascii_case("en"))
    }

    /// Whether the voice was trained with British phonemes.
    pub fn is_british(&self) -> bool {
        let code = if self.espeak.is_empty() { &self.language } else { &self.espeak };
        code.to_ascii_lowercase().contains("gb") || self.language.eq_ignore_ascii_case("en_GB")
    }

    /// Frames a phoneme string as the voice expects it: `^ _ p _ p _ … $`, with each symbol's ids.
    /// Returns the ids and the number of symbols that the voice does not know (left out).
    pub fn encode(&self, phonemes: &str) -> (Vec<i32>, usize) {
        let pad = self.ids.get(&'_').map_or(&[][..], Vec::as_slice);
        let mut out = Vec::with_capacity(2 * phonemes.len() + 3);
        let mut unknown = 0;
        out.extend(self.ids.get(&'^').into_iter().flatten());
        out.extend(pad);
        for symbol in phonemes.chars() {
            match self.ids.get(&symbol) {
                Some(ids) if !matches!(symbol, '_' | '^' | '$') => {
                    out.extend(ids);
                    out.extend(pad);
                }
                _ => unknown += 1,
            }
        }
        out.extend(self.ids.get(&'$').into_iter().flatten());
        (out, unknown)
    }
}

#[derive(Deserialize)]
struct Raw {
    audio: Audio,
    #[serde(default)]
    inference: Inference,
    #[serde(default = "one")]
    num_speakers: u32,
    num_symbols: Option<u32>,
    #[serde(default)]
    speaker_id_map: HashMap<String, u32>,
    phoneme_id_map: HashMap<String, Vec<u32>>,
    #[serde(default)]
    language: Language,
    #[serde(default)]
    espeak: Espeak,
}

#[derive(Deserialize)]
struct Audio {
    sample_rate: u32,
}

#[derive(Deserialize)]
#[serde(default)]
struct Inference {
    noise_scale: f32,
    length_scale: f32,
    noise_w: f32,
}

impl Default for Inference {
    fn default() -> Self {
        Self { noise_scale: 0.667, length_scale: 1.0, noise_w: 0.8 }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Language {
    code: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Espeak {
    voice: String,
}

fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{"audio":{"sample_rate":22050},"num_symbols":8,
        "phoneme_id_map":{"_":[0],"^":[1],"$":[2],"a":[3],"b":[4,5]}}"#;

    #[test]
    fn frames_with_padding_between_symbols() {
        let config = VoiceConfig::parse(SMALL.as_bytes()).unwrap();
        assert_eq!(config.encode("ab"), (vec![1, 0, 3, 0, 4, 5, 0, 2], 0));
        assert_eq!(config.encode("a?^"), (vec![1, 0, 3, 0, 2], 2));
        assert_eq!(config.encode(""), (vec![1, 0, 2], 0));
        assert_eq!((config.noise_scale, config.length_scale, config.noise_w), (0.667, 1.0, 0.8));
    }

    #[test]
    fn impossible_values_are_named() {
        for (from, to, expect) in [
            ("22050", "0", "audio.sample_rate"),
            ("\"^\":[1],", "", "'^'"),
            ("[4,5]", "[4,9]", "num_symbols"),
            ("[4,5]", "[]", "phoneme_id_map"),
            ("\"num_symbols\":8", "\"num_speakers\":0", "num_speakers"),
            ("\"num_symbols\":8", "\"num_speakers\":2,\"speaker_id_map\":{\"x\":2}", "speaker_id_map"),
            ("\"num_symbols\":8", "\"inference\":{\"length_scale\":0.0}", "length_scale"),
            ("{\"audio\"", "[\"audio\"", "configuration"),
        ] {
            let json = SMALL.replace(from, to);
            let error = VoiceConfig::parse(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expect), "{to}: {error}");
        }
    }

    #[test]
    fn no_prefix_panics() {
        for n in 0..SMALL.len() {
            assert!(VoiceConfig::parse(&SMALL.as_bytes()[..n]).is_err());
        }
    }
}
