//! What an edge is, without waiting: its queue, credit, fence and terminal.
//!
//! Pure state under one lock. Every decision about a chunk is made here, by the chunk in hand, so that it cannot be
//! overtaken: an epoch read before the lock would let a chunk of the new turn out before its fence.

use std::collections::VecDeque;

use super::EdgeCounts;
use crate::credit::Window;
use crate::error::RunError;
use crate::{Amount, Chunk, Epoch, Lane, Policy};

/// How a stream ends.
#[derive(Clone, Debug)]
pub enum Terminal {
    /// All was delivered.
    End,
    /// It broke.
    Error(RunError),
}

/// What became of a chunk that was offered.
#[derive(Debug)]
pub(crate) enum Push {
    /// It is in the queue.
    Queued,
    /// It answers something that is over; it was dropped.
    Stale,
    /// Nobody will read it; it was dropped.
    Gone,
    /// There is no room: here it is again.
    Full(Chunk),
}

/// What the receiver gets next.
#[derive(Debug)]
pub(crate) enum Pop {
    Data(Chunk),
    Fence(Epoch),
    End(Terminal),
    Empty,
}

pub(crate) struct State {
    lane: Lane,
    policy: Policy,
    queue: VecDeque<Chunk>,
    pub(crate) window: Window,
    /// Credit taken by a permit that has not been used yet.
    reserved: Amount,
    /// The newest fence that the receiver was told of.
    seen: Epoch,
    seq: u64,
    terminal: Option<Terminal>,
    terminal_taken: bool,
    receiver_gone: bool,
    /// Chunks that a lossy policy dropped since the receiver last asked.
    missed: u64,
    /// The receiver returns credit itself, when the media has been played.
    pub(crate) manual: bool,
    pub(crate) counts: EdgeCounts,
}

impl State {
    pub(crate) fn new(lane: Lane, limit: Amount, policy: Policy, epoch: Epoch) -> Self {
        Self {
            lane,
            policy,
            queue: VecDeque::new(),
            window: Window::new(limit),
            reserved: Amount::ZERO,
            seen: epoch,
            seq: 0,
            terminal: None,
            terminal_taken: false,
            receiver_gone: false,
            missed: 0,
            manual: false,
            counts: EdgeCounts::default(),
        }
    }

    #[inline]
    fn stale(&self, c: &Chunk, epoch: Epoch) -> bool {
        c.stamp.epochs.of(self.lane) < epoch
    }
    /// True if no chunk can be delivered any more.
    pub(crate) fn closed(&self) -> bool {
        self.receiver_gone || self.terminal.is_some()
    }
    pub(crate) fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }
    pub(crate) fn abandoned(&self) -> bool {
        self.receiver_gone
    }
    /// All credit that was ever given back.
    pub(crate) fn released(&self) -> Amount {
        self.window.allowed().minus(self.window.limit())
    }
    pub(crate) fn depth(&self) -> usize {
        self.queue.len()
    }
    pub(crate) fn queued(&self) -> Amount {
        self.queue.iter().fold(Amount::ZERO, |a, c| a.plus(c.amount()))
    }
    pub(crate) fn front(&self) -> Option<&Chunk> {
        self.queue.front()
    }
    pub(crate) fn take_missed(&mut self) -> u64 {
        std::mem::take(&mut self.missed)
    }

    /// Why a chunk cannot enter whatever the room, counted: nobody reads, or it answers something that is over.
    #[inline]
    fn refuses(&mut self, chunk: &Chunk, epoch: Epoch) -> Option<Push> {
        if self.closed() {
            self.counts.closed += 1;
            return Some(Push::Gone);
        }
        if self.stale(chunk, epoch) {
            self.counts.stale += 1;
            return Some(Push::Stale);
        }
        None
    }

    /// Offers a chunk; `epoch` is the lane's, read under the lock.
    pub(crate) fn push(&mut self, mut chunk: Chunk, epoch: Epoch, dead: &mut Vec<Chunk>) -> Push {
        if let Some(refused) = self.refuses(&chunk, epoch) {
            dead.push(chunk);
            return refused;
        }
        let amount = chunk.amount();
        if !self.window.take(amount) {
            // The sender notices first: what is stale in the queue must not hold up the new turn.
            self.sweep(epoch, dead);
            while !self.window.admits(amount) {
                match self.policy {
                    Policy::Wait => return Push::Full(chunk),
                    Policy::DropOldest => {
                        let Some(old) = self.queue.pop_front() else { return Push::Full(chunk) };
                        self.lose(old, dead);
                    }
                    Policy::Latest => {
                        let Some(old) = self.queue.pop_front() else { return Push::Full(chunk) };
                        self.lose(old, dead);
                        while let Some(old) = self.queue.pop_front() {
                            self.lose(old, dead);
                        }
                    }
                }
            }
            self.window.charge(amount);
        } else if self.policy == Policy::Latest {
            while let Some(old) = self.queue.pop_front() {
                self.lose(old, dead);
            }
        }
        self.accept(&mut chunk, amount);
        self.queue.push_back(chunk);
        Push::Queued
    }

    fn accept(&mut self, chunk: &mut Chunk, amount: Amount) {
        chunk.stamp.seq = self.seq;
        self.seq += 1;
        self.counts.chunks += 1;
        self.counts.bytes += amount.bytes;
        self.counts.depth_high = self.counts.depth_high.max(self.queue.len() as u64 + 1);
        let used = self.window.used();
        self.counts.bytes_high = self.counts.bytes_high.max(used.bytes);
        self.counts.span_high = self.counts.span_high.max(used.span);
    }

    /// Counts and numbers chunks that go to the consumer without being queued; drops the stale ones.
    pub(crate) fn pass(&mut self, chunks: &mut Vec<Chunk>, epoch: Epoch) {
        let before = chunks.len();
        let lane = self.lane;
        chunks.retain(|c| c.stamp.epochs.of(lane) >= epoch);
        self.counts.stale += (before - chunks.len()) as u64;
        for c in chunks {
            c.stamp.seq = self.seq;
            self.seq += 1;
            self.counts.chunks += 1;
            self.counts.bytes += c.payload.bytes() as u64;
        }
    }

    fn lose(&mut self, old: Chunk, dead: &mut Vec<Chunk>) {
        self.window.release(old.amount());
        self.counts.policy += 1;
        self.missed += 1;
        dead.push(old);
    }

    /// Takes the credit for a chunk of `amount` that will be pushed with [`State::fill`]. `Some(true)` = taken,
    /// `Some(false)` = nobody reads, `None` = no room.
    pub(crate) fn reserve(&mut self, amount: Amount, epoch: Epoch, dead: &mut Vec<Chunk>) -> Option<bool> {
        if self.closed() {
            return Some(false);
        }
        if !self.window.take(amount) {
            self.sweep(epoch, dead);
            if self.policy != Policy::Wait {
                // A lossy edge always has room: what is oldest goes when the chunk comes.
                self.window.charge(amount);
            } else if !self.window.take(amount) {
                return None;
            }
        }
        self.reserved = self.reserved.plus(amount);
        Some(true)
    }
    /// Gives a reservation back.
    pub(crate) fn cancel(&mut self, amount: Amount) {
        self.window.refund(amount);
        self.reserved = self.reserved.minus(amount);
    }
    /// Puts a chunk into the room that was reserved for it; it may have grown by then.
    pub(crate) fn fill(&mut self, amount: Amount, mut chunk: Chunk, epoch: Epoch, dead: &mut Vec<Chunk>) -> Push {
        self.cancel(amount);
        if let Some(refused) = self.refuses(&chunk, epoch) {
            dead.push(chunk);
            return refused;
        }
        let amount = chunk.amount();
        if self.policy != Policy::Wait {
            return self.push(chunk, epoch, dead);
        }
        self.window.charge(amount);
        self.accept(&mut chunk, amount);
        self.queue.push_back(chunk);
        Push::Queued
    }

    /// Takes what comes next: a fence before any newer chunk, a chunk, or, once all are gone, the terminal, once.
    pub(crate) fn pop(&mut self, epoch: Epoch, dead: &mut Vec<Chunk>) -> Pop {
        if self.queue.front().is_some_and(|c| self.stale(c, epoch)) {
            self.sweep(epoch, dead);
        }
        let newest = self.queue.front().map_or(epoch, |c| c.stamp.epochs.of(self.lane).max(epoch));
        if newest > self.seen {
            self.seen = newest;
            return Pop::Fence(newest);
        }
        if let Some(chunk) = self.queue.pop_front() {
            if !self.manual {
                self.window.release(chunk.amount());
            }
            return Pop::Data(chunk);
        }
        match &self.terminal {
            Some(t) if !self.terminal_taken => {
                self.terminal_taken = true;
                Pop::End(t.clone())
            }
            // Asked again after the terminal: it stays ended.
            Some(_) => Pop::End(Terminal::End),
            None => Pop::Empty,
        }
    }

    /// Drops every stale chunk and returns its credit; true if there was any.
    pub(crate) fn sweep(&mut self, epoch: Epoch, dead: &mut Vec<Chunk>) -> bool {
        let lane = self.lane;
        let old = |c: &Chunk| c.stamp.epochs.of(lane) < epoch;
        let n = self.queue.iter().filter(|c| old(c)).count();
        if n == 0 {
            return false;
        }
        let mut back = Amount::ZERO;
        dead.reserve(n);
        // Nearly always all of them: a queue holds one turn. Else the order of those that stay is kept.
        let keep: VecDeque<Chunk> = if n == self.queue.len() {
            VecDeque::new()
        } else {
            let (keep, gone): (VecDeque<_>, VecDeque<_>) = self.queue.drain(..).partition(|c| !old(c));
            self.queue = gone;
            keep
        };
        for c in self.queue.drain(..) {
            back = back.plus(c.amount());
            dead.push(c);
        }
        self.queue.extend(keep);
        self.window.release(back);
        self.counts.stale += n as u64;
        true
    }

    /// Ends the stream, unless it has ended: the first terminal is the only one. True if it was this one.
    pub(crate) fn finish(&mut self, terminal: Terminal) -> bool {
        if self.terminal.is_some() {
            return false;
        }
        self.terminal = Some(terminal);
        true
    }

    /// The receiver went away: nothing that is queued will be read, and what it held will not be played.
    pub(crate) fn abandon(&mut self, dead: &mut Vec<Chunk>) {
        self.receiver_gone = true;
        self.counts.closed += self.queue.len() as u64;
        dead.extend(self.queue.drain(..));
        // All but what a permit still holds, which gives it back itself.
        self.window.release(self.window.used().minus(self.reserved));
    }
}
