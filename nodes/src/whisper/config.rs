//! Sizes of a Whisper model, from the tensors themselves or from `config.json`, checked before anything is allocated.

use super::error::WhisperError;
use super::weights::{Layout, Outer, Side, Weights};
use serde::Deserialize;
use std::path::Path;

/// Sizes of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// Mel bands of the input.
    pub mels: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Attention heads, the same in encoder and decoder.
    pub heads: usize,
    /// Encoder layers.
    pub encoder_layers: usize,
    /// Decoder layers.
    pub decoder_layers: usize,
    /// Positions of the encoder's output: 1500 rows of 20 ms.
    pub audio_rows: usize,
    /// Positions of the decoder.
    pub text_rows: usize,
    /// Rows of the embedding table.
    pub vocabulary: usize,
}

/// What of `config.json` (either layout) matters here.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ConfigFile {
    encoder_attention_heads: Option<usize>,
    decoder_attention_heads: Option<usize>,
    activation_function: Option<String>,
    #[serde(alias = "suppress_tokens")]
    pub suppress_ids: Option<Vec<i64>>,
    #[serde(alias = "begin_suppress_tokens")]
    pub suppress_ids_begin: Option<Vec<i64>>,
}

impl ConfigFile {
    pub fn read(file: &Path) -> Result<Self, WhisperError> {
        let bytes = super::weights::read(file)?;
        serde_json::from_slice(&bytes)
            .map_err(|e| WhisperError::Malformed { file: file.to_owned(), what: e.to_string() })
    }
}

const GELU: i32 = 3;
const HEAD: usize = 64;

impl Sizes {
    pub(crate) fn of(w: &Weights<'_>, config: &ConfigFile) -> Result<Self, WhisperError> {
        let bad = |what: String| WhisperError::Unsupported { file: w.file.clone(), what };
        let two = |which| -> Result<(usize, usize), WhisperError> {
            match w.outer_dims(which)?[..] {
                [a, b] => Ok((a, b)),
                ref other => Err(bad(format!("{which:?} has shape {other:?}, two dimensions are needed"))),
            }
        };
        let conv = w.outer_dims(Outer::Conv1Weight)?;
        let [width, mels, 3] = conv[..] else {
            return Err(bad(format!("the first convolution has shape {conv:?}, [width, mels, 3] is needed")));
        };
        let (audio_rows, _) = two(Outer::Positions(Side::Encoder))?;
        let (text_rows, _) = two(Outer::Positions(Side::Decoder))?;
        let (vocabulary, _) = two(Outer::Embeddings)?;
        let heads = match &w.layout {
            Layout::Ct2(_) => {
                if w.ct2_integer("decoder/activation").is_some_and(|a| a != GELU) {
                    return Err(bad("an activation other than GELU".into()));
                }
                let heads = |side| w.ct2_integer(side).and_then(|n| usize::try_from(n).ok());
                (heads("encoder/num_heads"), heads("decoder/num_heads"))
            }
            Layout::Hf(_) => {
                if config.activation_function.as_deref().is_some_and(|a| a != "gelu") {
                    return Err(bad("an activation other than GELU".into()));
                }
                (config.encoder_attention_heads, config.decoder_attention_heads)
            }
        };
        let heads = match heads {
            (Some(a), Some(b)) if a == b => a,
            (None, None) => width / HEAD,
            (a, b) => return Err(bad(format!("{a:?} encoder heads and {b:?} decoder heads; they must be equal"))),
        };
        let sizes = Self {
            mels,
            width,
            heads,
            encoder_layers: w.layers(Side::Encoder),
            decoder_layers: w.layers(Side::Decoder),
            audio_rows,
            text_rows,
            vocabulary,
        };
        let whole = heads > 0 && width % heads == 0 && width > 0;
        let known = matches!(mels, 80 | 128) && audio_rows == 1500 && (16..=4096).contains(&text_rows);
        if !whole || !known || sizes.encoder_layers == 0 || sizes.decoder_layers == 0 {
            return Err(bad(format!("these sizes are not those of a Whisper model: {sizes:?}")));
        }
        Ok(sizes)
    }
}
