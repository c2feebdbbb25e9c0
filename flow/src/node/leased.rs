//! The loop that runs one session's slot of a shared stage.
//!
//! One input at a time: the next is taken when the stage has nothing left to do for this stream, so that what waits,
//! waits on the edge, where it is bounded. Room on the output is reserved before each unit of work, so that nothing is
//! made that cannot be sent. A stage of several outputs waits for room on the first alone; what it gives goes to the
//! first that takes its medium.

use std::sync::Arc;
use std::time::Duration;

use super::admission::{Admitted, UNUSED};
use super::{NodeError, NodeShared};
use crate::edge::{EdgeRx, RawEvent, Terminal};
use crate::error::{ErrorKind, RunError};
use crate::lanes::Lanes;
use crate::playback::Pressing;
use crate::pool::Class;
use crate::port::{Out, Permit, Sent};
use crate::shared::{Advance, AnyLeased, StageError};
use crate::{Amount, Chunk, Lane, MediaTime, Medium, Payload, Stamp};

pub(crate) async fn run_leased(
    rx: EdgeRx,
    leased: Box<dyn AnyLeased>,
    shared: Arc<NodeShared>,
    outs: Vec<(Medium, Out<Payload>)>,
) -> Result<(), NodeError> {
    let lanes = [rx.edge().spec.lane, shared.lane];
    if shared.admission.is_some() {
        // One that is made anew has lost the place of the one before.
        rx.shut();
    }
    let mut outs = outs.into_iter();
    let (first, out) = outs.next().unwrap_or((Medium::Any, Out::new(Vec::new())));
    let others = outs.filter(|(takes, _)| *takes != first).collect();
    Runner { rx, leased, shared, out, others, lanes, stamp: Stamp::default(), place: None }.run().await
}

struct Runner {
    rx: EdgeRx,
    leased: Box<dyn AnyLeased>,
    shared: Arc<NodeShared>,
    /// The first output: without a reader of it the work ends.
    out: Out<Payload>,
    /// The outputs of other media.
    others: Vec<(Medium, Out<Payload>)>,
    /// Of the input and of the output.
    lanes: [Lane; 2],
    /// What the work in hand answers.
    stamp: Stamp,
    /// Where the stage works on few streams at once: this one's place among them.
    place: Option<Admitted>,
}

/// What ended a stretch of work.
enum Worked {
    /// Nothing is left to do until the next input.
    Idle,
    /// Nobody reads any more.
    Gone,
}

impl Runner {
    async fn run(mut self) -> Result<(), NodeError> {
        loop {
            let more = match self.next().await? {
                RawEvent::Data(chunk) => {
                    if let Some(e) = self.rx.edge().mismatch(&chunk.payload) {
                        return Err(e.into());
                    }
                    self.stamp = chunk.stamp;
                    let more = self.leased.input(&self.stamp, chunk.payload);
                    more.map_err(|e| self.named(e))?
                }
                RawEvent::Fence(_) => {
                    self.reset().await?;
                    self.leave();
                    continue;
                }
                RawEvent::End(Terminal::End) => {
                    if self.leased.end().map_err(|e| self.named(e))? {
                        self.work().await?;
                    }
                    return Ok(());
                }
                RawEvent::End(Terminal::Error(e)) => return Err(e.into()),
            };
            if more && matches!(self.work().await?, Worked::Gone) {
                return Ok(());
            }
            if self.stamp.last {
                self.leave();
            }
        }
    }

    /// The next event, for a stream that has a place.
    async fn next(&mut self) -> Result<RawEvent, NodeError> {
        if self.shared.admission.is_none() {
            return Ok(self.rx.next().await);
        }
        loop {
            if self.place.is_none() {
                self.rx.wanted().await;
                self.enter().await?;
            }
            if let Some(event) = self.shared.clock.timeout(UNUSED, self.rx.next()).await {
                return Ok(event);
            }
            self.leave();
        }
    }
    /// Waits for a place, then lets chunks come.
    async fn enter(&mut self) -> Result<(), NodeError> {
        let Some(admission) = self.shared.admission.clone() else { return Ok(()) };
        // Its session has something to do, though nothing moves.
        let _waits = self.shared.probe.work();
        let entered = match self.rx.edge().spec.deadline {
            Some(most) => self.shared.clock.timeout(most, admission.enter()).await,
            None => Some(admission.enter().await),
        };
        let Some(place) = entered else {
            let (most, limit) = (admission.most(), self.rx.edge().spec.deadline.unwrap_or_default());
            let text =
                format!("{most} other streams were worked on for {limit:?}: raise `active-streams`, or try later");
            return Err(RunError::new(ErrorKind::Exhausted, &self.shared.path, text).into());
        };
        self.place = place;
        self.rx.open();
        Ok(())
    }
    /// Gives the place to the stream that has waited longest, and lets no chunk come meanwhile.
    fn leave(&mut self) {
        if self.place.take().is_some() {
            self.rx.shut();
        }
    }

    /// Runs units until there is nothing left to do, a fence ends the work, or nobody reads.
    async fn work(&mut self) -> Result<Worked, NodeError> {
        loop {
            let permit = match self.room().await? {
                Some(Ok(permit)) => permit,
                Some(Err(Sent::Gone)) => return Ok(Worked::Gone),
                // What the work answers is over.
                Some(Err(_)) | None => {
                    self.reset().await?;
                    return Ok(Worked::Idle);
                }
            };
            let advanced = {
                let fenced = fenced(&self.shared.lanes, self.lanes, &self.stamp);
                tokio::select! {
                    biased;
                    () = fenced => None,
                    a = unit(&self.shared, &self.stamp, &mut *self.leased) => Some(a),
                }
            };
            let Some(advanced) = advanced else {
                drop(permit);
                self.reset().await?;
                return Ok(Worked::Idle);
            };
            let (advance, pressing) = advanced.map_err(|e| self.named(e))?;
            self.shared.probe.step();
            self.shared.probe.unit(advance.took);
            let delivered = self.deliver(permit, advance.outputs).await;
            drop(pressing);
            if delivered == Sent::Gone {
                return Ok(Worked::Gone);
            }
            if !advance.more {
                return Ok(Worked::Idle);
            }
        }
    }

    /// Waits for room for one output; `None` if a fence ended the work. Who waits long gives its place up meanwhile.
    async fn room(&mut self) -> Result<Option<Result<Permit<Payload>, Sent>>, NodeError> {
        loop {
            let room = {
                let fenced = fenced(&self.shared.lanes, self.lanes, &self.stamp);
                let reserve = self.out.reserve(&self.stamp, Amount::one(0, MediaTime::ZERO));
                let reserve = async {
                    if self.place.is_some() {
                        self.shared.clock.timeout(UNUSED, reserve).await
                    } else {
                        Some(reserve.await)
                    }
                };
                tokio::select! {
                    biased;
                    () = fenced => return Ok(None),
                    r = reserve => r,
                }
            };
            let Some(room) = room else {
                self.leave();
                continue;
            };
            if room.is_ok() && self.shared.admission.is_some() && self.place.is_none() {
                // Whoever waits for a place holds no room; there is some again when it comes.
                drop(room);
                self.enter().await?;
                continue;
            }
            return Ok(Some(room));
        }
    }

    async fn deliver(&mut self, permit: Permit<Payload>, outputs: Vec<(Stamp, Payload)>) -> Sent {
        let mut permit = Some(permit);
        for (stamp, payload) in outputs {
            self.shared.probe.latency(self.shared.clock.now().since(stamp.origin));
            let medium = payload.medium();
            if let Some((_, other)) = self.others.iter_mut().find(|(takes, _)| *takes == medium) {
                if other.send_chunk(Chunk { stamp, payload }).await == Sent::Stale {
                    return Sent::Stale;
                }
                continue;
            }
            let sent = match permit.take() {
                Some(p) => p.send(&stamp, payload),
                None => self.out.send_chunk(Chunk { stamp, payload }).await,
            };
            if sent != Sent::Queued {
                return sent;
            }
        }
        Sent::Queued
    }

    async fn reset(&mut self) -> Result<(), NodeError> {
        self.leased.fence().await.map_err(|e| self.named(e))
    }

    fn named(&self, e: StageError) -> NodeError {
        let kind = match &e {
            StageError::Panicked { .. } => ErrorKind::Panic,
            StageError::WrongKind { .. } => ErrorKind::Format,
            _ => ErrorKind::Node,
        };
        match e {
            StageError::Panicked { message } => RunError::new(kind, &self.shared.path, message).into(),
            e => RunError::with_source(kind, &self.shared.path, e).into(),
        }
    }
}

/// The longest that a unit lets nodes nearer the listener go before it.
const MOST_HELD: Duration = Duration::from_millis(500);

/// One unit of work. On the way to an answer's first chunk, it waits while a node of this session that is nearer the
/// listener works on that chunk, even if a core is free: heavy models share the memory's bandwidth, and what this unit
/// would make is not wanted yet. What is returned beside the result says to others that this node works on it; keep it
/// until the result has been sent.
async fn unit(
    shared: &NodeShared,
    stamp: &Stamp,
    leased: &mut dyn AnyLeased,
) -> Result<(Advance<Payload>, Option<Pressing>), StageError> {
    let (playback, depth) = (&shared.playback, shared.depth as u32);
    let first = |shared: &NodeShared| shared.priority(stamp).class == Class::First;
    if first(shared) && playback.pressed(depth) {
        shared.clock.timeout(MOST_HELD, playback.eased(depth)).await;
    }
    let _working = shared.probe.work();
    let pressing = first(shared).then(|| playback.press(depth));
    let advance = leased.advance(shared.priority(stamp)).await?;
    Ok((advance, pressing))
}

/// Waits until a fence of one of `lanes` has ended what `stamp` answers.
async fn fenced(lanes: &Lanes, [input, output]: [Lane; 2], stamp: &Stamp) {
    tokio::select! {
        _ = lanes.fenced(input, stamp.epochs.of(input)) => {}
        _ = lanes.fenced(output, stamp.epochs.of(output)) => {}
    }
}
