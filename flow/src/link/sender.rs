//! The sending half of a remote edge.

use std::collections::VecDeque;

use super::Frame;
use crate::credit::Window;
use crate::error::{ErrorKind, RunError};
use crate::{Amount, Chunk, Epoch, Lane, Terminal};

/// What became of a chunk that was offered to a [`Sender`].
#[derive(Debug)]
pub enum Offer {
    /// Send this.
    Frame(Frame),
    /// A fence has ended what it answers; it was dropped.
    Stale,
    /// Nobody takes it: the stream has ended or the receiver has left. It was dropped.
    Gone,
    /// No credit: here it is again, for after the next [`Frame::Limit`].
    Full(Chunk),
}

/// The sender's state: what it may send, and under which epoch.
///
/// It keeps no data. Control frames to be sent wait in a short list ([`Sender::poll`]): at most one fence and one end.
#[derive(Debug)]
pub struct Sender {
    lane: Lane,
    limit: Amount,
    epoch: Epoch,
    window: Window,
    seq: u64,
    ended: bool,
    stopped: bool,
    returned: Amount,
    control: VecDeque<Frame>,
}

impl Sender {
    /// The half of an edge on `lane` that lets `limit` be under way; `epoch` is the lane's when the edge opens.
    pub fn new(lane: Lane, limit: Amount, epoch: Epoch) -> Self {
        Self {
            lane,
            limit,
            epoch,
            window: Window::new(limit),
            seq: 0,
            ended: false,
            stopped: false,
            returned: Amount::ZERO,
            control: VecDeque::new(),
        }
    }
    /// The newest epoch known here.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }
    /// Sent in this epoch and not yet given back by the receiver.
    pub fn used(&self) -> Amount {
        self.window.used()
    }
    /// True once the receiver takes nothing more.
    pub fn stopped(&self) -> bool {
        self.stopped
    }
    /// True once [`Sender::end`] was called.
    pub fn ended(&self) -> bool {
        self.ended
    }
    /// Offers a chunk. One of a newer epoch is news of a fence.
    pub fn offer(&mut self, chunk: Chunk) -> Offer {
        if self.ended || self.stopped {
            return Offer::Gone;
        }
        let epoch = chunk.stamp.epochs.of(self.lane);
        if epoch < self.epoch {
            return Offer::Stale;
        }
        self.fence(epoch);
        if !self.window.take(chunk.amount()) {
            return Offer::Full(chunk);
        }
        let seq = self.seq;
        self.seq += 1;
        Offer::Frame(Frame::Data { epoch, seq, chunk })
    }
    /// The lane is at `epoch` here: older data is void, its credit is back, the peer is told.
    pub fn fence(&mut self, epoch: Epoch) {
        if self.raise(epoch) {
            self.control.retain(|f| !matches!(f, Frame::Fence { .. }));
            // Before an end that waits to be sent: the order does not matter, but costs nothing.
            self.control.push_front(Frame::Fence { epoch });
        }
    }
    fn raise(&mut self, epoch: Epoch) -> bool {
        if epoch <= self.epoch {
            return false;
        }
        self.epoch = epoch;
        self.returned = self.returned.plus(self.window.used());
        self.window = Window::new(self.limit);
        self.seq = 0;
        true
    }
    /// Ends the stream; the first terminal is the only one. True if it was this one.
    pub fn end(&mut self, terminal: Terminal) -> bool {
        if self.ended {
            return false;
        }
        self.ended = true;
        self.control.push_back(Frame::End { epoch: self.epoch, count: self.seq, terminal });
        true
    }
    /// Takes in a frame of the receiver.
    ///
    /// # Errors
    /// If it is one that a receiver never sends: the peer is broken, and the stream with it.
    pub fn on(&mut self, frame: Frame) -> Result<(), RunError> {
        match frame {
            Frame::Limit { epoch, allowed } => {
                // A limit of an epoch not heard of yet has overtaken its fence.
                self.fence(epoch);
                if epoch == self.epoch {
                    let before = self.window.used();
                    // Never more than a whole window beyond what was sent, whatever the peer says.
                    let most = self.window.sent().plus(self.window.limit());
                    let allowed = Amount {
                        items: allowed.items.min(most.items),
                        bytes: allowed.bytes.min(most.bytes),
                        span: allowed.span.min(most.span),
                    };
                    self.window.grant(allowed);
                    self.returned = self.returned.plus(before.minus(self.window.used()));
                }
                Ok(())
            }
            Frame::Fence { epoch } => {
                // Announced back, so that the receiver's end knows that nothing older follows.
                self.fence(epoch);
                Ok(())
            }
            Frame::Stop => {
                self.stop();
                Ok(())
            }
            f @ (Frame::Data { .. } | Frame::End { .. }) => {
                let text = format!("got a {} frame from the receiving side", f.name());
                Err(RunError::new(ErrorKind::Protocol, "", text))
            }
        }
    }
    /// The receiver takes nothing more, or is lost: all credit is back.
    pub fn stop(&mut self) {
        if !std::mem::replace(&mut self.stopped, true) {
            self.returned = self.returned.plus(self.window.used());
            self.window = Window::new(self.limit);
        }
    }
    /// The next control frame to send.
    pub fn poll(&mut self) -> Option<Frame> {
        self.control.pop_front()
    }
    /// The next control frame to send, left in place until [`Sender::poll`].
    pub fn peek(&self) -> Option<&Frame> {
        self.control.front()
    }
    /// What came back since this was last asked: its credit is free again at the producer.
    pub fn take_returned(&mut self) -> Amount {
        std::mem::replace(&mut self.returned, Amount::ZERO)
    }
}
