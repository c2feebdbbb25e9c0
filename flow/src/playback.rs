//! What the listener still has to hear: the ledger that decides which session's work is most urgent.
//!
//! Whoever hands audio to a player (a playout node, a socket) writes it; the scheduling of shared stages reads it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::{Epochs, Lane, MAX_LANES, Mono};

/// One session's playback, shared by its nodes. All updates are single atomic writes.
#[derive(Debug, Default)]
pub struct Playback {
    /// Per lane: 1 + the newest epoch under which audio has gone out.
    answered: [AtomicU32; MAX_LANES],
    /// When the listener runs dry, in ns of the engine's clock; 0 = nothing was played yet.
    dry_at: AtomicU64,
}

impl Playback {
    /// Audio that answers under `epochs` went out on `lane`; with all that was sent, the listener runs dry at `dry_at`.
    pub fn sent(&self, lane: Lane, epochs: &Epochs, dry_at: Mono) {
        self.answered[lane.index()].fetch_max(epochs.of(lane).0.saturating_add(1), Ordering::Relaxed);
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
    /// When the listener runs out of audio; `None` if nothing was sent yet.
    pub fn dry_at(&self) -> Option<Mono> {
        match self.dry_at.load(Ordering::Relaxed) {
            0 => None,
            ns => Some(Mono(ns)),
        }
    }
}
