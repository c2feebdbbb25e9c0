//! The seam between the chat runtime and whatever computes the network.
//!
//! [`LanguageModel`] is the network (one copy, shared), [`KvState`] the memory of one sequence. Kernels of our own
//! replace [`super::decoder::Decoder`] behind these two traits; nothing else in the runtime changes.

use std::any::Any;

/// A network that gives logits for the next token. One value serves all sequences at once.
pub trait LanguageModel: Send + Sync {
    /// An empty sequence.
    fn new_state(&self) -> Box<dyn KvState>;

    /// Appends `tokens` to the sequence and returns the logits `[vocab]` after the last of them. Runs on the calling
    /// thread only. The cost is bounded by `tokens.len()` and the length of the sequence.
    ///
    /// # Errors
    /// [`ForwardError`]; the sequence is then as before.
    fn forward(&self, state: &mut dyn KvState, tokens: &[u32]) -> Result<Vec<f32>, ForwardError>;

    /// Tokens in the vocabulary.
    fn vocab(&self) -> usize;

    /// Longest sequence in tokens.
    fn context(&self) -> usize;

    /// Bytes of the weights.
    fn bytes(&self) -> usize;
}

/// The keys and values of one sequence.
pub trait KvState: Send + Sync + Any {
    /// Tokens in the sequence.
    fn len(&self) -> usize;
    /// Whether the sequence is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Cuts the sequence to its first `len` tokens; no effect if it is shorter.
    fn truncate(&mut self, len: usize);
    /// A copy of the first `len` tokens with memory of its own.
    fn fork(&self, len: usize) -> Box<dyn KvState>;
    /// Bytes held, reserved ones included.
    fn bytes(&self) -> usize;
    /// For the model that made it.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// Why a forward pass was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// No token was given, or one outside the vocabulary.
    #[error("token {0:?} is not in the vocabulary; the file's tokenizer does not fit its weights")]
    BadToken(Option<u32>),
    /// The state was made by another model.
    #[error("the sequence belongs to another model; begin a new one")]
    ForeignState,
    /// The sequence would be longer than the model's context.
    #[error("{needed} tokens do not fit into the context of {limit}")]
    Full {
        /// Length that was asked for.
        needed: usize,
        /// [`LanguageModel::context`].
        limit: usize,
    },
    /// The numbers are not finite.
    #[error("the logits are not finite; the weights are damaged")]
    NotFinite,
}
