//! What a running node has: its ports, its lanes, the clock and the compute pool.

use std::sync::Arc;

use super::budget::Watched;
use super::lead::Lead;
use super::{Admission, NodeError};
use crate::edge::{EdgeRx, EdgeTx};
use crate::lanes::Lanes;
use crate::playback::Playback;
use crate::pool::{Class, Pool, Priority};
use crate::port::{In, Out};
use crate::probe::NodeProbe;
use crate::session::Closing;
use crate::{Clock, Epoch, Item, Lane, Mono, Stamp};

/// The ports of one node instance.
#[derive(Default)]
pub(crate) struct Ports {
    pub inputs: Vec<(String, Option<EdgeRx>)>,
    pub outputs: Vec<(String, Option<Vec<EdgeTx>>)>,
}

/// What the parts of one running node share.
pub(crate) struct NodeShared {
    /// `graph/node`
    pub path: String,
    pub lane: Lane,
    pub fences: Option<Lane>,
    pub depth: usize,
    pub seed: u64,
    pub session: u64,
    pub lanes: Arc<Lanes>,
    pub clock: Clock,
    pub playback: Arc<Playback>,
    pub pool: Pool,
    pub probe: Arc<NodeProbe>,
    pub lead: Lead,
    pub closing: Arc<Closing>,
    /// Of a stage that works on few streams at once.
    pub admission: Option<Arc<Admission>>,
    /// Nobody waits for what this node makes.
    pub background: bool,
}

/// A port that a node asked for and does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{node} has no {side} `{port}` left to take: {reason}")]
pub struct PortError {
    node: String,
    side: &'static str,
    port: String,
    reason: &'static str,
}

/// What a running [`Node`](crate::Node) has.
pub struct Ctx {
    pub(crate) shared: Arc<NodeShared>,
    pub(crate) ports: Ports,
    /// The newest fence of the output lane that the node was told of.
    seen: Epoch,
}

impl Ctx {
    pub(crate) fn new(shared: Arc<NodeShared>, ports: Ports) -> Self {
        let seen = shared.lanes.cell(shared.lane).epoch();
        Self { shared, ports, seen }
    }
    /// Takes the input named `port`.
    ///
    /// # Errors
    /// [`PortError`] if the schema has no such input, if nothing feeds it, or if it was taken.
    pub fn input<T: Item>(&mut self, port: &str) -> Result<In<T>, PortError> {
        let found = self.ports.inputs.iter_mut().find(|(n, _)| n == port);
        let reason = if found.is_none() { "its schema declares none" } else { "it is not fed, or taken already" };
        match found.and_then(|(_, rx)| rx.take()) {
            Some(rx) => Ok(In::new(rx)),
            None => Err(self.no("input", port, reason)),
        }
    }
    /// Takes the input named `port` if something feeds it.
    pub fn optional_input<T: Item>(&mut self, port: &str) -> Option<In<T>> {
        self.input(port).ok()
    }
    /// Takes the output named `port`. One that feeds nothing takes everything.
    ///
    /// # Errors
    /// [`PortError`] if the schema has no such output or it was taken.
    pub fn output<T: Item>(&mut self, port: &str) -> Result<Out<T>, PortError> {
        let found = self.ports.outputs.iter_mut().find(|(n, _)| n == port);
        let reason = if found.is_none() { "its schema declares none" } else { "it was taken already" };
        match found.and_then(|(_, tx)| tx.take()) {
            Some(tx) => Ok(Out::new(tx)),
            None => Err(self.no("output", port, reason)),
        }
    }
    fn no(&self, side: &'static str, port: &str, reason: &'static str) -> PortError {
        PortError { node: self.path().to_owned(), side, port: port.to_owned(), reason }
    }
    /// `graph/node`.
    pub fn path(&self) -> &str {
        &self.shared.path
    }
    /// The engine's clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }
    /// The number of the session, unique in its engine.
    pub fn session(&self) -> u64 {
        self.shared.session
    }
    /// A seed for this node; the same in every session, so that the same input gives the same output. Mix in
    /// [`Ctx::session`] where sessions should differ.
    pub fn seed(&self) -> u64 {
        self.shared.seed
    }
    /// What this session's listener still has to hear.
    pub fn playback(&self) -> &Arc<Playback> {
        &self.shared.playback
    }
    /// The lane of this node's outputs.
    pub fn lane(&self) -> Lane {
        self.shared.lane
    }
    /// A stamp for an input that arrives now: the current epochs, origin now.
    pub fn arrival(&self) -> Stamp {
        Stamp { epochs: self.shared.lanes.epochs(), origin: self.shared.clock.now(), ..Stamp::default() }
    }
    /// Fences the lane that the graph file gave this node (`fences: LANE`): at once, everything older on every edge of
    /// that lane is worthless. Returns the lane and its new epoch, which the node puts on what it emits afterwards
    /// ([`Epochs::with`](crate::Epochs::with)); `None` if the file gave it no lane.
    pub fn fence(&self) -> Option<(Lane, Epoch)> {
        let lane = self.shared.fences?;
        Some((lane, self.shared.lanes.fence(lane)))
    }
    /// Waits for the next fence of this node's output lane.
    ///
    /// # Cancel safety
    /// Dropped while waiting, the fence is reported by the next call.
    pub async fn fenced(&mut self) -> Epoch {
        let e = self.shared.lanes.fenced(self.shared.lane, self.seen).await;
        self.seen = e;
        e
    }
    /// True once the session is to come to its end: a node that makes chunks without an input makes no more and returns.
    pub fn is_closing(&self) -> bool {
        self.shared.closing.asked()
    }
    /// Waits until [`Ctx::is_closing`].
    ///
    /// # Cancel safety
    /// Dropping it only stops the wait.
    pub async fn closing(&self) {
        self.shared.closing.wait().await;
    }
    /// True if a fence of this node's output lane has ended what `stamp` answers: no point in going on.
    pub fn is_stale(&self, stamp: &Stamp) -> bool {
        let lane = self.shared.lane;
        stamp.epochs.of(lane) < self.shared.lanes.cell(lane).epoch()
    }
    /// Runs `f` on the compute pool, for work of more than a millisecond that answers `stamp`.
    ///
    /// # Errors
    /// If `f` panics or the pool is shut down.
    ///
    /// # Cancel safety
    /// Dropped while waiting, `f` is skipped if it has not begun, else it runs to its end and its result is dropped.
    pub async fn offload<R: Send + 'static>(
        &self,
        stamp: &Stamp,
        f: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, NodeError> {
        let probe = self.shared.probe.clone();
        let clock = self.shared.clock.clone();
        let working = probe.work();
        let work = move || {
            let _working = working;
            let watched = Watched::begin(&probe, 1);
            let start = clock.now();
            let out = f();
            drop(watched);
            probe.busy(clock.now().since(start));
            out
        };
        Ok(self.shared.pool.run(self.shared.priority(stamp), work).await?)
    }
}

impl NodeShared {
    /// Notes how long after its input's arrival an output leaves.
    #[inline]
    pub(crate) fn note_latency(&self, stamp: &Stamp) {
        if self.probe.due() {
            self.probe.latency(self.clock.now().since(stamp.origin));
        }
    }
    /// How urgent work that answers `stamp` is: the first audio of an answer, then whose listener runs dry first.
    pub(crate) fn priority(&self, stamp: &Stamp) -> Priority {
        let (epoch, since, depth) = (stamp.epochs.of(self.lane), self.clock.now(), self.depth as u32);
        if self.background {
            return Priority::background(since);
        }
        if !self.playback.answered(self.lane, &stamp.epochs) {
            self.lead.begin(epoch, since);
            return Priority { class: Class::First, depth, deadline: None, since };
        }
        let lead = self.lead.of(epoch, self.playback.first_at(self.lane));
        let deadline = self.playback.dry_at().map(|dry| Mono(dry.0.saturating_sub(lead.as_nanos() as u64)));
        Priority { class: Class::Playing, depth, deadline, since }
    }
}
