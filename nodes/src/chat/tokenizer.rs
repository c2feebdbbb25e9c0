//! Text to tokens and back, by the tables inside a GGUF file.
//!
//! Byte-pair tokenizers of type `gpt2` (with the pre-tokenizers named in [`PRE`]) and SentencePiece-like ones of type
//! `llama` (scores and byte fallback). Tokens marked control or user-defined are found in text before anything else.
//! Message text is made harmless with [`Tokenizer::guard`], so that a user cannot speak a control token. Decoding
//! gives bytes; [`super::utf8::Utf8Stream`] turns them into whole characters.

use std::{collections::HashMap, path::Path};

use tokenizers::{
    SplitDelimiterBehavior, Tokenizer as Engine,
    models::bpe::BPE,
    pre_tokenizers::{
        PreTokenizerWrapper, byte_level::ByteLevel, digits::Digits, sequence::Sequence, split::Split,
        split::SplitPattern,
    },
};

use super::{
    call::MARKERS,
    error::ChatError,
    gguf::{Gguf, Value},
    sentencepiece::SentencePiece,
    tensors::malformed,
};

/// Values of `tokenizer.ggml.pre` that are known, by the way they split text.
pub const PRE: &[(&str, Pre)] = &[
    ("default", Pre::Gpt2),
    ("gpt-2", Pre::Gpt2),
    ("smollm", Pre::DigitsGpt2),
    ("starcoder", Pre::DigitsGpt2),
    ("refact", Pre::DigitsGpt2),
    ("command-r", Pre::DigitsGpt2),
    ("llama-bpe", Pre::Llama3),
    ("llama3", Pre::Llama3),
    ("llama-v3", Pre::Llama3),
    ("qwen2", Pre::Qwen2),
    ("deepseek-r1-qwen", Pre::Qwen2),
];

/// How text is split before byte pairs are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pre {
    /// GPT-2's pattern.
    Gpt2,
    /// Every digit alone, then GPT-2's pattern.
    DigitsGpt2,
    /// Llama 3's pattern: numbers in groups of three; known words are not merged from pairs.
    Llama3,
    /// Qwen's pattern: as Llama 3's with every digit alone.
    Qwen2,
}

/// Put behind the first character of a control token's text inside a message; a noncharacter, so no text has it.
const GUARD: char = '\u{10FFFF}';

/// A tokenizer with its special tokens.
pub struct Tokenizer {
    kind: Kind,
    pieces: Vec<Vec<u8>>,
    hidden: Vec<bool>,
    special: HashMap<String, u32>,
    /// First bytes of special tokens, and their lengths, longest first.
    lengths: Vec<usize>,
    bos: Option<u32>,
    add_bos: bool,
    ends: Vec<u32>,
}

enum Kind {
    Bpe(Box<Engine>),
    Pieces(SentencePiece),
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("tokens", &self.pieces.len())
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Builds the tokenizer that `gguf` describes.
    ///
    /// # Errors
    /// [`ChatError::Malformed`] or [`ChatError::UnsupportedFeature`], naming `path`.
    pub fn from_gguf(path: &Path, gguf: &Gguf) -> Result<Self, ChatError> {
        let get = |key: &str| gguf.metadata.get(&format!("tokenizer.ggml.{key}"));
        let bad = |why: &str| malformed(path, why);
        let Some(Value::Array(texts)) = get("tokens") else { return Err(bad("`tokenizer.ggml.tokens` is missing")) };
        let tokens: Vec<&str> = texts
            .iter()
            .map(|t| t.as_str().ok_or_else(|| bad("`tokenizer.ggml.tokens` holds what is not text")))
            .collect::<Result<_, _>>()?;
        let types: Vec<u64> = match get("token_type") {
            Some(Value::Array(types)) => types.iter().map(|t| t.as_u64().unwrap_or(1)).collect(),
            _ => Vec::new(),
        };
        let type_of = |id: usize| types.get(id).copied().unwrap_or(1);
        let flag = |key: &str| match get(key) {
            Some(Value::Bool(b)) => Some(*b),
            _ => None,
        };
        let id = |key: &str| {
            get(key)
                .and_then(Value::as_u64)
                .and_then(|n| u32::try_from(n).ok())
                .filter(|&n| (n as usize) < tokens.len())
        };
        let unsupported =
            |what: String, supported: String| ChatError::UnsupportedFeature { path: path.into(), what, supported };
        let model = get("model").and_then(Value::as_str).unwrap_or("");
        let kind = match model {
            "gpt2" => {
                let name = get("pre").and_then(Value::as_str).unwrap_or("default");
                let pre = PRE.iter().find(|(n, _)| *n == name).map(|(_, p)| *p).ok_or_else(|| {
                    let known: Vec<_> = PRE.iter().map(|(n, _)| *n).collect();
                    unsupported(format!("the pre-tokenizer `{name}` (`tokenizer.ggml.pre`)"), known.join(", "))
                })?;
                let Some(Value::Array(merges)) = get("merges") else {
                    return Err(bad("`tokenizer.ggml.merges` is missing"));
                };
                Kind::Bpe(Box::new(byte_pairs(&tokens, merges, pre).map_err(|e| malformed(path, e))?))
            }
            "llama" => {
                let Some(Value::Array(scores)) = get("scores") else {
                    return Err(bad("`tokenizer.ggml.scores` is missing"));
                };
                let scores: Vec<f32> = scores.iter().map(|s| s.as_f64().unwrap_or(f64::MIN) as f32).collect();
                let unknown = id("unknown_token_id").unwrap_or(0);
                let space = flag("add_space_prefix").unwrap_or(true);
                Kind::Pieces(SentencePiece::new(&tokens, &scores, unknown, space, |i| matches!(type_of(i), 1 | 4 | 6)))
            }
            other => {
                return Err(unsupported(
                    format!("a tokenizer of type `{other}` (`tokenizer.ggml.model`)"),
                    "gpt2, llama".into(),
                ));
            }
        };
        let special: HashMap<String, u32> = tokens
            .iter()
            .enumerate()
            .filter(|(i, t)| matches!(type_of(*i), 3 | 4) && !t.is_empty())
            .map(|(i, t)| (t.to_string(), i as u32))
            .collect();
        let bytes = inverse_bytes();
        let pieces = tokens
            .iter()
            .enumerate()
            .map(|(i, t)| match (&kind, type_of(i)) {
                (_, 3 | 4) => t.as_bytes().to_vec(),
                (Kind::Bpe(_), _) => unmap(t, &bytes),
                (Kind::Pieces(_), 6) => byte_piece(t).map_or_else(|| t.as_bytes().to_vec(), |b| vec![b]),
                (Kind::Pieces(_), _) => t.replace('\u{2581}', " ").into_bytes(),
            })
            .collect();
        let mut lengths: Vec<usize> = special.keys().map(String::len).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.dedup();
        let bos = id("bos_token_id");
        let mut ends: Vec<u32> =
            ["eos_token_id", "eot_token_id", "eom_token_id"].iter().filter_map(|k| id(k)).collect();
        ends.extend(END_TEXTS.iter().filter_map(|t| special.get(*t)));
        ends.sort_unstable();
        ends.dedup();
        Ok(Self {
            hidden: (0..tokens.len()).map(|i| matches!(type_of(i), 2 | 3 | 5)).collect(),
            add_bos: flag("add_bos_token").unwrap_or(model == "llama"),
            kind,
            pieces,
            special,
            lengths,
            bos,
            ends,
        })
    }

    /// Tokens of a rendered prompt: special tokens by their text, guarded message text as plain text. Begins with the
    /// begin-of-text token if the file asks for one and the prompt does not have it yet.
    ///
    /// # Errors
    /// [`ChatError::Tokenize`].
    pub fn encode(&self, prompt: &str) -> Result<Vec<u32>, ChatError> {
        let mut ids = Vec::new();
        let mut plain = 0;
        let mut at = 0;
        while at < prompt.len() {
            match self.special_at(&prompt[at..]) {
                Some((id, len)) => {
                    self.encode_plain(&prompt[plain..at], &mut ids)?;
                    ids.push(id);
                    at += len;
                    plain = at;
                }
                None => at += prompt[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        self.encode_plain(&prompt[plain..], &mut ids)?;
        if let (true, Some(bos)) = (self.add_bos, self.bos)
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        Ok(ids)
    }

    /// Message text in which no special token is found by [`Tokenizer::encode`]; the tokens are those of the text.
    pub fn guard(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for (i, c) in text.char_indices().filter(|(_, c)| *c != GUARD) {
            out.push(c);
            if self.special_at(&text[i..]).is_some() {
                out.push(GUARD);
            }
        }
        out
    }

    /// Bytes of one token; nothing for control tokens and ids outside the vocabulary.
    pub fn bytes(&self, id: u32) -> &[u8] {
        let i = id as usize;
        match self.hidden.get(i) {
            Some(false) => &self.pieces[i],
            _ => &[],
        }
    }

    /// The same, and the text of a control token that begins a tool call.
    pub(super) fn bytes_or_marker(&self, id: u32) -> &[u8] {
        match self.pieces.get(id as usize) {
            Some(piece) if MARKERS.iter().any(|m| m.as_bytes() == piece.as_slice()) => piece,
            _ => self.bytes(id),
        }
    }

    /// Text of a token, control tokens included.
    pub fn text(&self, id: u32) -> String {
        self.pieces.get(id as usize).map_or_else(String::new, |p| String::from_utf8_lossy(p).into_owned())
    }

    /// Id of a special token by its text.
    pub fn special(&self, text: &str) -> Option<u32> {
        self.special.get(text).copied()
    }

    /// All tokens that end an answer.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// The begin-of-text token.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn special_at(&self, text: &str) -> Option<(u32, usize)> {
        self.lengths.iter().find_map(|&n| Some((*self.special.get(text.get(..n)?)?, n)))
    }

    fn encode_plain(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), ChatError> {
        let clean;
        let text = match text.contains(GUARD) {
            true => {
                clean = text.replace(GUARD, "");
                clean.as_str()
            }
            false => text,
        };
        if text.is_empty() {
            return Ok(());
        }
        match &self.kind {
            Kind::Bpe(engine) => {
                let found = engine.encode_fast(text, false).map_err(|e| ChatError::Tokenize { why: e.to_string() })?;
                ids.extend_from_slice(found.get_ids());
            }
            Kind::Pieces(pieces) => pieces.encode(text, ids.is_empty(), ids),
        }
        Ok(())
    }
}

/// Texts of tokens that end an answer in the model families known here.
const END_TEXTS: &[&str] =
    &["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<end_of_turn>", "<eos>", "</s>"];

fn byte_pairs(tokens: &[&str], merges: &[Value], pre: Pre) -> Result<Engine, String> {
    let vocab: Vec<(String, u32)> = tokens.iter().enumerate().map(|(i, t)| (t.to_string(), i as u32)).collect();
    let known: std::collections::HashSet<&str> = tokens.iter().copied().collect();
    let mut pairs = Vec::new();
    for merge in merges {
        let text = merge.as_str().ok_or("`tokenizer.ggml.merges` holds what is not text")?;
        let (a, b) = text.split_once(' ').ok_or_else(|| format!("`{text}` in `tokenizer.ggml.merges` is no pair"))?;
        if ![a, b, &format!("{a}{b}")].iter().all(|t| known.contains(t)) {
            return Err(format!("`{text}` in `tokenizer.ggml.merges` is made of unknown tokens"));
        }
        pairs.push((a.to_string(), b.to_string()));
    }
    let bpe = BPE::builder()
        .vocab_and_merges(vocab.into_iter().collect::<tokenizers::models::bpe::Vocab>(), pairs)
        .ignore_merges(pre == Pre::Llama3)
        .build()
        .map_err(|e| format!("its byte pairs are refused: {e}"))?;
    let mut engine = Engine::new(bpe);
    let split = |numbers: &str| {
        let pattern = format!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        );
        Split::new(SplitPattern::Regex(pattern), SplitDelimiterBehavior::Isolated, false).map_err(|e| e.to_string())
    };
    let steps: Vec<PreTokenizerWrapper> = match pre {
        Pre::Gpt2 => vec![ByteLevel::new(false, false, true).into()],
        Pre::DigitsGpt2 => vec![Digits::new(true).into(), ByteLevel::new(false, false, true).into()],
        Pre::Llama3 => vec![split(r"\p{N}{1,3}")?.into(), ByteLevel::new(false, false, false).into()],
        Pre::Qwen2 => vec![split(r"\p{N}")?.into(), ByteLevel::new(false, false, false).into()],
    };
    engine.with_pre_tokenizer(Some(Sequence::new(steps)));
    Ok(engine)
}

/// GPT-2's printable stand-ins for bytes, by character.
fn inverse_bytes() -> HashMap<char, u8> {
    let mut next = 256;
    (0..=255u8)
        .map(|b| match b {
            b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => (char::from(b), b),
            _ => {
                let c = char::from_u32(next).unwrap_or(char::REPLACEMENT_CHARACTER);
                next += 1;
                (c, b)
            }
        })
        .collect()
}

fn unmap(token: &str, bytes: &HashMap<char, u8>) -> Vec<u8> {
    let mapped: Option<Vec<u8>> = token.chars().map(|c| bytes.get(&c).copied()).collect();
    mapped.unwrap_or_else(|| token.as_bytes().to_vec())
}

/// The byte of a token such as `<0x0A>`.
pub(super) fn byte_piece(token: &str) -> Option<u8> {
    let hex = token.strip_prefix("<0x")?.strip_suffix('>')?;
    u8::from_str_radix(hex, 16).ok()
}
