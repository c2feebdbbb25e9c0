//! What can go wrong with a Whisper model: every variant names the file, and the tensor where there is one.

use std::path::{Path, PathBuf};

/// Why a model could not be loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WhisperError {
    /// The file is missing or cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What was given for a model is no folder with its files.
    #[error(
        "{} is no Whisper model ({why}): give a folder with config.json, tokenizer.json and model.bin (CTranslate2) or \
         model.safetensors",
        path.display()
    )]
    NoFolder {
        /// What was given.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The bytes are not what the layout says.
    #[error("{} is malformed: {what}; fetch it again (`omni-flow models verify` finds damaged files)", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
    /// The file is well formed, but holds something that this runtime does not run.
    #[error("{} is not supported: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// What is not supported and what would be.
        what: String,
    },
    /// A tensor that the model needs is not there.
    #[error("{} has no tensor `{tensor}`", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
        /// Name of the tensor in the file's own layout.
        tensor: String,
    },
    /// A tensor has another shape than the model's sizes ask for.
    #[error("{}: tensor `{tensor}` has shape {got:?}, the model needs {expected:?}", file.display())]
    Shape {
        /// The file.
        file: PathBuf,
        /// Name of the tensor in the file's own layout.
        tensor: String,
        /// The shape that the model's sizes ask for.
        expected: Vec<usize>,
        /// The shape found.
        got: Vec<usize>,
    },
    /// A numeric operation failed while running; the stream fails, the model can go on with others.
    #[error("{} failed while running: {source}", file.display())]
    Run {
        /// The weights that ran.
        file: PathBuf,
        /// What the numeric library said.
        source: candle_core::Error,
    },
    /// The language is not one that this model knows.
    #[error("language `{language}` is not known to {}; an English-only model takes none but `en`", file.display())]
    Language {
        /// The tokenizer file.
        file: PathBuf,
        /// What was asked for.
        language: String,
    },
}

impl WhisperError {
    /// The file that the error is about.
    pub fn file(&self) -> &Path {
        match self {
            Self::NoFolder { path: file, .. }
            | Self::Read { file, .. }
            | Self::Malformed { file, .. }
            | Self::Unsupported { file, .. }
            | Self::Missing { file, .. }
            | Self::Shape { file, .. }
            | Self::Run { file, .. }
            | Self::Language { file, .. } => file,
        }
    }
}
