//! A chunk: the only thing that flows.
//!
//! A [`Chunk`] is a [`Stamp`] (where it belongs) and a [`Payload`] (what it is). Both are cheap to clone: media bytes
//! are shared, never copied.

mod buf;
mod item;
mod join;
mod kind;
mod media;
mod signal;

pub use buf::{Buf, DeviceMemory};
pub use item::Item;
pub(crate) use join::join;
pub use kind::{Kind, KindError, Medium, SampleType};
pub use media::{Dtype, Frame, Packet, Pcm, PcmError, PixelFormat, Tensor, Tokens};
pub use signal::{Signal, TurnEnd};

use std::any::Any;
use std::sync::Arc;

use crate::{Amount, Epochs, MediaTime, Mono};

/// Where a chunk belongs: under which epochs it was asked, its place in the stream, its place in media time, and when
/// the input that it answers arrived.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stamp {
    /// The epochs, one per lane, of the input that this chunk answers. Inherited, never "the current ones".
    pub epochs: Epochs,
    /// Number of the chunk on its edge, from 0, without a gap. Set by the edge; what a node writes here is ignored.
    pub seq: u64,
    /// Position on the stream's media time line.
    pub pts: MediaTime,
    /// Playing time; zero for what has none.
    pub len: MediaTime,
    /// When the input that this chunk answers arrived, so that latency to any point can be read anywhere.
    pub origin: Mono,
    /// True for the last chunk of a segment (an utterance, an answer). The stream goes on.
    pub last: bool,
    /// True for the last chunk of a segment with which a whole answer is over: where an answer is cut into segments of its
    /// own (sentences, for a voice), `last` ends each and this the answer.
    pub over: bool,
}

impl Stamp {
    /// The stamp of a chunk made from the one that has this stamp: same epochs and origin, own media time.
    #[must_use]
    pub fn child(&self, pts: MediaTime, len: MediaTime) -> Self {
        Self { pts, len, last: false, over: false, seq: 0, ..*self }
    }
    /// The same stamp, marked as the last of its segment or not.
    #[must_use]
    pub fn last(mut self, last: bool) -> Self {
        self.last = last;
        self
    }
    /// The same stamp, marked as the end of an answer that consists of segments or not.
    #[must_use]
    pub fn over(mut self, over: bool) -> Self {
        self.over = over;
        self
    }
}

/// What flows over an edge.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Where it belongs.
    pub stamp: Stamp,
    /// What it is.
    pub payload: Payload,
}

/// Moved at every hop: up to 128 bytes a move is a few vector instructions, beyond that a call of `memcpy`.
const _: () = assert!(size_of::<Chunk>() <= 128);

impl Chunk {
    /// How much credit the chunk needs.
    #[inline]
    pub fn amount(&self) -> Amount {
        Amount::one(self.payload.bytes() as u64, self.stamp.len)
    }
}

/// What a chunk can be. A closed set, so that every transport can carry all of it; `Custom` stays within a process.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Uncompressed audio.
    Audio(Pcm),
    /// One uncompressed picture.
    Video(Frame),
    /// UTF-8 text: a word, a sentence, a transcript.
    Text(Arc<str>),
    /// Token ids of a model.
    Tokens(Tokens),
    /// Numbers of a model: latents, embeddings, hidden states.
    Tensor(Tensor),
    /// Encoded media.
    Packet(Packet),
    /// Something that happened: speech started, turn decided.
    Signal(Signal),
    /// Any value of the program's own, within one process only.
    Custom(Arc<dyn Any + Send + Sync>),
}

impl Payload {
    /// Bytes that count against an edge's credit. A `Custom` counts as 0: bound it by items.
    #[inline]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Audio(p) => p.buf().len(),
            Self::Video(f) => f.planes.iter().map(|p| p.0.len()).sum(),
            Self::Text(t) => t.len(),
            Self::Tokens(t) => t.len() * 4,
            Self::Tensor(t) => t.buf.len(),
            Self::Packet(p) => p.data.len(),
            Self::Signal(s) => s.bytes(),
            Self::Custom(_) => 0,
        }
    }
    /// The medium, for checks and messages.
    pub fn medium(&self) -> Medium {
        match self {
            Self::Audio(_) => Medium::Audio,
            Self::Video(_) => Medium::Video,
            Self::Text(_) => Medium::Text,
            Self::Tokens(_) => Medium::Tokens,
            Self::Tensor(_) => Medium::Tensor,
            Self::Packet(_) => Medium::Packet,
            Self::Signal(_) => Medium::Signal,
            Self::Custom(_) => Medium::Any,
        }
    }
}
