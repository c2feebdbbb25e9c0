//! The watchdog: one task per engine that looks over all sessions twice a second, and sleeps when there are none.
//!
//! It ends streams whose consumer has waited past the edge's deadline, and names both ends of an edge that has been
//! blocked for long. Doing it here costs the data path nothing: it only notes since when it waits.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::spawner::Spawner;
use crate::Clock;
use crate::session::SessionShared;
use crate::sync::Mutex;

/// How often it looks. A deadline takes effect at most this much late.
const PERIOD: Duration = Duration::from_millis(500);

/// A sender blocked for this long is reported, once per time that it blocks.
const BLOCKED: Duration = Duration::from_secs(5);

pub(crate) struct Watchdog {
    sessions: Mutex<Vec<Weak<SessionShared>>>,
    wake: Arc<Notify>,
}

impl Watchdog {
    pub(crate) fn start(spawner: &Spawner, clock: &Clock) -> Arc<Self> {
        let me = Arc::new(Self { sessions: Mutex::new(Vec::new()), wake: Arc::default() });
        let (weak, clock) = (Arc::downgrade(&me), clock.clone());
        spawner.spawn(async move {
            let mut reported = HashSet::new();
            while let Some(me) = weak.upgrade() {
                if me.look(&clock, &mut reported) {
                    drop(me);
                    clock.sleep(PERIOD).await;
                } else {
                    // Nothing to watch: sleep until there is, or until the engine is gone.
                    let wake = me.wake.clone();
                    drop(me);
                    wake.notified().await;
                }
            }
        });
        me
    }
    pub(crate) fn watch(&self, session: &Arc<SessionShared>) {
        self.sessions.lock().push(Arc::downgrade(session));
        self.wake.notify_one();
    }
    /// One look; false if there is no session.
    fn look(&self, clock: &Clock, reported: &mut HashSet<(u64, usize)>) -> bool {
        let sessions: Vec<Arc<SessionShared>> = {
            let mut all = self.sessions.lock();
            all.retain(|s| s.upgrade().is_some_and(|s| !s.ended()));
            all.iter().filter_map(Weak::upgrade).collect()
        };
        let now = clock.coarse();
        for s in &sessions {
            for (i, edge) in s.edges.iter().enumerate() {
                edge.check_deadline(now);
                match edge.blocked_for(now) {
                    Some(t) if t >= BLOCKED => {
                        if reported.insert((s.id, i)) {
                            let (from, to) = (&edge.spec.from, &edge.spec.to);
                            tracing::warn!(
                                session = s.id,
                                edge = edge.spec.name,
                                "{from} has waited {t:?} for {to} to take a chunk"
                            );
                        }
                    }
                    _ => drop(reported.remove(&(s.id, i))),
                }
            }
        }
        if sessions.is_empty() {
            reported.clear();
        }
        !sessions.is_empty()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The task looks once more, finds its engine gone and ends.
        self.wake.notify_one();
    }
}
