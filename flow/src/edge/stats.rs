//! What an edge counts.

use std::time::Duration;

use crate::error::ErrorKind;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::{Amount, Chunk, MediaTime};

/// Totals and high-water marks of one edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeCounts {
    /// Chunks accepted.
    pub chunks: u64,
    /// Bytes accepted.
    pub bytes: u64,
    /// Chunks dropped because a fence made them worthless.
    pub stale: u64,
    /// Chunks dropped by a lossy policy.
    pub policy: u64,
    /// Chunks dropped because nobody read any more.
    pub closed: u64,
    /// Chunks that a consumer had in hand when a fault ended it and it was made anew.
    pub lost: u64,
    /// Most chunks ever queued.
    pub depth_high: u64,
    /// Most bytes ever under way.
    pub bytes_high: u64,
    /// Most media time ever under way.
    pub span_high: MediaTime,
    /// Time that the producer waited for credit.
    pub blocked: Duration,
}

/// One edge at one moment.
#[derive(Clone, Debug)]
pub struct EdgeStats {
    /// `node.port->node.port`.
    pub name: String,
    /// Totals.
    pub counts: EdgeCounts,
    /// Chunks queued now.
    pub depth: u64,
    /// What is queued now.
    pub queued: Amount,
    /// Credit in use now.
    pub used: Amount,
    /// The bounds.
    pub limit: Amount,
    /// Age of the oldest queued chunk, since it entered the graph; `None` when empty.
    pub oldest: Option<Duration>,
    /// How long the producer has been waiting for credit by now.
    pub blocked_for: Option<Duration>,
    /// How long the consumer has been waiting for a chunk by now.
    pub waiting_for: Option<Duration>,
    /// True once the stream has its terminal.
    pub ended: bool,
    /// What the edge itself found wrong: not an error that a node gave it.
    pub fault: Option<ErrorKind>,
}

/// What went through an edge inside one task. One writer, so that a count is a load and a store; anybody reads.
#[derive(Debug, Default)]
pub(super) struct Passed {
    chunks: AtomicU64,
    bytes: AtomicU64,
    stale: AtomicU64,
}

impl Passed {
    /// Counts `chunks` and numbers them on.
    #[inline]
    pub(super) fn number(&self, chunks: &mut [Chunk]) {
        let (mut seq, mut bytes) = (self.chunks.load(Relaxed), self.bytes.load(Relaxed));
        for c in chunks {
            c.stamp.seq = seq;
            seq += 1;
            bytes += c.payload.bytes() as u64;
        }
        self.chunks.store(seq, Relaxed);
        self.bytes.store(bytes, Relaxed);
    }
    /// Counts `n` that died of a fence.
    pub(super) fn stale(&self, n: usize) {
        self.stale.store(self.stale.load(Relaxed) + n as u64, Relaxed);
    }
    pub(super) fn added_to(&self, mut counts: EdgeCounts) -> EdgeCounts {
        counts.chunks += self.chunks.load(Relaxed);
        counts.bytes += self.bytes.load(Relaxed);
        counts.stale += self.stale.load(Relaxed);
        counts
    }
}
