//! The engine: one per process. It owns the clock, the compute pool and the watchdog, and starts graphs.

mod graph;
mod spawner;
mod watchdog;

pub(crate) use graph::GraphShared;
pub use graph::{Graph, StartError};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::pool::{Pool, PoolConfig, PoolError};
use crate::session::{ABORT_TIMEOUT, SessionShared};
use crate::sim::SimHandle;
use crate::{Clock, Plan};
use spawner::Spawner;
use watchdog::Watchdog;

/// What runs graphs. Cheap to clone; the last clone and the last graph to go stop its threads.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<EngineShared>);

pub(crate) struct EngineShared {
    pub clock: Clock,
    pub spawner: Spawner,
    pub pool: Pool,
    pub abort_timeout: Duration,
    pub fuse: bool,
    pub offline: bool,
    pub seed: u64,
    next_session: AtomicU64,
    watchdog: Arc<Watchdog>,
}

impl EngineShared {
    pub(crate) fn next_session(&self) -> u64 {
        self.next_session.fetch_add(1, Ordering::Relaxed)
    }
    pub(crate) fn watch(&self, session: &Arc<SessionShared>) {
        self.watchdog.watch(session);
    }
    /// A graph's figures are published from now on, until it is gone.
    pub(crate) fn watch_graph(&self, graph: &Arc<GraphShared>) {
        self.watchdog.watch_graph(graph);
    }
    /// Something was counted while there may be no session.
    pub(crate) fn note(&self) {
        self.watchdog.note();
    }
}

/// Settings of an [`Engine`], with good defaults.
pub struct EngineBuilder {
    clock: Option<Clock>,
    sim: Option<SimHandle>,
    threads: Option<usize>,
    inline: bool,
    abort_timeout: Duration,
    fuse: bool,
    offline: bool,
    seed: u64,
}

impl Engine {
    /// An engine on the current tokio runtime, with one compute thread per physical core.
    ///
    /// # Errors
    /// [`PoolError::Spawn`] if the compute threads cannot be started.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new() -> Result<Self, PoolError> {
        Self::builder().build()
    }
    /// Settings.
    pub fn builder() -> EngineBuilder {
        EngineBuilder {
            clock: None,
            sim: None,
            threads: None,
            inline: false,
            abort_timeout: ABORT_TIMEOUT,
            fuse: true,
            offline: false,
            seed: 0,
        }
    }
    /// The engine's clock.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }
    /// The compute pool.
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }
    /// Builds all nodes of a plan (models are loaded here) and gets ready for sessions.
    ///
    /// # Errors
    /// All nodes that cannot be built, at once.
    ///
    /// # Cancel safety
    /// Dropped while waiting, what was built is dropped when its thread is done with it.
    pub async fn start(&self, plan: Plan) -> Result<Graph, StartError> {
        graph::start(self.0.clone(), plan).await
    }
}

impl EngineBuilder {
    /// Another clock than the system's: [`Clock::tokio`] for tests in paused time.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }
    /// Runs in a simulated world: its clock, its scheduler, compute jobs inline.
    #[must_use]
    pub fn sim(mut self, sim: SimHandle) -> Self {
        self.clock = Some(sim.clock());
        self.sim = Some(sim);
        self.inline = true;
        self
    }
    /// Compute threads. Default: the machine's physical cores.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }
    /// Runs compute jobs on the task that asks for them: for tests in paused time.
    #[must_use]
    pub fn inline(mut self) -> Self {
        self.inline = true;
        self
    }
    /// How long an abort waits for nodes to let go. Default 2 s.
    #[must_use]
    pub fn abort_timeout(mut self, limit: Duration) -> Self {
        self.abort_timeout = limit;
        self
    }
    /// Whether chains of cheap steps run fused on one task. Default yes; the results are the same.
    #[must_use]
    pub fn fuse(mut self, fuse: bool) -> Self {
        self.fuse = fuse;
        self
    }
    /// Refuses to fetch anything. Default no.
    #[must_use]
    pub fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }
    /// Seed of everything random. Default 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// The engine.
    ///
    /// # Errors
    /// [`PoolError::Spawn`] if the compute threads cannot be started.
    ///
    /// # Panics
    /// Outside a tokio runtime, unless it is simulated.
    pub fn build(self) -> Result<Engine, PoolError> {
        let clock = self.clock.unwrap_or_else(Clock::system);
        let spawner = match self.sim {
            Some(sim) => Spawner::Sim(sim),
            None => Spawner::Tokio(tokio::runtime::Handle::current()),
        };
        let now = {
            let clock = clock.clone();
            Arc::new(move || clock.now()) as crate::pool::Now
        };
        let pool = if self.inline {
            Pool::inline(now)
        } else {
            let mut config = PoolConfig::default();
            if let Some(n) = self.threads {
                config.threads = n;
            }
            Pool::new(&config, now)?
        };
        let watchdog = Watchdog::start(&spawner, &clock);
        Ok(Engine(Arc::new(EngineShared {
            clock,
            spawner,
            pool,
            abort_timeout: self.abort_timeout,
            fuse: self.fuse,
            offline: self.offline,
            seed: self.seed,
            next_session: AtomicU64::new(1),
            watchdog,
        })))
    }
}
