//! Where tasks go: a tokio runtime or a simulated world.

use std::future::Future;

use crate::pool::{Class, Pool, PoolError, Priority};
use crate::sim::SimHandle;

#[derive(Clone)]
pub(crate) enum Spawner {
    Tokio(tokio::runtime::Handle),
    Sim(SimHandle),
}

impl Spawner {
    pub(crate) fn spawn(&self, f: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Tokio(h) => drop(h.spawn(f)),
            Self::Sim(s) => s.spawn(f),
        }
    }
    /// Runs `f` where blocking is allowed and gives its result; `None` if it panicked or the runtime is going down. In
    /// a simulated world it runs in place.
    pub(crate) async fn blocking<R: Send + 'static>(
        &self,
        f: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, String> {
        match self {
            Self::Tokio(h) => h.spawn_blocking(f).await.map_err(|e| match e.try_into_panic() {
                Ok(p) => crate::node::panic_text(&*p),
                Err(_) => "the runtime was shut down".to_owned(),
            }),
            Self::Sim(_) => Ok(f()),
        }
    }
    /// The same on a thread of `pool`.
    pub(crate) async fn on<R: Send + 'static>(
        &self,
        pool: &Pool,
        f: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, String> {
        let me = self.clone();
        let run = move || {
            let _runtime = match &me {
                Self::Tokio(h) => Some(h.enter()),
                Self::Sim(_) => None,
            };
            f()
        };
        let priority = Priority { class: Class::Background, depth: 0, deadline: None, since: crate::Mono::ZERO };
        pool.run(priority, run).await.map_err(|e| match e {
            PoolError::Panicked { message } => message,
            e => e.to_string(),
        })
    }
}
