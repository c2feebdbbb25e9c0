//! The watchdog: one task per engine that looks over all sessions twice a second, and sleeps when there are none.
//!
//! It ends streams whose consumer has waited past the edge's deadline, names both ends of an edge that has been blocked
//! for long, and reports steps that run past their budget. Doing it here costs the data path nothing: it only notes since
//! when it waits. It also publishes the metrics.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::GraphShared;
use super::spawner::Spawner;
use crate::edge::Look;
use crate::session::SessionShared;
use crate::sync::Mutex;
use crate::{Clock, Mono};

/// How often it looks. A deadline takes effect at most this much late.
const PERIOD: Duration = Duration::from_millis(500);

/// A sender blocked for this long is reported, once per time that it blocks ...
const BLOCKED: Duration = Duration::from_secs(5);
/// ... and once in this time per edge: behind a consumer that is slow and well, each chunk may wait long.
const AGAIN: Duration = Duration::from_secs(60);

/// When the sender of an edge was last reported, and whether that was for the wait that it is in.
struct Report {
    at: Mono,
    told: bool,
}
type Reports = HashMap<(u64, usize), Report>;

/// Metrics are published at most this often.
const PUBLISH: Duration = Duration::from_secs(1);

pub(crate) struct Watchdog {
    sessions: Mutex<Vec<Weak<SessionShared>>>,
    graphs: Mutex<Vec<Weak<GraphShared>>>,
    wake: Arc<Notify>,
}

impl Watchdog {
    pub(crate) fn start(spawner: &Spawner, clock: &Clock) -> Arc<Self> {
        let me = Arc::new(Self { sessions: Mutex::default(), graphs: Mutex::default(), wake: Arc::default() });
        let (weak, clock) = (Arc::downgrade(&me), clock.clone());
        spawner.spawn(async move {
            let mut reported = Reports::new();
            let mut published: Option<Mono> = None;
            // Something may have happened that was not published yet.
            let mut news = false;
            while let Some(me) = weak.upgrade() {
                let busy = me.look(&clock, &mut reported);
                news |= busy;
                let now = clock.now();
                if news && published.is_none_or(|t| now.since(t) >= PUBLISH) {
                    me.publish(now);
                    published = Some(now);
                    news = busy;
                }
                if news {
                    drop(me);
                    clock.sleep(PERIOD).await;
                } else {
                    // Nothing to watch: sleep until there is, or until the engine is gone.
                    let wake = me.wake.clone();
                    drop(me);
                    wake.notified().await;
                    news = true;
                }
            }
        });
        me
    }
    pub(crate) fn watch(&self, session: &Arc<SessionShared>) {
        self.sessions.lock().push(Arc::downgrade(session));
        self.wake.notify_one();
    }
    pub(crate) fn watch_graph(&self, graph: &Arc<GraphShared>) {
        let mut graphs = self.graphs.lock();
        graphs.retain(|g| g.strong_count() > 0);
        graphs.push(Arc::downgrade(graph));
        drop(graphs);
        self.wake.notify_one();
    }
    pub(crate) fn note(&self) {
        self.wake.notify_one();
    }
    fn publish(&self, now: Mono) {
        let graphs: Vec<Arc<GraphShared>> = self.graphs.lock().iter().filter_map(Weak::upgrade).collect();
        for g in &graphs {
            crate::metrics::publish(g, now);
        }
    }
    /// One look; false if there is no session.
    fn look(&self, clock: &Clock, reported: &mut Reports) -> bool {
        let sessions: Vec<Arc<SessionShared>> = {
            let mut all = self.sessions.lock();
            all.retain(|s| s.upgrade().is_some_and(|s| !s.ended()));
            all.iter().filter_map(Weak::upgrade).collect()
        };
        let now = clock.coarse();
        for s in &sessions {
            let mut moved = 0u64;
            s.graph.look(now);
            s.probes.iter().filter_map(|p| p.watch()).for_each(|w| w.look(now));
            let looks: Vec<Look> = s.edges.iter().map(|e| e.look(now)).collect();
            s.check_deadlines(now, &looks);
            for (i, (edge, look)) in s.edges.iter().zip(&looks).enumerate() {
                moved = moved.wrapping_add(look.moved);
                match (look.blocked.filter(|t| *t >= BLOCKED), reported.get_mut(&(s.id, i))) {
                    (None, Some(r)) => r.told = false,
                    (None, None) => {}
                    (Some(_), Some(r)) if r.told || now.since(r.at) < AGAIN => {}
                    (Some(t), _) => {
                        reported.insert((s.id, i), Report { at: now, told: true });
                        let (from, to) = (&edge.spec.from, &edge.spec.to);
                        tracing::warn!(
                            session = s.id,
                            edge = edge.spec.name,
                            "{from} has waited {t:?} for {to} to take a chunk"
                        );
                    }
                }
            }
            s.check_idle(now, moved);
        }
        if !reported.is_empty() {
            let there: HashSet<u64> = sessions.iter().map(|s| s.id).collect();
            reported.retain(|(session, _), _| there.contains(session));
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
