//! An in-process edge that goes on over a carrier into another in-process edge.
//!
//! The producer's edge keeps the credit of the whole way: what is taken from it to be sent is given back only when the
//! far consumer lets go of it, so both edges and the carrier together hold one window. A fence of the lane on either
//! side reaches the other; what it makes worthless is cut wherever it is.

use std::future::pending;
use std::sync::Arc;

use super::{Frame, Offer, Received, Receiver, Sender};
use crate::carrier::{Carrier, CarrierLost};
use crate::edge::{Edge, EdgeTx, Stop};
use crate::error::{ErrorKind, RunError};
use crate::{Amount, Chunk, Epoch, Event, In, Out, Payload};

/// Sends all that comes out of `input` over `carrier`, until the stream has ended and the far side has it, or nobody
/// there takes it any more.
///
/// # Errors
/// The link's own: the peer is lost or broke the protocol. The producer then sees that nobody reads.
///
/// # Cancel safety
/// Dropped, the stream is over on both sides: the far one ends with an error.
pub async fn bridge_tx<C: Carrier>(input: In<Payload>, carrier: C) -> Result<(), RunError> {
    let edge = input.edge().clone();
    input.hold_credit();
    let sender = Sender::new(edge.spec.lane, edge.spec.limit, Epoch::default());
    let mut b = TxBridge { input, edge, sender, hand: None, data: None, cut: Epoch::default() };
    let result = b.run(&carrier).await;
    if let Err(e) = &result {
        b.edge.break_off(e.clone());
    }
    result
}

struct TxBridge {
    input: In<Payload>,
    edge: Arc<Edge>,
    sender: Sender,
    /// Taken from the edge, waits for the far side's credit.
    hand: Option<Chunk>,
    /// Has credit, waits for the data path.
    data: Option<Frame>,
    cut: Epoch,
}

impl TxBridge {
    async fn run<C: Carrier>(&mut self, carrier: &C) -> Result<(), RunError> {
        let cell = self.edge.cell().clone();
        loop {
            self.sender.fence(cell.epoch());
            self.settle(carrier);
            if self.sender.stopped() {
                return Ok(());
            }
            let control = self.sender.peek().cloned();
            let seen = self.sender.epoch();
            let take = self.hand.is_none() && self.data.is_none() && !self.sender.ended();
            tokio::select! {
                biased;
                got = carrier.recv() => match got {
                    Ok(frame) => self.sender.on(frame).map_err(|e| self.broke(e.kind(), e.message()))?,
                    Err(lost) => return self.lost(&lost),
                },
                sent = send(carrier, control) => match sent {
                    Ok(()) => drop(self.sender.poll()),
                    Err(lost) => return self.lost(&lost),
                },
                epoch = cell.fenced(seen) => self.sender.fence(epoch),
                sent = send(carrier, self.data.clone()) => match sent {
                    Ok(()) => self.data = None,
                    Err(lost) => return self.lost(&lost),
                },
                event = self.input.next(), if take => match event {
                    Event::Data(stamp, payload) => self.hand = Some(Chunk { stamp, payload }),
                    Event::Fence(epoch) => self.sender.fence(epoch),
                    Event::End(t) => drop(self.sender.end(t)),
                },
            }
        }
    }

    /// Drops what is stale, offers what is in hand, gives back what credit has returned.
    fn settle<C: Carrier>(&mut self, carrier: &C) {
        if matches!(&self.data, Some(Frame::Data { epoch, .. }) if *epoch < self.sender.epoch()) {
            self.data = None;
        }
        if self.data.is_none() {
            if let Some(chunk) = self.hand.take() {
                let amount = chunk.amount();
                match self.sender.offer(chunk) {
                    Offer::Frame(f) => self.data = Some(f),
                    Offer::Full(c) => self.hand = Some(c),
                    Offer::Stale | Offer::Gone => self.input.release(amount),
                }
            }
        } else if let Some(c) = self.hand.take_if(|c| c.stamp.epochs.of(self.edge.spec.lane) < self.sender.epoch()) {
            self.input.release(c.amount());
        }
        if self.sender.epoch() > self.cut {
            self.cut = self.sender.epoch();
            carrier.cut(self.cut);
            // Before any credit is back: who waits here for room in an old turn must find it stale.
            self.edge.cell().raise(self.cut);
        }
        let back = self.sender.take_returned();
        if back != Amount::ZERO {
            self.input.release(back);
        }
    }

    fn broke(&self, kind: ErrorKind, text: &str) -> RunError {
        RunError::new(kind, &self.edge.spec.to, format!("the link of {} broke: {text}", self.edge.spec.name))
    }
    fn lost(&self, lost: &CarrierLost) -> Result<(), RunError> {
        // All was sent, the terminal too: the peer may leave first.
        if self.sender.ended() && self.data.is_none() && self.sender.peek().is_none() {
            return Ok(());
        }
        Err(self.broke(ErrorKind::PeerLost, &lost.reason))
    }
}

async fn send<C: Carrier>(carrier: &C, frame: Option<Frame>) -> Result<(), CarrierLost> {
    match frame {
        Some(f) => carrier.send(f).await,
        None => pending().await,
    }
}

/// Puts all that comes over `carrier` into `output`, which must feed exactly one edge, until its terminal is in or its
/// consumer has left.
///
/// # Errors
/// The link's own: the peer is lost or broke the protocol. The consumer ends with the same error.
///
/// # Cancel safety
/// Dropped, the stream is over on both sides: the consumer ends with an error, the far producer sees that nobody reads.
pub async fn bridge_rx<C: Carrier>(output: Out<Payload>, carrier: C) -> Result<(), RunError> {
    let tx = output.into_single().map_err(|n| {
        RunError::new(ErrorKind::Node, "", format!("a link feeds one edge, this output feeds {n}: bridge each of them"))
    })?;
    let edge = tx.edge().clone();
    let receiver = Receiver::new(edge.spec.lane, edge.spec.limit, Epoch::default(), &edge.spec.from);
    let counted = receiver.epoch();
    RxBridge { tx, edge, receiver, pushed: Amount::ZERO, before: Amount::ZERO, counted }.run(&carrier).await
}

struct RxBridge {
    tx: EdgeTx,
    edge: Arc<Edge>,
    receiver: Receiver,
    /// Put into the edge in all, and before the epoch `counted`.
    pushed: Amount,
    before: Amount,
    counted: Epoch,
}

impl RxBridge {
    async fn run<C: Carrier>(&mut self, carrier: &C) -> Result<(), RunError> {
        let cell = self.edge.cell().clone();
        let mut control: Option<Frame> = None;
        let mut lost = false;
        loop {
            self.receiver.fence(cell.epoch());
            if self.receiver.epoch() > self.counted {
                self.counted = self.receiver.epoch();
                self.before = self.pushed;
                carrier.cut(self.counted);
            }
            let gone = self.deliver();
            if gone || self.receiver.done() {
                if !lost {
                    // If the peer is lost by now, it needs no word.
                    let _ = carrier.send(Frame::Stop).await;
                }
                return self.receiver.fault().map_or(Ok(()), |e| Err(e.clone()));
            }
            let freed = self.edge.released();
            self.receiver.released(freed.minus(self.before));
            if control.is_none() && !lost {
                control = self.receiver.control();
            }
            let seen = self.receiver.epoch();
            tokio::select! {
                biased;
                got = carrier.recv(), if !lost => match got {
                    Ok(frame) => self.receiver.on(frame),
                    Err(e) => {
                        lost = true;
                        control = None;
                        self.receiver.lost(&e.reason);
                    }
                },
                sent = send(carrier, control.clone()) => {
                    // A carrier that fails to send fails to receive as well, and there it is handled.
                    control = None;
                    drop(sent);
                }
                epoch = cell.fenced(seen) => self.receiver.fence(epoch),
                () = self.tx.released_past(freed) => {}
            }
        }
    }

    /// Gives out what has arrived; true if nobody takes it.
    fn deliver(&mut self) -> bool {
        while let Some(next) = self.receiver.peek() {
            match next {
                Received::Fence(epoch) => self.edge.cell().raise(epoch),
                Received::Data(chunk) => {
                    let amount = chunk.amount();
                    match self.tx.try_send(chunk) {
                        Ok(()) => self.pushed = self.pushed.plus(amount),
                        Err(Ok(Stop::Stale)) => {}
                        Err(Ok(Stop::Gone)) => return true,
                        // The consumer still holds credit of an epoch before: later.
                        Err(Err(_)) => return false,
                    }
                }
                Received::End(t) => drop(match self.receiver.fault() {
                    Some(e) => self.edge.break_off(e.clone()),
                    None => self.tx.finish(t),
                }),
            }
            self.receiver.poll();
        }
        self.edge.abandoned()
    }
}
