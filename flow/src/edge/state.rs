//! What an edge is, without waiting: its queue, credit, fence and terminal.
//!
//! Pure state under one lock. Every decision about a chunk is made here, by the chunk in hand, so that it cannot be
//! overtaken: an epoch read before the lock would let a chunk of the new turn out before its fence.

use std::collections::VecDeque;

use super::EdgeCounts;
use super::gather::Gather;
use crate::credit::Window;
use crate::error::RunError;
use crate::{Amount, Chunk, Epoch, Lane, MediaTime, Policy};

/// How a stream ends.
#[derive(Clone, Debug)]
pub enum Terminal {
    /// All was delivered.
    End,
    /// It broke.
    Error(RunError),
}

/// What comes out of an edge.
#[derive(Debug)]
pub(crate) enum RawEvent {
    Data(Chunk),
    Fence(Epoch),
    End(Terminal),
}

/// What comes out next. A chunk stays where it is: it is moved once, to where the receiver wants it.
#[derive(Debug)]
pub(crate) enum Next {
    Data,
    Fence(Epoch),
    End(Terminal),
    Empty,
}

/// Whether a chunk may enter. If so, its credit is taken.
#[derive(Debug, PartialEq)]
pub(crate) enum Admit {
    Yes(Amount),
    Stale,
    Gone,
    Full,
}

/// What died under the lock, to be dropped outside it.
pub(crate) type Dead = VecDeque<Chunk>;

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
    /// The receiver lets nothing enter now; a sender waits, as without credit.
    pub(crate) gated: bool,
    /// Where the parts of a segment are kept until it is whole.
    gather: Option<Box<Gather>>,
    /// The receiver has taken a chunk and has not asked for more since.
    in_hand: bool,
    /// Credit of chunks that the receiver took ahead. It returns when the receiver asks for more.
    ahead: Amount,
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
            gated: false,
            gather: None,
            in_hand: false,
            ahead: Amount::ZERO,
            counts: EdgeCounts::default(),
        }
    }

    /// From now on segments are handed on whole.
    pub(crate) fn gather(&mut self) {
        self.gather = Some(Box::new(Gather::new(self.window.limit().bytes)));
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
    fn refuses(&mut self, chunk: &Chunk, epoch: Epoch) -> Option<Admit> {
        if self.closed() {
            self.counts.closed += 1;
            return Some(Admit::Gone);
        }
        if self.stale(chunk, epoch) {
            self.counts.stale += 1;
            return Some(Admit::Stale);
        }
        None
    }

    /// Takes credit for a chunk, if it may enter; `epoch` is the lane's, read under the lock.
    #[inline]
    pub(crate) fn admit(&mut self, chunk: &Chunk, epoch: Epoch, dead: &mut Dead) -> Admit {
        if let Some(refused) = self.refuses(chunk, epoch) {
            return refused;
        }
        let amount = match self.due(chunk, epoch, dead) {
            Some(amount) => amount,
            None => return Admit::Yes(Amount::ZERO),
        };
        let room = !self.gated && self.window.take(amount);
        if (room && self.policy != Policy::Latest) || self.make_room(room, amount, epoch, dead) {
            Admit::Yes(amount)
        } else {
            Admit::Full
        }
    }

    /// The credit that `chunk` needs to enter; `None` if it is only kept until its segment is whole.
    #[inline]
    fn due(&mut self, chunk: &Chunk, epoch: Epoch, dead: &mut Dead) -> Option<Amount> {
        if self.gather.is_some() {
            self.drop_kept(epoch, dead);
        }
        match &self.gather {
            None => Some(chunk.amount()),
            Some(g) => g.due(chunk),
        }
    }

    /// Takes credit for `amount` unless it is `taken`, dropping what the policy gives up for it.
    #[cold]
    fn make_room(&mut self, taken: bool, amount: Amount, epoch: Epoch, dead: &mut Dead) -> bool {
        if !taken {
            // The sender notices first: what is stale in the queue must not hold up the new turn.
            self.sweep(epoch, dead);
            while self.gated || !self.window.admits(amount) {
                if self.policy == Policy::Wait || !self.lose_oldest(dead) {
                    return false;
                }
            }
            self.window.charge(amount);
        }
        if self.policy == Policy::Latest {
            while self.lose_oldest(dead) {}
        }
        true
    }

    fn lose_oldest(&mut self, dead: &mut Dead) -> bool {
        let Some(old) = self.queue.pop_front() else { return false };
        self.window.release(old.amount());
        self.counts.policy += 1;
        self.missed += 1;
        dead.push_back(old);
        true
    }

    /// Puts a chunk that was admitted into the queue.
    #[inline]
    pub(crate) fn enqueue(&mut self, chunk: Chunk, amount: Amount) {
        if self.gather.is_some() {
            self.enqueue_kept(chunk, amount);
        } else {
            self.append(chunk, amount);
        }
    }
    /// Keeps a chunk, and with `amount` lets the whole segment go.
    #[cold]
    fn enqueue_kept(&mut self, chunk: Chunk, amount: Amount) {
        let Some(g) = &mut self.gather else { return };
        g.keep(chunk);
        if amount != Amount::ZERO {
            let whole = g.take();
            // Parts that cannot be joined are more items than were asked for.
            self.window
                .charge(Amount { items: whole.len() as u64, ..Amount::ZERO }.minus(Amount::one(0, MediaTime::ZERO)));
            for c in whole {
                let amount = c.amount();
                self.append(c, amount);
            }
        }
    }
    #[inline]
    fn append(&mut self, chunk: Chunk, amount: Amount) {
        let seq = self.seq;
        self.seq += 1;
        self.queue.push_back(chunk);
        if let Some(c) = self.queue.back_mut() {
            c.stamp.seq = seq;
        }
        self.counts.chunks += 1;
        self.counts.bytes += amount.bytes;
        self.counts.depth_high = self.counts.depth_high.max(self.queue.len() as u64);
        let used = self.window.used();
        self.counts.bytes_high = self.counts.bytes_high.max(used.bytes);
        self.counts.span_high = self.counts.span_high.max(used.span);
    }

    /// Takes the credit for a chunk of `amount` that will come with [`State::fill`]. `Some(true)` = taken,
    /// `Some(false)` = nobody reads, `None` = no room.
    pub(crate) fn reserve(&mut self, amount: Amount, epoch: Epoch, dead: &mut Dead) -> Option<bool> {
        if self.closed() {
            return Some(false);
        }
        if self.gated || !self.window.take(amount) {
            self.sweep(epoch, dead);
            if self.policy != Policy::Wait {
                // A lossy edge always has room: what is oldest goes when the chunk comes.
                self.window.charge(amount);
            } else if self.gated || !self.window.take(amount) {
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
    /// Puts a chunk into the room that was reserved for it; it may have grown by then. Never [`Admit::Full`]: on a lossy
    /// edge whose credit is all held by others, it is the chunk that goes.
    pub(crate) fn fill(&mut self, amount: Amount, chunk: Chunk, epoch: Epoch, dead: &mut Dead) -> Admit {
        self.cancel(amount);
        let admit = match self.refuses(&chunk, epoch) {
            Some(refused) => refused,
            None if self.policy == Policy::Wait => {
                let amount = self.due(&chunk, epoch, dead).unwrap_or(Amount::ZERO);
                self.window.charge(amount);
                Admit::Yes(amount)
            }
            None => self.admit(&chunk, epoch, dead),
        };
        match admit {
            Admit::Yes(amount) => self.enqueue(chunk, amount),
            Admit::Full => {
                self.counts.policy += 1;
                self.missed += 1;
                dead.push_back(chunk);
                return Admit::Yes(amount);
            }
            Admit::Stale | Admit::Gone => dead.push_back(chunk),
        }
        admit
    }

    /// What comes next: a fence before any newer chunk, a chunk, or, once all are gone, the terminal, once. The caller has
    /// called [`State::settle`].
    #[inline]
    pub(crate) fn next(&mut self, epoch: Epoch, dead: &mut Dead) -> Next {
        self.in_hand = false;
        self.sweep(epoch, dead);
        let front = self.queue.front().map(|c| c.stamp.epochs.of(self.lane));
        let newest = front.map_or(epoch, |e| e.max(epoch));
        if newest > self.seen {
            self.seen = newest;
            return Next::Fence(newest);
        }
        if front.is_some() {
            return Next::Data;
        }
        match &self.terminal {
            None => Next::Empty,
            Some(t) if !self.terminal_taken => {
                self.terminal_taken = true;
                Next::End(t.clone())
            }
            // Asked again after the terminal: it stays ended.
            Some(_) => Next::End(Terminal::End),
        }
    }

    /// True if [`State::next`] would find something.
    pub(crate) fn has_news(&self, epoch: Epoch) -> bool {
        epoch > self.seen || !self.queue.is_empty() || (self.terminal.is_some() && !self.terminal_taken)
    }

    /// Takes the chunk that [`State::next`] found.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Chunk> {
        if !self.manual {
            let amount = self.queue.front()?.amount();
            self.window.release(amount);
        }
        self.in_hand = true;
        self.queue.pop_front()
    }

    /// After [`State::take`]: takes more chunks of the same turn, up to `most` in all, so that a busy consumer locks once
    /// for many. They count as queued until it asks for more: their credit returns then.
    #[inline]
    pub(crate) fn take_ahead(&mut self, most: Amount, into: &mut VecDeque<Chunk>) {
        while let Some(front) = self.queue.front() {
            let sum = self.ahead.plus(front.amount());
            if front.stamp.epochs.of(self.lane) > self.seen || !sum.fits(most) {
                return;
            }
            self.ahead = sum;
            into.extend(self.queue.pop_front());
        }
    }
    /// Gives back the credit of chunks that were taken ahead. True if there were any.
    #[inline]
    pub(crate) fn settle(&mut self) -> bool {
        let ahead = self.ahead.items > 0;
        if ahead {
            self.window.release(std::mem::take(&mut self.ahead));
        }
        ahead
    }

    /// [`State::next`] and [`State::take`] in one; `None` if there is nothing yet.
    #[cfg(all(test, not(omni_loom)))]
    pub(crate) fn pop(&mut self, epoch: Epoch, dead: &mut Dead) -> Option<RawEvent> {
        self.settle();
        match self.next(epoch, dead) {
            Next::Data => self.take().map(RawEvent::Data),
            Next::Fence(e) => Some(RawEvent::Fence(e)),
            Next::End(t) => Some(RawEvent::End(t)),
            Next::Empty => None,
        }
    }

    /// Drops every stale chunk and returns its credit. Epochs never fall along the queue: a chunk is admitted only if it
    /// is as new as its lane, and the lane is as new as any chunk that was ever offered.
    #[inline]
    pub(crate) fn sweep(&mut self, epoch: Epoch, dead: &mut Dead) {
        if self.queue.front().is_some_and(|c| self.stale(c, epoch)) {
            self.drop_stale(epoch, dead);
        }
        if self.gather.is_some() {
            self.drop_kept(epoch, dead);
        }
    }
    /// The same for the parts of a segment.
    #[cold]
    fn drop_kept(&mut self, epoch: Epoch, dead: &mut Dead) {
        if let Some(g) = &mut self.gather {
            self.counts.stale += g.drop_stale(self.lane, epoch, dead) as u64;
        }
    }

    #[cold]
    fn drop_stale(&mut self, epoch: Epoch, dead: &mut Dead) {
        let lane = self.lane;
        let n = self.queue.partition_point(|c| c.stamp.epochs.of(lane) < epoch);
        self.counts.stale += n as u64;
        let back = if n == self.queue.len() && !self.manual {
            // All that is under way, but for what a permit or the receiver holds.
            self.window.used().minus(self.reserved).minus(self.ahead)
        } else {
            self.queue.iter().take(n).fold(Amount::ZERO, |a, c| a.plus(c.amount()))
        };
        self.window.release(back);
        if n == self.queue.len() && dead.is_empty() {
            std::mem::swap(&mut self.queue, dead);
        } else {
            dead.extend(self.queue.drain(..n));
        }
    }

    /// Ends the stream, unless it has ended: the first terminal is the only one. True if it was this one.
    pub(crate) fn finish(&mut self, terminal: Terminal) -> bool {
        if self.terminal.is_some() {
            return false;
        }
        if !self.receiver_gone {
            // What was made of the last segment is still delivered, whatever the room.
            for c in self.gather.as_mut().map(|g| g.take()).unwrap_or_default() {
                let amount = c.amount();
                self.window.charge(amount);
                self.append(c, amount);
            }
        }
        self.terminal = Some(terminal);
        true
    }

    /// The receiver is gone and another one comes. What was taken and not given back is lost with the first; what is
    /// queued waits for the second. How many chunks were lost: all whose credit was held, else the one taken last, if no
    /// more were asked for since. What the first has given up is at its end for the second too.
    pub(crate) fn reopen(&mut self) -> u64 {
        if self.receiver_gone {
            self.finish(Terminal::End);
        }
        let held = self.window.used().minus(self.reserved).minus(self.queued());
        self.window.release(held);
        let lost = if self.manual { held.items } else { u64::from(self.in_hand) + self.ahead.items };
        (self.manual, self.in_hand, self.ahead) = (false, false, Amount::ZERO);
        self.counts.lost += lost;
        lost
    }
    /// True if the receiver was told that the stream broke.
    pub(crate) fn broke(&self) -> bool {
        self.terminal_taken && matches!(self.terminal, Some(Terminal::Error(_)))
    }

    /// The receiver went away: nothing that is queued will be read, and what it held will not be played.
    pub(crate) fn abandon(&mut self, dead: &mut Dead) {
        self.receiver_gone = true;
        self.counts.closed += self.queue.len() as u64 + self.ahead.items;
        self.ahead = Amount::ZERO;
        dead.extend(self.queue.drain(..));
        // All but what a permit still holds, which gives it back itself.
        self.window.release(self.window.used().minus(self.reserved));
    }
}
