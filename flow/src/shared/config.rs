//! How a stage is shared, and what can be read of it while it is.

use std::time::Duration;

use crate::pool::Limits;

/// How a stage is shared.
#[derive(Clone, Debug)]
pub struct StageConfig {
    /// Streams at once (`active-streams`), at least 1. Default 8.
    pub slots: usize,
    /// Sessions that may wait for a slot in [`StageHandle::admit`](super::StageHandle::admit). Default 64.
    pub waiters: usize,
    /// Streams in one batch, at least 1. Default 1.
    pub max_batch: usize,
    /// How long a request waits for company. Default zero. If it is not, [`Leased::advance`](super::Leased::advance) needs tokio's timer.
    pub max_wait: Duration,
    /// Batches at once, at least 1. Default 1: the model computes one thing at a time, on as many threads as it likes.
    pub concurrency: usize,
    /// Bytes that a stream is charged with even if it measures less: what the model's documentation says it will need.
    pub slot_bytes: u64,
    /// Bytes for all streams; a lease that would exceed them is refused. Default: no limit.
    pub memory: Option<u64>,
    /// When age overrules class.
    pub limits: Limits,
}

impl Default for StageConfig {
    fn default() -> Self {
        Self {
            slots: 8,
            waiters: 64,
            max_batch: 1,
            max_wait: Duration::ZERO,
            concurrency: 1,
            slot_bytes: 0,
            memory: None,
            limits: Limits::default(),
        }
    }
}

/// What a stage has done and is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageStats {
    /// Slots there are.
    pub slots: usize,
    /// Slots in use.
    pub leased: usize,
    /// Sessions that wait for a slot.
    pub waiting: usize,
    /// Leases given so far.
    pub leases: u64,
    /// Leases refused so far.
    pub refused: u64,
    /// Units that wait to run.
    pub queued: usize,
    /// Batches that run now.
    pub running: usize,
    /// Batches run so far.
    pub batches: u64,
    /// Units run so far; divided by `batches`, the mean batch.
    pub units: u64,
    /// The largest batch so far.
    pub largest_batch: usize,
    /// Units whose result nobody wanted when it came.
    pub unwanted: u64,
    /// Streams ended by an error of the stage, panics included.
    pub failed: u64,
    /// Streams ended by a panic.
    pub panicked: u64,
    /// Bytes charged to all streams now.
    pub bytes: u64,
    /// The most that was ever charged.
    pub bytes_peak: u64,
    /// Time that batches took.
    pub busy: Duration,
}
