//! `GET /v1/omni/stats`: the graph at work, as server-sent events.
//!
//! The first event, `graph`, is its shape; each `stats` event after it has the figures of all edges and nodes, in the same
//! order, and how the sessions stand. They come five times a second while something changes and once a second while
//! nothing does. Figures are taken only while somebody reads, once for all readers.
//!
//! Readers are bounded. One that has not taken anything for half a minute loses its place to the next that comes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::Stream;
use omni_flow::{Client, GraphSnapshot, Medium, Mode, Mono, Plan, Policy};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Door, HttpError};

/// Between two looks at the graph.
const PERIOD: Duration = Duration::from_millis(200);
/// What has not changed is told again after this time: the reader sees that somebody is there.
const AGAIN: Duration = Duration::from_secs(1);
/// Readers at once.
const MOST: usize = 16;
/// A reader that has taken nothing for so long may be replaced.
const STALLED: Duration = Duration::from_secs(30);

/// Put into a request by whoever serves the routes, as an [`Extension`]: once it says true, streams without an end of
/// their own end, so that a server that waits for its connections can stop.
#[derive(Clone, Debug)]
pub struct Stopping(pub watch::Receiver<bool>);

pub(super) fn routes(door: Door) -> Router {
    let shared = Arc::new(Shared { door, readers: Mutex::default(), last: Mutex::default() });
    Router::new().route("/v1/omni/stats", get(stats)).with_state(shared)
}

struct Shared {
    door: Door,
    readers: Mutex<Readers>,
    /// The newest figures: readers that ask at about the same time get the same ones.
    last: Mutex<Option<(Mono, Arc<str>)>>,
}

impl Shared {
    /// The figures, without the time at which they were taken.
    fn figures(&self, now: Mono) -> Arc<str> {
        let mut last = self.last.lock();
        if let Some((at, figures)) = &*last
            && now.since(*at) < PERIOD / 2
        {
            return figures.clone();
        }
        let snapshot = self.door.graph.snapshot();
        let figures: Arc<str> = figures(&snapshot, self.door.graph.plan()).to_string().into();
        *last = Some((now, figures.clone()));
        figures
    }
}

/// Who reads, and when each last took something.
#[derive(Debug, Default)]
struct Readers {
    next: u64,
    all: Vec<(u64, Mono)>,
}

impl Readers {
    /// A place, if there is one or one can be taken from a reader that is stuck.
    fn enter(&mut self, now: Mono) -> Option<u64> {
        if self.all.len() >= MOST {
            let oldest = self.all.iter().min_by_key(|(_, seen)| *seen).copied();
            let (id, _) = oldest.filter(|(_, seen)| now.since(*seen) >= STALLED)?;
            self.leave(id);
        }
        self.next += 1;
        self.all.push((self.next, now));
        Some(self.next)
    }
    /// Notes that a reader takes something; false if its place is gone.
    fn seen(&mut self, id: u64, now: Mono) -> bool {
        let found = self.all.iter_mut().find(|(other, _)| *other == id);
        found.map(|one| one.1 = now).is_some()
    }
    fn leave(&mut self, id: u64) {
        self.all.retain(|(other, _)| *other != id);
    }
}

/// One reader. Dropped, its place is free.
struct Reader {
    shared: Arc<Shared>,
    id: u64,
    stop: Option<watch::Receiver<bool>>,
    /// What it was told last, and when.
    told: Option<(Mono, Arc<str>)>,
    begun: bool,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.readers.lock().leave(self.id);
    }
}

impl Reader {
    /// The next event; `None` once it has to go.
    async fn next(&mut self) -> Option<Event> {
        let (shared, clock) = (self.shared.clone(), &self.shared.door.clock);
        if !std::mem::replace(&mut self.begun, true) {
            return Some(Event::default().event("graph").data(shape(&shared.door).to_string()));
        }
        loop {
            if self.told.is_some() {
                tokio::select! {
                    () = stopped(&mut self.stop) => return None,
                    () = clock.sleep(PERIOD) => {}
                }
            } else if self.stop.as_ref().is_some_and(|s| *s.borrow()) {
                return None;
            }
            let now = clock.now();
            if !shared.readers.lock().seen(self.id, now) {
                return None;
            }
            let figures = shared.figures(now);
            if self.told.as_ref().is_some_and(|(at, old)| *old == figures && now.since(*at) < AGAIN) {
                continue;
            }
            let data = format!("{{\"at_s\":{:.3},{}", now.0 as f64 / 1e9, &figures[1..]);
            self.told = Some((now, figures));
            return Some(Event::default().event("stats").data(data));
        }
    }
}

/// Waits until everything stops; for ever where nobody would say so.
async fn stopped(stop: &mut Option<watch::Receiver<bool>>) {
    if let Some(stop) = stop
        && stop.wait_for(|s| *s).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

async fn stats(
    State(shared): State<Arc<Shared>>,
    stop: Option<Extension<Stopping>>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    shared.door.gate.admit(&headers, &[])?;
    let entered = shared.readers.lock().enter(shared.door.clock.now());
    let id = entered.ok_or_else(|| HttpError::unavailable(format!("{MOST} readers watch this graph already")))?;
    let reader = Reader { shared, id, stop: stop.map(|Extension(Stopping(s))| s), told: None, begun: false };
    // A proxy that collects what it passes on would make a slide show of it.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), "no");
    Ok(([(CACHE_CONTROL, "no-store"), unbuffered], Sse::new(events(reader))).into_response())
}

fn events(reader: Reader) -> impl Stream<Item = Result<Event, Infallible>> {
    futures_util::stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok(event), reader))
    })
}

/// The graph as it was checked: what does not change.
fn shape(door: &Door) -> Value {
    let plan = door.graph.plan();
    let nodes = plan.nodes.iter().map(|n| {
        json!({
            "name": n.name,
            "use": n.kind,
            "lane": n.lane.index(),
            "fences": n.fences.map(|l| l.index()),
            "place": n.place.name(),
            "depth": n.depth,
            "client": n.schema.client.map(|c| match c { Client::In => "in", Client::Out => "out" }),
        })
    });
    // A bound that is none has the largest number.
    let bound = |n: u64| (n != u64::MAX).then_some(n);
    let edges = plan.edges.iter().map(|e| {
        let span = (e.limit.span.ticks() != i64::MAX).then(|| e.limit.span.as_secs_f64());
        json!({
            "from": e.from.0,
            "to": e.to.0,
            "name": format!("{}->{}", plan.output_name(e.from), plan.input_name(e.to)),
            "kind": e.kind.to_string(),
            "media": matches!(e.kind.medium, Medium::Audio | Medium::Video),
            "lane": e.lane.index(),
            "policy": match e.policy {
                Policy::Wait => "wait",
                Policy::DropOldest => "drop-oldest",
                Policy::Latest => "latest",
            },
            "feedback": e.feedback,
            "limit": {"items": bound(e.limit.items), "bytes": bound(e.limit.bytes), "media_s": span},
        })
    });
    json!({
        "graph": plan.name,
        "model": door.model,
        "mode": if plan.session.mode == Mode::Duplex { "duplex" } else { "turn" },
        "realtime": door.host.is_some(),
        "lanes": plan.lanes,
        "max_sessions": plan.session.max_sessions,
        "nodes": nodes.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
    })
}

/// What changes, in the order of the shape.
fn figures(s: &GraphSnapshot, plan: &Plan) -> Value {
    let edges = s.edges.iter().zip(&plan.edges).map(|(e, p)| {
        let media = matches!(p.kind.medium, Medium::Audio | Medium::Video);
        json!({
            "depth": e.depth,
            "bytes": e.queued.bytes,
            "media_s": media.then(|| round(e.queued.span.as_secs_f64())),
            "fill": round(e.fill()),
            "blocked": e.blocked,
            "blocked_s": round(e.counts.blocked.as_secs_f64()),
            "chunks": e.counts.chunks,
            "bytes_total": e.counts.bytes,
            "dropped": {
                "stale": e.counts.stale,
                "policy": e.counts.policy,
                "closed": e.counts.closed,
                "restart": e.counts.lost,
            },
        })
    });
    let nodes = s.nodes.iter().map(|n| {
        json!({
            "steps": n.steps,
            "busy_s": round(n.busy.as_secs_f64()),
            "working": n.working,
            "faults": n.faults,
            "restarts": n.restarts,
        })
    });
    json!({
        "sessions": {"open": s.open, "closing": s.closing, "closed": s.closed, "rejected": s.rejected},
        "fences": s.fences,
        "edges": edges.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
    })
}

/// Milliseconds are enough.
fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_bounded_and_one_that_is_stuck_makes_room() {
        let at = |s: u64| Mono(s * 1_000_000_000);
        let mut readers = Readers::default();
        let ids: Vec<u64> = (0..MOST).filter_map(|_| readers.enter(at(0))).collect();
        assert_eq!(ids.len(), MOST);
        assert_eq!(readers.enter(at(29)), None);
        ids.iter().skip(1).for_each(|id| assert!(readers.seen(*id, at(29))));
        // Only the first has taken nothing for half a minute.
        assert!(readers.enter(at(30)).is_some());
        assert!(!readers.seen(ids[0], at(30)), "its place is gone");
        assert!(readers.seen(ids[1], at(30)));
        assert_eq!(readers.enter(at(30)), None);
        readers.leave(ids[1]);
        assert!(readers.enter(at(30)).is_some());
        assert_eq!(readers.all.len(), MOST);
    }
}
