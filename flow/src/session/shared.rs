//! What the parts of one session share: its edges, its lanes, who is still running, and how it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use tokio::sync::Notify;

use crate::edge::{Edge, Look, Terminal};
use crate::engine::GraphShared;
use crate::error::{ErrorKind, RunError};
use crate::lanes::Lanes;
use crate::probe::NodeProbe;
use crate::schema::Client;
use crate::session::closing::Closing;
use crate::session::idle::Idle;
use crate::session::progress::Progress;
use crate::session::stats::SessionStats;
use crate::sync::Mutex;
use crate::{Clock, Mono};

/// The middle of a session, held by its nodes' supervisors, its handle and the engine's watchdog.
pub(crate) struct SessionShared {
    pub(crate) id: u64,
    pub(crate) graph: Arc<GraphShared>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) edges: Vec<Arc<Edge>>,
    pub(crate) probes: Vec<Arc<NodeProbe>>,
    pub(crate) clock: Clock,
    pub(crate) closing: Arc<Closing>,
    idle: Mutex<Idle>,
    progress: Mutex<Progress>,
    /// How often the session's owner has said that it is still wanted.
    touched: AtomicU64,
    cancelled: AtomicBool,
    wakers: Vec<Mutex<Option<Waker>>>,
    running: Mutex<Vec<bool>>,
    remaining: AtomicUsize,
    done: Notify,
    error: Mutex<Option<RunError>>,
    /// No node has a task: client's ends joined to client's ends. Then the inputs are what runs.
    relay: bool,
}

impl SessionShared {
    pub(crate) fn new(
        id: u64,
        graph: Arc<GraphShared>,
        lanes: Arc<Lanes>,
        edges: Vec<Arc<Edge>>,
        probes: Vec<Arc<NodeProbe>>,
        closing: Arc<Closing>,
        mut runs: Vec<bool>,
    ) -> Self {
        let relay = !runs.contains(&true);
        if relay {
            runs = graph.plan.nodes.iter().map(|n| n.schema.client == Some(Client::In)).collect();
        }
        let clock = graph.engine.clock.clone();
        Self {
            id,
            lanes,
            edges,
            clock,
            closing,
            idle: Mutex::default(),
            progress: Mutex::default(),
            touched: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            wakers: probes.iter().map(|_| Mutex::new(None)).collect(),
            remaining: AtomicUsize::new(runs.iter().filter(|r| **r).count()),
            running: Mutex::new(runs),
            done: Notify::new(),
            error: Mutex::new(None),
            probes,
            graph,
            relay,
        }
    }
    /// The error to end with, if the session is over.
    pub(crate) fn cancelled(&self) -> Option<RunError> {
        if !self.cancelled.load(Ordering::Acquire) {
            return None;
        }
        let aborted = || RunError::new(ErrorKind::Aborted, "", "the session was aborted");
        Some(self.error.lock().clone().unwrap_or_else(aborted))
    }
    /// Registers the waker of node `index`, to be woken when the session is cancelled.
    pub(crate) fn watch_cancel(&self, index: usize, waker: &Waker) {
        *self.wakers[index].lock() = Some(waker.clone());
    }
    /// Ends the session: the first error given is the one it ends with. Wakes every node, which then lets go.
    pub(crate) fn cancel(&self, error: RunError) {
        self.error.lock().get_or_insert(error);
        if self.cancelled.swap(true, Ordering::AcqRel) {
            return;
        }
        for w in &self.wakers {
            let w = w.lock().take();
            if let Some(w) = w {
                w.wake();
            }
        }
        if self.relay {
            (0..self.wakers.len()).for_each(|i| self.input_ended(i));
        }
    }
    /// Renews the time after which an idle session ends.
    pub(crate) fn touch(&self) {
        self.touched.fetch_add(1, Ordering::Relaxed);
    }
    /// Ends the streams whose consumer has waited past the deadline, by what `looks` saw of each edge: for a deadline that
    /// nobody wrote, only if their producer has had something to do for as long. Each end is a fault of the producer.
    pub(crate) fn check_deadlines(&self, now: Mono, looks: &[Look]) {
        let plan = &self.graph.plan;
        let mut progress = self.progress.lock();
        for (i, node) in plan.nodes.iter().enumerate() {
            let inputs = || node.inputs.iter().flatten().map(|e| &looks[*e]);
            let waits = inputs().any(|l| l.waited.is_some()) && !inputs().any(|l| l.at_work);
            let client = node.schema.client == Some(Client::In);
            progress.look(i, now, waits || client, inputs().fold(0, |all, l| all.wrapping_add(l.taken)));
        }
        for ((edge, look), e) in self.edges.iter().zip(looks).zip(&plan.edges) {
            let Some(deadline) = e.deadline.filter(|d| look.waited.is_some_and(|w| w >= *d)) else { continue };
            // Fused, it is the first of its chain that takes.
            let busy = || progress.stuck(self.graph.head(e.from.0), now) >= deadline;
            if (e.strict || busy()) && edge.expire(deadline) {
                self.probes[e.from.0].fault(ErrorKind::InputTimeout);
            }
        }
    }
    /// Ends the session if it is a client's, and has been idle for as long as it may be; `moved` is what its edges say.
    pub(crate) fn check_idle(&self, now: Mono, moved: u64) {
        let plan = &self.graph.plan;
        let Some(ttl) = plan.session.idle_ttl.filter(|_| plan.nodes.iter().any(|n| n.schema.client.is_some())) else {
            return;
        };
        let moved = moved.wrapping_add(self.touched.load(Ordering::Relaxed));
        let busy = self.probes.iter().any(|p| p.works());
        if self.idle.lock().look(now, moved, busy, ttl) {
            let text = format!("nothing happened for {ttl:?}, the limit of `session.idle-ttl`");
            self.cancel(RunError::new(ErrorKind::Idle, "", text));
        }
    }
    /// The client let go of the input of node `index`. Matters only where inputs are all that runs.
    pub(crate) fn input_ended(&self, index: usize) {
        if self.relay && std::mem::take(&mut self.running.lock()[index]) {
            self.one_less();
        }
    }
    fn one_less(&self) {
        if self.remaining.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.close();
        }
    }
    /// A node's supervisor is done with it.
    pub(crate) fn node_ended(&self, index: usize, error: Option<RunError>) {
        if let Some(e) = error {
            self.count_fault(index, &e);
            // What an optional node's error reaches ends with it, and the session goes on without that branch.
            let plan = &self.graph.plan;
            if plan.nodes[plan.named(e.node()).unwrap_or(index)].required {
                self.cancel(e);
            } else {
                tracing::warn!(session = self.id, error = %e, "a node that is not required ended in error");
            }
        }
        self.running.lock()[index] = false;
        self.one_less();
    }
    /// A node failed and was made anew.
    pub(crate) fn node_restarted(&self, index: usize, error: &RunError) {
        self.count_fault(index, error);
        self.probes[index].restarted();
    }
    /// Counts an error at the node that it names, if that node is on the task of node `index`: what only passed through
    /// is counted where it began.
    fn count_fault(&self, index: usize, error: &RunError) {
        let begun = self.graph.plan.named(error.node());
        if let Some(n) = begun.filter(|n| self.graph.chain(index).contains(n)) {
            self.probes[n].fault(error.kind());
        }
    }
    /// No node runs any more: whatever stream is still open ends now.
    pub(crate) fn close(&self) {
        let end = match self.error() {
            Some(e) => Terminal::Error(e),
            None => Terminal::End,
        };
        for e in &self.edges {
            e.finish(end.clone());
        }
        self.graph.totals.ended(self.error().as_ref());
        self.done.notify_waiters();
    }
    /// How it ended, or the first error so far.
    pub(crate) fn error(&self) -> Option<RunError> {
        self.error.lock().clone()
    }
    pub(crate) fn ended(&self) -> bool {
        self.remaining.load(Ordering::Acquire) == 0
    }
    /// Waits until no node runs any more.
    pub(crate) async fn ended_wait(&self) {
        loop {
            let wait = self.done.notified();
            if self.ended() {
                return;
            }
            wait.await;
        }
    }
    /// Names of the nodes that still run.
    pub(crate) fn still_running(&self) -> Vec<String> {
        let running = self.running.lock();
        let nodes = &self.graph.plan.nodes;
        nodes.iter().zip(&*running).filter(|(_, r)| **r).map(|(n, _)| n.name.clone()).collect()
    }
    /// All figures of the session now.
    pub(crate) fn stats(&self) -> SessionStats {
        let now = self.clock.now();
        SessionStats {
            id: self.id,
            edges: self.edges.iter().map(|e| e.stats(now)).collect(),
            nodes: self.probes.iter().zip(&self.graph.plan.nodes).map(|(p, n)| p.stats(&n.name)).collect(),
        }
    }
}

impl Drop for SessionShared {
    fn drop(&mut self) {
        let stats = self.stats();
        self.graph.totals.gone(&stats.edges, &stats.nodes, &self.lanes.epochs());
    }
}
