//! An edge that hands on whole segments: `chunked: false` in a graph file.
//!
//! Chunks are kept until the last of their segment is there, then they go as one. What is kept holds no credit; it is
//! bounded by the edge's bytes, and what would be more goes on in parts.

use super::state::Dead;
use crate::chunk::join;
use crate::{Amount, Chunk, Epoch, Lane, MediaTime};

/// Bounds of what is kept, beside the edge's own in bytes.
const MOST: u64 = 1 << 16;
const LONGEST: MediaTime = MediaTime::from_millis(3_600_000);

/// The part of a segment that is there.
pub(super) struct Gather {
    chunks: Vec<Chunk>,
    held: Amount,
    most: Amount,
}

impl Gather {
    /// Nothing yet, and never more than `bytes`.
    pub(super) fn new(bytes: u64) -> Self {
        Self { chunks: Vec::new(), held: Amount::ZERO, most: Amount { items: MOST, bytes, span: LONGEST } }
    }
    /// The credit that the segment needs if it goes with `chunk`; `None` if `chunk` only joins what is kept.
    pub(super) fn due(&self, chunk: &Chunk) -> Option<Amount> {
        let sum = self.held.plus(chunk.amount());
        (chunk.stamp.last || !sum.fits(self.most)).then_some(Amount { items: 1, ..sum })
    }
    pub(super) fn keep(&mut self, chunk: Chunk) {
        self.held = self.held.plus(chunk.amount());
        self.chunks.push(chunk);
    }
    /// All that is kept, as one chunk if that can be.
    pub(super) fn take(&mut self) -> Vec<Chunk> {
        self.held = Amount::ZERO;
        let chunks = std::mem::take(&mut self.chunks);
        if chunks.is_empty() {
            return chunks;
        }
        join(chunks).map_or_else(|chunks| chunks, |whole| vec![whole])
    }
    /// Lets go of what a fence of `lane` has ended; how many chunks those were.
    pub(super) fn drop_stale(&mut self, lane: Lane, epoch: Epoch, dead: &mut Dead) -> usize {
        // Epochs never fall along a stream.
        let n = self.chunks.partition_point(|c| c.stamp.epochs.of(lane) < epoch);
        for c in self.chunks.drain(..n) {
            self.held = self.held.minus(c.amount());
            dead.push_back(c);
        }
        n
    }
}
