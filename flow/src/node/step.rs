//! A step: the four in five nodes that map one chunk to some.
//!
//! A step is synchronous, knows no engine and no runtime, and can be moved to a compute pool. It runs to completion
//! once called. State of the stream (a dangling byte, a filter's history) is plain fields and is reset by a fence.

use std::marker::PhantomData;

use crate::{Chunk, Item, MediaTime, Stamp};

/// Maps one chunk to some.
pub trait Step: Send + 'static {
    /// What it takes.
    type In: Item;
    /// What it gives.
    type Out: Item;

    /// Handles one chunk. What is emitted inherits epochs and origin from `stamp`.
    ///
    /// # Errors
    /// Any error ends this session's stream with that error, under this node's name.
    fn step(&mut self, stamp: &Stamp, input: Self::In, out: &mut Emit<Self::Out>) -> Result<(), StepError>;

    /// The input's lane was fenced: forget the stream so far. Nothing may be emitted.
    fn fence(&mut self) {}

    /// The stream ended: emit what is held. `stamp` is that of the last chunk.
    ///
    /// # Errors
    /// As [`Step::step`].
    fn end(&mut self, stamp: &Stamp, out: &mut Emit<Self::Out>) -> Result<(), StepError> {
        let _ = (stamp, out);
        Ok(())
    }
}

/// Any error of a step.
pub type StepError = Box<dyn std::error::Error + Send + Sync>;

/// Where a step puts what it makes.
pub struct Emit<T> {
    pub(crate) chunks: Vec<Chunk>,
    kind: PhantomData<fn(T)>,
}

impl<T> Default for Emit<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), kind: PhantomData }
    }
}

impl<T: Item> Emit<T> {
    /// Gives one value under a stamp made from the input's ([`Stamp::child`]).
    #[inline]
    pub fn push(&mut self, stamp: Stamp, value: T) {
        self.chunks.push(Chunk { stamp, payload: value.into_payload() });
    }
    /// Gives one value of length `len` at `pts`, with the epochs and origin of `from`.
    #[inline]
    pub fn put(&mut self, from: &Stamp, pts: MediaTime, len: MediaTime, value: T) {
        self.push(from.child(pts, len), value);
    }
    /// Takes what has been given, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = (Stamp, T)> + '_ {
        self.chunks.drain(..).filter_map(|c| Some((c.stamp, T::from_payload(c.payload).ok()?)))
    }
}
