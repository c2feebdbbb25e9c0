//! What can go wrong while a language model is loaded or used, in words a caller can act on.
//!
//! Each variant that comes from a file names that file. Errors of a remote server are [`super::remote::RemoteError`].

use std::path::PathBuf;

/// Architectures (`general.architecture`) this runtime computes.
pub const SUPPORTED_ARCHITECTURES: &[&str] = &["llama", "qwen2", "qwen3", "gemma3"];

/// Why a chat model could not be loaded, or why a turn could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The file could not be opened or read.
    #[error("cannot read {}: {source}; check the path and its permissions, or pull the model again", path.display())]
    Io {
        /// The model file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a GGUF file or is damaged.
    #[error("{} is not a usable GGUF file: {why}; verify its checksum or pull it again", path.display())]
    Malformed {
        /// The model file.
        path: PathBuf,
        /// What is wrong, with the offset or the key.
        why: String,
    },
    /// The architecture of the file is not one that can be computed here.
    #[error(
        "{} holds a model of architecture `{architecture}`; supported are {}; use another file or a server by base_url",
        path.display(),
        SUPPORTED_ARCHITECTURES.join(", ")
    )]
    UnsupportedArchitecture {
        /// The model file.
        path: PathBuf,
        /// `general.architecture` as the file says it.
        architecture: String,
    },
    /// A feature of the model (experts, a scaling of positions, a tokenizer, a tensor type) is not supported.
    #[error("{} needs {what}, which is not supported; supported: {supported}", path.display())]
    UnsupportedFeature {
        /// The model file.
        path: PathBuf,
        /// The feature, with the key that asks for it.
        what: String,
        /// What would have been accepted.
        supported: String,
    },
    /// The weights need more memory than the options allow.
    #[error(
        "{} needs {needed} bytes of memory for its weights, the limit is {limit}; raise `max_weight_bytes` or take a \
         smaller model",
        path.display()
    )]
    TooLarge {
        /// The model file.
        path: PathBuf,
        /// Bytes of the weights as they would be kept.
        needed: u64,
        /// [`super::ChatOptions::max_weight_bytes`].
        limit: u64,
    },
    /// The chat template failed on these messages.
    #[error("the chat template failed: {why}; set a built-in `template` in the options to override it")]
    Template {
        /// The template engine's message.
        why: String,
    },
    /// System prompt, examples and the newest message alone do not fit into the context.
    #[error(
        "the prompt needs {needed} tokens and the answer up to {answer}, but the context holds {limit}; shorten the \
         prompt or lower max_tokens"
    )]
    ContextTooLong {
        /// Tokens of the shortest prompt that the history rule allows.
        needed: usize,
        /// Tokens kept free for the answer.
        answer: usize,
        /// The context budget.
        limit: usize,
    },
    /// The text could not be turned into tokens.
    #[error("the tokenizer failed: {why}")]
    Tokenize {
        /// What the tokenizer said.
        why: String,
    },
    /// The network refused or failed.
    #[error(transparent)]
    Forward(#[from] super::language::ForwardError),
    /// The call does not fit the state of the slot.
    #[error("{what}")]
    Misuse {
        /// What was called when, and what to call instead.
        what: &'static str,
    },
}
