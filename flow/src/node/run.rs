//! The loops that run steps: a chain of cheap ones on one task, or a heavy one on the compute pool.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::any::AnyStep;
use super::{NodeError, NodeShared, panic_text};
use crate::edge::{Edge, EdgeRx, RawEvent, Taken, Terminal};
use crate::error::{ErrorKind, RunError};
use crate::port::{Out, Sent};
use crate::{Chunk, Epoch, Lane, Payload, Stamp};

/// One step of a chain, with the edge that leads to the next one (none for the last).
pub(crate) struct Link {
    pub step: Box<dyn AnyStep>,
    pub shared: Arc<NodeShared>,
    pub next: Option<Arc<Edge>>,
}

/// A step whose output is on another lane than its input forgets its stream when a chunk comes that was asked after a
/// newer fence of the output's lane: its input tells it of no such fence.
struct Crossing {
    lane: Option<Lane>,
    seen: Epoch,
}

impl Crossing {
    fn new(rx: &EdgeRx, shared: &NodeShared) -> Self {
        let lane = (rx.edge().spec.lane != shared.lane).then_some(shared.lane);
        Self { lane, seen: shared.lanes.cell(shared.lane).epoch() }
    }
    #[inline]
    fn resets(&mut self, stamp: &Stamp) -> bool {
        let Some(lane) = self.lane else { return false };
        let epoch = stamp.epochs.of(lane);
        let newer = epoch > self.seen;
        self.seen = self.seen.max(epoch);
        newer
    }
}

/// Runs a chain of steps on one task: one chunk goes through all of them before the next is taken. A single step is a
/// chain of one. Between two steps the same rules hold as on an edge: stale chunks die, all are counted.
pub(crate) async fn run_chain(mut rx: EdgeRx, mut links: Vec<Link>, mut out: Out<Payload>) -> Result<(), NodeError> {
    let tail = links.last().map(|l| l.shared.clone());
    let mut chain = Chain::default();
    // Only the last step of a chain can cross: all edges within one are of its input's lane.
    let mut crossing = links.last().map(|l| Crossing::new(&rx, &l.shared));
    let mut last = Stamp::default();
    loop {
        match rx.next_into(&mut chain.current).await {
            Taken::Data => {
                let Some(chunk) = chain.current.last() else { continue };
                if let Some(e) = rx.edge().mismatch(&chunk.payload) {
                    return Err(e.into());
                }
                last = chunk.stamp;
                if let (Some(c), Some(l)) = (&mut crossing, links.last_mut())
                    && c.resets(&last)
                {
                    l.step.fence();
                }
                chain.through(&mut links, 0)?;
                if chain.send(&mut out, tail.as_deref()).await == Sent::Gone {
                    return Ok(());
                }
            }
            Taken::Fence => links.iter_mut().for_each(|l| l.step.fence()),
            Taken::End(Terminal::End) => {
                for i in 0..links.len() {
                    chain.end(&mut links, i, &last)?;
                    chain.through(&mut links, i + 1)?;
                    if chain.send(&mut out, tail.as_deref()).await == Sent::Gone {
                        return Ok(());
                    }
                }
                return Ok(());
            }
            Taken::End(Terminal::Error(e)) => return Err(e.into()),
        }
    }
}

#[derive(Default)]
struct Chain {
    current: Vec<Chunk>,
    next: Vec<Chunk>,
    /// The link whose step runs.
    at: usize,
}

impl Chain {
    /// Takes `current` through the links from `from` on; what comes out is in `current` again. A panic is an error
    /// under the name of the step that panicked, not of the task's first.
    fn through(&mut self, links: &mut [Link], from: usize) -> Result<(), NodeError> {
        match catch_unwind(AssertUnwindSafe(|| self.run(links, from))) {
            Ok(done) => done,
            Err(panic) => {
                let path = links.get(self.at).map_or("", |l| &l.shared.path);
                Err(RunError::new(ErrorKind::Panic, path, panic_text(&*panic)).into())
            }
        }
    }
    fn run(&mut self, links: &mut [Link], from: usize) -> Result<(), NodeError> {
        for (i, link) in links.iter_mut().enumerate().skip(from) {
            self.at = i;
            if self.current.is_empty() {
                return Ok(());
            }
            // Nearly always one: popped, it is moved once and without the bookkeeping of a drain.
            if self.current.len() == 1
                && let Some(chunk) = self.current.pop()
            {
                link.run(chunk, &mut self.next)?;
            } else {
                for chunk in self.current.drain(..) {
                    link.run(chunk, &mut self.next)?;
                }
            }
            link.pass(&mut self.next);
            std::mem::swap(&mut self.current, &mut self.next);
        }
        Ok(())
    }
    /// Ends the step of link `i`; what it held is in `current`.
    fn end(&mut self, links: &mut [Link], i: usize, last: &Stamp) -> Result<(), NodeError> {
        let Some(l) = links.get_mut(i) else { return Ok(()) };
        match catch_unwind(AssertUnwindSafe(|| l.step.end(last, &mut self.current))) {
            Ok(done) => done.map_err(|e| named(e, &l.shared.path))?,
            Err(p) => return Err(RunError::new(ErrorKind::Panic, &l.shared.path, panic_text(&*p)).into()),
        }
        l.pass(&mut self.current);
        Ok(())
    }
    /// Sends what is in `current`, in order.
    async fn send(&mut self, out: &mut Out<Payload>, tail: Option<&NodeShared>) -> Sent {
        if let Some(node) = tail {
            self.current.iter().for_each(|c| node.note_latency(&c.stamp));
        }
        if self.current.len() == 1
            && let Some(sent) = out.try_send_last(&mut self.current)
        {
            return sent;
        }
        for chunk in self.current.drain(..) {
            if out.send_chunk(chunk).await == Sent::Gone {
                return Sent::Gone;
            }
        }
        Sent::Queued
    }
}

impl Link {
    #[inline]
    fn run(&mut self, chunk: Chunk, out: &mut Vec<Chunk>) -> Result<(), NodeError> {
        let probe = &self.shared.probe;
        let done = if probe.step() {
            let start = self.shared.clock.now();
            let done = self.step.step(chunk, out);
            probe.sampled(self.shared.clock.now().since(start));
            done
        } else {
            self.step.step(chunk, out)
        };
        done.map_err(|e| named(e, &self.shared.path))
    }
    /// Applies the rules of the fused edge to what goes to the next step.
    #[inline]
    fn pass(&self, chunks: &mut Vec<Chunk>) {
        if let Some(edge) = &self.next {
            edge.pass_fused(chunks);
        }
    }
}

/// Runs a heavy step: each call on the compute pool, in the order of urgency.
pub(crate) async fn run_step_on_pool(
    mut rx: EdgeRx,
    step: Box<dyn AnyStep>,
    shared: Arc<NodeShared>,
    mut out: Out<Payload>,
) -> Result<(), NodeError> {
    let mut crossing = Crossing::new(&rx, &shared);
    let mut held = Some(step);
    let mut last = Stamp::default();
    loop {
        let event = rx.next().await;
        let Some(mut step) = held.take() else { return Ok(()) };
        let (chunk, ended) = match event {
            RawEvent::Data(chunk) => {
                if let Some(e) = rx.edge().mismatch(&chunk.payload) {
                    return Err(e.into());
                }
                last = chunk.stamp;
                if crossing.resets(&chunk.stamp) {
                    step.fence();
                }
                (Some(chunk), false)
            }
            RawEvent::Fence(_) => {
                step.fence();
                held = Some(step);
                continue;
            }
            RawEvent::End(Terminal::End) => (None, true),
            RawEvent::End(Terminal::Error(e)) => return Err(e.into()),
        };
        let (probe, clock) = (shared.probe.clone(), shared.clock.clone());
        let _working = shared.probe.work();
        let (step, chunks, done) = shared
            .pool
            .run(shared.priority(&last), move || {
                let start = clock.now();
                let mut chunks = Vec::new();
                let done = match chunk {
                    Some(c) => step.step(c, &mut chunks),
                    None => step.end(&last, &mut chunks),
                };
                probe.step();
                probe.busy(clock.now().since(start));
                (step, chunks, done)
            })
            .await?;
        done.map_err(|e| named(e, &shared.path))?;
        for chunk in chunks {
            shared.note_latency(&chunk.stamp);
            if out.send_chunk(chunk).await == Sent::Gone {
                return Ok(());
            }
        }
        if ended {
            return Ok(());
        }
        held = Some(step);
    }
}

/// A step's error under its own node's name, unless it already has one.
fn named(e: NodeError, path: &str) -> NodeError {
    match e.downcast::<RunError>() {
        Ok(e) if !e.node().is_empty() => e,
        Ok(e) => Box::new(RunError::new(e.kind(), path, e.message())),
        Err(e) => Box::new(RunError::with_source(ErrorKind::Node, path, e)),
    }
}
