//! A session: one client's running instance of a graph.
//!
//! It is opened from a [`Graph`](crate::Graph), gives out the client's ends of it, and ends in one of three ways: its
//! inputs end and it runs dry ([`Session::drain`]), it is aborted, or a node fails, and then every stream of it ends
//! with that node's error. Dropped, it is aborted. Other sessions notice nothing.

mod closing;
mod ends;
mod idle;
mod instance;
mod open;
mod progress;
mod shared;
mod stats;
#[cfg(all(test, not(omni_loom)))]
mod tests;

pub(crate) use closing::Closing;
pub use ends::{Input, InputError, SessionIn, SessionOut};
pub use open::OpenError;
pub(crate) use open::open;
pub(crate) use shared::SessionShared;
pub use stats::SessionStats;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{ErrorKind, RunError};
use crate::{In, Lane, Payload};

/// The longest that [`Session::abort`] waits for nodes to let go, unless the engine was told otherwise.
pub const ABORT_TIMEOUT: Duration = Duration::from_secs(2);

/// A running instance of a graph.
pub struct Session {
    shared: Arc<SessionShared>,
    inputs: BTreeMap<String, Input>,
    outputs: BTreeMap<String, In<Payload>>,
    _admitted: tokio::sync::OwnedSemaphorePermit,
}

impl Session {
    /// A number that is unique in the engine.
    pub fn id(&self) -> u64 {
        self.shared.id
    }
    /// Takes the client's end of the `session.in` node named `node`.
    pub fn input(&mut self, node: &str) -> Option<Input> {
        self.inputs.remove(node)
    }
    /// Takes the client's end of the `session.out` node named `node`.
    pub fn output(&mut self, node: &str) -> Option<In<Payload>> {
        self.outputs.remove(node)
    }
    /// Names of the inputs not taken yet.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.inputs.keys().map(String::as_str)
    }
    /// Names of the outputs not taken yet.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.outputs.keys().map(String::as_str)
    }
    /// Depth, credit, drops and times of all edges and nodes now.
    pub fn stats(&self) -> SessionStats {
        self.shared.stats()
    }
    /// A cheap handle to watch or cancel the session from elsewhere.
    pub fn handle(&self) -> SessionHandle {
        SessionHandle(self.shared.clone())
    }
    /// Renews the time after which an idle session ends (`session.idle-ttl`): for signs of life that are no chunks.
    pub fn touch(&self) {
        self.shared.touch();
    }
    /// Fences `lane` from outside, as a client's cancel does.
    pub fn fence(&self, lane: Lane) -> crate::Epoch {
        self.shared.lanes.fence(lane)
    }
    /// Asks nodes that make chunks without an input (a file, a tone) to make no more. The session ends once its inputs
    /// have ended too and all that is under way has come out.
    pub fn close_sources(&self) {
        self.shared.closing.ask();
    }
    /// Waits until all nodes have ended.
    ///
    /// # Errors
    /// The error of the node that ended the session.
    ///
    /// # Cancel safety
    /// Dropped while waiting, the session goes on.
    pub async fn wait(&self) -> Result<(), RunError> {
        self.shared.ended_wait().await;
        self.shared.error().map_or(Ok(()), Err)
    }
    /// Ends the inputs that were not taken, waits for at most `deadline` until all that is under way has come out, then
    /// aborts what is left.
    ///
    /// # Errors
    /// The error of the node that ended the session; [`ErrorKind::Stuck`] with the names of the nodes that did not end
    /// in time.
    ///
    /// # Cancel safety
    /// Dropped while waiting, the session goes on without those inputs.
    pub async fn drain(&mut self, deadline: Duration) -> Result<(), RunError> {
        for (_, input) in std::mem::take(&mut self.inputs) {
            input.end();
        }
        self.close_sources();
        // Nobody will read an output that was not taken: the nodes before it must not wait for that.
        self.outputs.clear();
        if self.shared.clock.timeout(deadline, self.shared.ended_wait()).await.is_none() {
            let names = self.shared.still_running().join(", ");
            let e = RunError::new(ErrorKind::Stuck, "", format!("not drained within {deadline:?}: {names} still ran"));
            self.shared.cancel(e.clone());
            self.let_go().await?;
            return Err(e);
        }
        self.shared.error().map_or(Ok(()), Err)
    }
    /// Stops everything now and waits until every node has let go.
    ///
    /// # Errors
    /// [`ErrorKind::Stuck`] with the names of the nodes that have not let go within the abort timeout (2 s, or what the
    /// engine was told); they go on letting go.
    ///
    /// # Cancel safety
    /// The abort takes effect with the first poll; dropping the future only stops the wait.
    pub async fn abort(self) -> Result<(), RunError> {
        self.shared.cancel(RunError::new(ErrorKind::Aborted, "", "the session was aborted"));
        self.let_go().await
    }
    async fn let_go(&self) -> Result<(), RunError> {
        let limit = self.shared.graph.engine.abort_timeout;
        if self.shared.clock.timeout(limit, self.shared.ended_wait()).await.is_some() {
            return Ok(());
        }
        let names = self.shared.still_running().join(", ");
        Err(RunError::new(ErrorKind::Stuck, "", format!("aborted, but {names} did not let go within {limit:?}")))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.shared.ended() {
            self.shared.cancel(RunError::new(ErrorKind::Aborted, "", "the session was dropped"));
        }
    }
}

/// Watches or cancels a session from elsewhere.
#[derive(Clone)]
pub struct SessionHandle(Arc<SessionShared>);

impl SessionHandle {
    /// Depth, credit, drops and times of all edges and nodes now.
    pub fn stats(&self) -> SessionStats {
        self.0.stats()
    }
    /// Stops the session; its owner sees it end as aborted.
    pub fn cancel(&self) {
        self.0.cancel(RunError::new(ErrorKind::Aborted, "", "the session was cancelled"));
    }
    /// Fences `lane` from outside, as a client's cancel does.
    pub fn fence(&self, lane: Lane) -> crate::Epoch {
        self.0.lanes.fence(lane)
    }
    /// The epochs of all lanes now: what a client says of its own belongs to them.
    pub fn epochs(&self) -> crate::Epochs {
        self.0.lanes.epochs()
    }
    /// As [`Session::touch`].
    pub fn touch(&self) {
        self.0.touch();
    }
    /// As [`Session::close_sources`].
    pub fn close_sources(&self) {
        self.0.closing.ask();
    }
    /// Waits until all nodes have ended.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing changes.
    pub async fn ended(&self) {
        self.0.ended_wait().await;
    }
}
