//! What the listener still has to hear: the ledger that decides which session's work is most urgent.
//!
//! Whoever hands audio to a player (a playout node, a socket) writes it; the scheduling of shared stages reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::sync::Mutex;
use crate::{Epochs, Lane, MAX_LANES, Mono};

/// One session's playback, shared by its nodes. All updates are single atomic writes.
#[derive(Debug, Default)]
pub struct Playback {
    /// Per lane: 1 + the newest epoch under which audio has gone out.
    answered: [AtomicU32; MAX_LANES],
    /// Per lane: when the first audio of that epoch went out, in ns of the engine's clock.
    first_at: [AtomicU64; MAX_LANES],
    /// When the listener runs dry, in ns of the engine's clock; 0 = nothing was played yet.
    dry_at: AtomicU64,
    /// Depths of the nodes that are making the first chunk of an answer now.
    pressing: Mutex<Vec<u32>>,
    eased: Notify,
}

/// A node is making the first chunk of an answer. Dropped, it has made its part.
pub(crate) struct Pressing {
    playback: Arc<Playback>,
    depth: u32,
}

impl Drop for Pressing {
    fn drop(&mut self) {
        let mut all = self.playback.pressing.lock();
        if let Some(at) = all.iter().position(|d| *d == self.depth) {
            all.swap_remove(at);
        }
        drop(all);
        self.playback.eased.notify_waiters();
    }
}

impl Playback {
    /// Audio that answers under `epochs` goes out on `lane` now; with all that was sent, the listener runs dry at
    /// `dry_at`.
    pub fn sent(&self, lane: Lane, epochs: &Epochs, now: Mono, dry_at: Mono) {
        let answers = epochs.of(lane).0.saturating_add(1);
        if self.answered[lane.index()].fetch_max(answers, Ordering::Relaxed) < answers {
            self.first_at[lane.index()].store(now.0, Ordering::Relaxed);
        }
        self.dry_at.store(dry_at.0, Ordering::Relaxed);
    }
    /// What was sent and not played has been thrown away: the listener has nothing more.
    pub fn cleared(&self, now: Mono) {
        self.dry_at.fetch_min(now.0, Ordering::Relaxed);
    }
    /// True if some audio of the answer under `epochs` has gone out on `lane`.
    pub fn answered(&self, lane: Lane, epochs: &Epochs) -> bool {
        self.answered[lane.index()].load(Ordering::Relaxed) > epochs.of(lane).0
    }
    /// When the first audio of the newest answer on `lane` went out.
    pub(crate) fn first_at(&self, lane: Lane) -> Mono {
        Mono(self.first_at[lane.index()].load(Ordering::Relaxed))
    }
    /// Says that the node at `depth` is making the first chunk of an answer.
    pub(crate) fn press(self: &Arc<Self>, depth: u32) -> Pressing {
        self.pressing.lock().push(depth);
        Pressing { playback: self.clone(), depth }
    }
    /// True while a node nearer the listener than `depth` is making the first chunk of an answer.
    pub(crate) fn pressed(&self, depth: u32) -> bool {
        self.pressing.lock().iter().any(|d| *d > depth)
    }
    /// Waits until no node nearer the listener than `depth` is making the first chunk of an answer.
    ///
    /// # Cancel safety
    /// Dropping it only stops the wait.
    pub(crate) async fn eased(&self, depth: u32) {
        loop {
            let mut notified = std::pin::pin!(self.eased.notified());
            // Entered before the look, so that what ends in between is not missed.
            notified.as_mut().enable();
            if !self.pressed(depth) {
                return;
            }
            notified.await;
            // What one node has just given, the next has not taken yet.
            tokio::task::yield_now().await;
        }
    }
    /// When the listener runs out of audio; `None` if nothing was sent yet.
    pub fn dry_at(&self) -> Option<Mono> {
        match self.dry_at.load(Ordering::Relaxed) {
            0 => None,
            ns => Some(Mono(ns)),
        }
    }
}
