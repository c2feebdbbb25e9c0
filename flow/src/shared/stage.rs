//! What the author of a shared stage writes.

use std::error::Error;

use super::{Batch, Member, SlotId};
use crate::pool::PoolError;
use crate::{Item, Medium, Stamp};

/// A model that many sessions use. See the [module](super) for how it is run.
///
/// The stage itself is shared by all streams and threads; everything of one stream lives in its `Slot`. All methods but
/// [`Stage::unit`] and [`Stage::run`] are called on async workers and must be cheap.
pub trait Stage: Sized + Send + Sync + 'static {
    /// What it takes.
    type In: Item;
    /// What it gives. A stage of several outputs gives [`Payload`](crate::Payload): each goes to the first output of the
    /// schema that takes its medium, else to the first. Work waits for room on the first output, and ends when nobody
    /// reads it.
    type Out: Item;
    /// State of one stream.
    type Slot: Send + 'static;

    /// Makes the state of a new stream in slot `id`. A stage that keeps memory per slot (a cache in device memory) may
    /// use `id.index`, which is below the number of slots and belongs to nobody else until the state has been dropped.
    ///
    /// # Errors
    /// Any; the lease is refused with it.
    fn open(&self, id: SlotId) -> Result<Self::Slot, StageError>;

    /// How many bytes the state of this stream takes now, for accounting and for the stage's memory limit.
    fn slot_bytes(&self, slot: &Self::Slot) -> u64;

    /// Remembers one input. No work is done here.
    ///
    /// # Errors
    /// Any; it ends this stream.
    fn accept(&self, slot: &mut Self::Slot, stamp: &Stamp, input: Self::In) -> Result<(), StageError>;

    /// True if a unit of work would do something now: there is new input, an answer is half made, or something held
    /// must be flushed after [`Stage::end`]. Each unit must make progress, so that this becomes false in the end.
    fn ready(&self, slot: &Self::Slot) -> bool;

    /// Does one bounded unit of work (one decoder step, one window) for one stream and emits what is done.
    ///
    /// # Errors
    /// Any; it ends this stream, and what this unit emitted is dropped.
    fn unit(&self, member: &mut Member<Self>) -> Result<(), StageError>;

    /// Does one unit for each stream of a batch. Without an override the units run one after the other, each with its
    /// own panic fence. A model that computes the batch at once overrides this; a panic outside [`Batch::each`] then
    /// fails all streams of this batch, and none of another.
    fn run(&self, batch: &mut Batch<'_, Self>) {
        batch.each(|member| self.unit(member));
    }

    /// The stream was fenced: forget its input and its half-made answer, keep what is costly to make again.
    fn fence(&self, slot: &mut Self::Slot);

    /// The stream's input has ended: whatever is held must come out in the units that follow.
    ///
    /// # Errors
    /// Any; it ends this stream.
    fn end(&self, slot: &mut Self::Slot) -> Result<(), StageError> {
        let _ = slot;
        Ok(())
    }
}

/// Why a stream of a shared stage ends early.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The stage says so.
    #[error("{0}")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
    /// The stage panicked in this stream's work (or in the whole batch, outside any stream's part). The state of the
    /// stream is gone; other streams go on.
    #[error("the stage panicked: {message}; the stream's state has been dropped, open a new session")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// A payload of another medium arrived at a stage behind [`super::AnyStage`].
    #[error("the stage takes {expected}, got {got}; put a converter before it", expected = expected.name(), got = got.name())]
    WrongKind {
        /// What it takes.
        expected: Medium,
        /// What came.
        got: Medium,
    },
    /// A unit of this stream runs; wait for [`super::Leased::advance`] or [`super::Leased::fence`] first.
    #[error("a unit of this stream is still running; finish `advance` before the next input")]
    Busy,
    /// The stream has failed before and has no state any more.
    #[error("the stream has ended with an error before; open a new session")]
    Ended,
    /// The compute pool gave up.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

impl StageError {
    /// An error of the stage's own.
    pub fn failed(e: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(e.into())
    }
}
