//! The tokenizer and the special tokens of a Whisper model.

use super::config::ConfigFile;
use super::error::WhisperError;
use std::path::{Path, PathBuf};
use tokenizers::Tokenizer;

/// Special ids, suppressed ids, and ids to text.
pub(crate) struct Tokens {
    file: PathBuf,
    tokenizer: Tokenizer,
    pub start: u32,
    pub end: u32,
    pub no_speech: Option<u32>,
    no_timestamps: u32,
    transcribe: u32,
    /// Language code and id; empty for an English-only model.
    pub languages: Vec<(String, u32)>,
    /// Never chosen.
    pub suppressed: Vec<u32>,
    /// Not chosen as the first token.
    pub suppressed_first: Vec<u32>,
}

/// An English-only vocabulary has one entry less than the multilingual ones.
const MULTILINGUAL: usize = 51865;

impl Tokens {
    pub fn load(file: &Path, config: &ConfigFile, vocabulary: usize) -> Result<Self, WhisperError> {
        let bad = |what: String| WhisperError::Malformed { file: file.to_owned(), what };
        let bytes = super::weights::read(file)?;
        let tokenizer = Tokenizer::from_bytes(&bytes).map_err(|e| bad(e.to_string()))?;
        let id = |name: &str| tokenizer.token_to_id(name).filter(|&id| (id as usize) < vocabulary);
        let need = |name: &str| {
            id(name).ok_or_else(|| bad(format!("no token `{name}` within the vocabulary of {vocabulary}")))
        };
        let no_timestamps = need("<|notimestamps|>")?;
        let (start, end) = (need("<|startoftranscript|>")?, need("<|endoftext|>")?);
        let mut languages = Vec::new();
        if vocabulary >= MULTILINGUAL {
            for (token, code) in tokenizer.get_vocab(true) {
                let Some(name) = token.strip_prefix("<|").and_then(|t| t.strip_suffix("|>")) else { continue };
                if (2..=3).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase()) && code > start {
                    languages.push((name.to_owned(), code));
                }
            }
            languages.sort_by_key(|l| l.1);
        }
        let ids = |list: &Option<Vec<i64>>| -> Vec<u32> {
            let list = list.iter().flatten();
            list.filter_map(|&i| u32::try_from(i).ok()).filter(|&i| (i as usize) < vocabulary).collect()
        };
        // Everything from the start token up is a control token; the end token is the only one ever chosen.
        let mut suppressed = ids(&config.suppress_ids);
        suppressed.extend((end.min(start)..vocabulary as u32).filter(|&i| i != end));
        suppressed.sort_unstable();
        suppressed.dedup();
        suppressed.retain(|&i| i != end);
        let mut suppressed_first = ids(&config.suppress_ids_begin);
        suppressed_first.push(end);
        Ok(Self {
            file: file.to_owned(),
            start,
            end,
            no_speech: id("<|nospeech|>").or_else(|| id("<|nocaptions|>")),
            no_timestamps,
            transcribe: need("<|transcribe|>")?,
            languages,
            suppressed,
            suppressed_first,
            tokenizer,
        })
    }

    /// The tokens in front of the text: a language that the model does not know is an error; `None` for a
    /// multilingual model means that the language must be detected first.
    pub fn prompt(&self, language: Option<&str>) -> Result<Option<Vec<u32>>, WhisperError> {
        if self.languages.is_empty() {
            return match language {
                None | Some("en") => Ok(Some(vec![self.start, self.no_timestamps])),
                Some(other) => Err(self.unknown(other)),
            };
        }
        let Some(language) = language else { return Ok(None) };
        let found = self.languages.iter().find(|(code, _)| code == language).ok_or_else(|| self.unknown(language))?;
        Ok(Some(self.prompt_with(found.1)))
    }

    /// The tokens in front of the text for a language token.
    pub fn prompt_with(&self, language: u32) -> Vec<u32> {
        vec![self.start, language, self.transcribe, self.no_timestamps]
    }

    /// Text of ids, special ones left out.
    pub fn text(&self, ids: &[u32]) -> Result<String, WhisperError> {
        self.tokenizer
            .decode(ids, true)
            .map_err(|e| WhisperError::Malformed { file: self.file.clone(), what: format!("cannot decode: {e}") })
    }

    fn unknown(&self, language: &str) -> WhisperError {
        WhisperError::Language { file: self.file.clone(), language: language.to_owned() }
    }
}
