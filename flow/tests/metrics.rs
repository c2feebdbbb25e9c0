//! What the engine publishes, as a recorder sees it.

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::*;
use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use omni_flow::*;

/// Keeps every series, how often anything was written, and whether a counter ever went back.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<Seen>>);
#[derive(Default)]
struct Seen {
    series: BTreeMap<String, f64>,
    kinds: BTreeMap<String, &'static str>,
    described: BTreeMap<String, String>,
    writes: u64,
    back: Vec<String>,
}
struct Series(Record, String);

fn shown(key: &Key) -> String {
    let mut labels: Vec<String> = key.labels().map(|l| format!("{}={}", l.key(), l.value())).collect();
    labels.sort();
    format!("{}{{{}}}", key.name(), labels.join(","))
}
impl Series {
    fn set(&self, v: f64, grows: bool) {
        let mut seen = self.0.0.lock().unwrap();
        seen.writes += 1;
        let old = seen.series.insert(self.1.clone(), v);
        if grows && old.is_some_and(|o| v < o) {
            seen.back.push(self.1.clone());
        }
    }
}
impl CounterFn for Series {
    fn increment(&self, _: u64) {
        panic!("totals are published, not steps");
    }
    fn absolute(&self, v: u64) {
        self.set(v as f64, true);
    }
}
impl GaugeFn for Series {
    fn increment(&self, _: f64) {}
    fn decrement(&self, _: f64) {}
    fn set(&self, v: f64) {
        Series::set(self, v, self.1.contains("_total{"));
    }
}
impl Recorder for Record {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.0.lock().unwrap().described.insert(name.as_str().to_owned(), text.to_string());
    }
    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.0.lock().unwrap().described.insert(name.as_str().to_owned(), text.to_string());
    }
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.0.lock().unwrap().kinds.insert(key.name().to_owned(), "counter");
        Counter::from_arc(Arc::new(Series(self.clone(), shown(key))))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.0.lock().unwrap().kinds.insert(key.name().to_owned(), "gauge");
        Gauge::from_arc(Arc::new(Series(self.clone(), shown(key))))
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
impl Record {
    fn get(&self, series: &str) -> Option<f64> {
        self.0.lock().unwrap().series.get(series).copied()
    }
    fn writes(&self) -> u64 {
        self.0.lock().unwrap().writes
    }
    fn len(&self) -> usize {
        self.0.lock().unwrap().series.len()
    }
}

const GRAPH: &str = "
graph: g
session: { mode: duplex, max-sessions: 2 }
lanes: [reply]
nodes:
  ask: { use: session.in, kind: text }
  turn: { use: test.turns, fences: reply, in: ask }
  echo: { use: test.repeat, times: 1, in: turn, restart: { on-fault: { max: 5, window: 1m } } }
  speak: { use: test.speller, lane: reply, in: echo, place: shared }
  say: { use: session.out, lane: reply, in: { from: speak, window: { items: 4 } } }
";

async fn a_second() {
    tokio::time::sleep(Duration::from_millis(1600)).await;
}

#[tokio::test(start_paused = true)]
async fn figures_are_published_summed_and_monotone() {
    let record = Record::default();
    let _guard = metrics::set_default_local_recorder(&record);
    let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
    let graph = start(&engine, GRAPH).await;
    a_second().await;
    // From the start: every closed label set at 0.
    let say = "omni_flow_edge_chunks_total{edge=speak.out->say.in,graph=g}";
    for (series, value) in [
        (say, 0.0),
        ("omni_flow_edge_dropped_total{edge=speak.out->say.in,graph=g,reason=stale_epoch}", 0.0),
        ("omni_flow_edge_errors_total{code=input_wait_timeout,edge=ask.out->turn.in,graph=g}", 0.0),
        ("omni_flow_node_faults_total{graph=g,kind=panic,node=speak}", 0.0),
        ("omni_flow_node_restarts_total{graph=g,node=echo}", 0.0),
        ("omni_flow_node_over_budget_total{graph=g,node=turn}", 0.0),
        ("omni_flow_sessions_closed_total{graph=g,reason=client_close}", 0.0),
        ("omni_flow_sessions_rejected_total{code=resource_exhausted,graph=g}", 0.0),
        ("omni_flow_sessions{graph=g,state=open}", 0.0),
        ("omni_flow_sessions_limit{graph=g}", 2.0),
        ("omni_flow_slots{graph=g,node=speak,state=free}", 2.0),
    ] {
        assert_eq!(record.get(series), Some(value), "{series}");
    }
    assert_eq!(record.get("omni_flow_edge_oldest_seconds{edge=speak.out->say.in,graph=g}"), None, "no sample yet");

    // Two sessions: one blocked with four letters queued after a restart, one that panics; a third is refused.
    let mut a = graph.open().unwrap();
    let mut ask = a.input("ask").unwrap();
    ask.send(text("fail")).await.unwrap();
    ask.send(text("abcdefgh")).await.unwrap();
    let mut b = graph.open().unwrap();
    let mut held = b.input("ask").unwrap();
    held.send(text("*")).await.unwrap();
    assert_eq!(graph.open().err().map(|e| e.code()), Some("resource_exhausted"));
    b.wait().await.unwrap_err();
    drop((b, held));
    tokio::time::sleep(Duration::from_secs(7)).await;
    for (series, value) in [
        (say, 4.0),
        ("omni_flow_edge_depth{edge=speak.out->say.in,graph=g}", 4.0),
        ("omni_flow_edge_depth_bytes{edge=speak.out->say.in,graph=g}", 4.0),
        ("omni_flow_edge_credit_used_ratio{bound=items,edge=speak.out->say.in,graph=g}", 1.0),
        ("omni_flow_node_faults_total{graph=g,kind=panic,node=speak}", 1.0),
        ("omni_flow_node_faults_total{graph=g,kind=panic,node=echo}", 0.0),
        ("omni_flow_node_faults_total{graph=g,kind=error,node=echo}", 1.0),
        ("omni_flow_node_restarts_total{graph=g,node=echo}", 1.0),
        ("omni_flow_node_restarts_total{graph=g,node=speak}", 0.0),
        ("omni_flow_edge_dropped_total{edge=turn.out->echo.in,graph=g,reason=restart}", 1.0),
        ("omni_flow_sessions{graph=g,state=open}", 1.0),
        ("omni_flow_sessions_closed_total{graph=g,reason=engine_error}", 1.0),
        ("omni_flow_sessions_rejected_total{code=resource_exhausted,graph=g}", 1.0),
        ("omni_flow_slots{graph=g,node=speak,state=used}", 1.0),
    ] {
        assert_eq!(record.get(series), Some(value), "{series}");
    }
    let oldest = record.get("omni_flow_edge_oldest_seconds{edge=speak.out->say.in,graph=g}").unwrap();
    assert!((5.0..8.0).contains(&oldest), "{oldest}");
    let blocked = record.get("omni_flow_edge_blocked_seconds_total{edge=speak.out->say.in,graph=g}").unwrap();
    assert!((5.0..8.0).contains(&blocked), "a wait counts while it lasts: {blocked}");
    assert!(record.get("omni_flow_edge_media_seconds{edge=speak.out->say.in,graph=g}").is_none(), "text has no length");

    // The fence kills what is queued; then all ends well.
    a.fence(Lane::new(1).unwrap());
    a_second().await;
    let dropped =
        record.get("omni_flow_edge_dropped_total{edge=speak.out->say.in,graph=g,reason=stale_epoch}").unwrap();
    assert!(dropped >= 4.0, "{dropped}");
    assert!(record.get("omni_flow_edge_oldest_seconds{edge=speak.out->say.in,graph=g}").unwrap().is_nan());
    ask.end();
    let mut out = a.output("say").unwrap();
    collect(&mut out).await;
    a.wait().await.unwrap();
    drop((a, out));
    a_second().await;
    a_second().await;
    assert_eq!(record.get("omni_flow_sessions{graph=g,state=open}"), Some(0.0));
    assert_eq!(record.get("omni_flow_sessions_closed_total{graph=g,reason=client_close}"), Some(1.0));
    assert_eq!(record.get("omni_flow_edge_depth{edge=speak.out->say.in,graph=g}"), Some(0.0));
    assert!(record.get(say).unwrap() >= 4.0, "closed sessions stay in the totals");
    assert_eq!(record.0.lock().unwrap().back, Vec::<String>::new(), "no total ever went back");

    // Idle is idle: an hour without a session costs nothing.
    let (writes, series) = (record.writes(), record.len());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(record.writes(), writes);
    // And a hundred sessions more make no series more.
    for _ in 0..100 {
        let s = graph.open().unwrap();
        s.abort().await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(record.len(), series, "series are bounded by the graph");
    assert_eq!(record.get("omni_flow_sessions_closed_total{graph=g,reason=disconnect}"), Some(100.0));
    assert_eq!(record.get("omni_flow_slots{graph=g,node=speak,state=used}"), Some(0.0));
    let seen = record.0.lock().unwrap();
    for (name, kind) in &seen.kinds {
        let f = METRICS.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("{name} is not in the list"));
        let seconds = name.ends_with("_seconds_total");
        assert!(f.kind.name() == *kind || seconds, "{name} is a {kind}");
        let labels: Vec<&str> = f.labels.to_vec();
        for s in seen.series.keys().filter(|s| s.split('{').next() == Some(name)) {
            let inside = s.split_once('{').unwrap().1.trim_end_matches('}');
            let mut got: Vec<&str> = inside.split(',').map(|l| l.split('=').next().unwrap()).collect();
            let mut want = labels.clone();
            got.sort_unstable();
            want.sort_unstable();
            assert_eq!(got, want, "{s}");
        }
    }
    let absent: Vec<_> = METRICS.iter().filter(|f| !seen.kinds.contains_key(f.name)).map(|f| f.name).collect();
    assert_eq!(absent, ["omni_flow_edge_media_seconds"], "of the list, this graph lacks only what needs media");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_sums_sessions_that_live_and_those_that_are_gone() {
    let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
    let graph = start(&engine, GRAPH).await;
    let say = graph.plan().edges.iter().position(|e| graph.plan().input_name(e.to) == "say.in").unwrap();
    let speak = graph.plan().nodes.iter().position(|n| n.name == "speak").unwrap();
    let empty = graph.snapshot();
    assert_eq!((empty.open, empty.closing, empty.closed, empty.rejected), (0, 0, 0, 0));
    assert_eq!((empty.fences.as_slice(), empty.edges.len(), empty.nodes.len()), (&[0, 0][..], 4, 5));
    assert_eq!((empty.edges[say], empty.nodes[speak]), (EdgeSnapshot::default(), NodeSnapshot::default()));

    // Two sessions, each with four of eight letters on an edge of four, and one that is refused.
    let (mut sessions, mut inputs) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let mut s = graph.open().unwrap();
        let mut ask = s.input("ask").unwrap();
        ask.send(text("abcdefgh")).await.unwrap();
        sessions.push(s);
        inputs.push(ask);
    }
    assert!(graph.open().is_err());
    a_second().await;
    let full = graph.snapshot();
    assert_eq!((full.open, full.rejected), (2, 1));
    let edge = full.edges[say];
    assert_eq!((edge.depth, edge.queued.bytes, edge.counts.chunks, edge.blocked), (8, 8, 8, 2));
    assert_eq!((edge.used_items, edge.fill(), edge.counts.depth_high), (1.0, 1.0, 4));
    assert!(edge.oldest >= Some(Duration::from_secs(1)) && edge.counts.blocked >= Duration::from_secs(2), "{edge:?}");
    assert!(full.nodes[speak].steps > 0, "{:?}", full.nodes);

    // A fence of one of them takes what is queued there, and is counted in its lane.
    sessions[0].fence(Lane::new(1).unwrap());
    sessions[0].fence(Lane::new(1).unwrap());
    a_second().await;
    let fenced = graph.snapshot();
    assert_eq!(fenced.fences, [0, 2]);
    assert_eq!((fenced.edges[say].depth, fenced.edges[say].blocked), (4, 1));
    assert!(fenced.edges[say].counts.stale >= 4);

    // Gone, they stay in the totals.
    drop(inputs);
    for s in sessions {
        s.abort().await.unwrap();
    }
    a_second().await;
    let gone = graph.snapshot();
    assert_eq!((gone.open, gone.closing, gone.closed, gone.fences.as_slice()), (0, 0, 2, &[0, 2][..]));
    assert!(gone.edges[say].counts.chunks >= 8 && gone.nodes[speak].steps >= full.nodes[speak].steps);
    assert_eq!((gone.edges[say].depth, gone.edges[say].fill(), gone.edges[say].oldest), (0, 0.0, None));
    assert!(gone.at > full.at);
}

#[tokio::test(start_paused = true)]
async fn at_most_once_a_second() {
    let record = Record::default();
    let _guard = metrics::set_default_local_recorder(&record);
    let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
    let graph = start(&engine, GRAPH).await;
    let s = graph.open().unwrap();
    a_second().await;
    let before = record.writes();
    let once = {
        a_second().await;
        record.writes() - before
    };
    let mark = record.writes();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let rounds = (record.writes() - mark) / once.max(1);
    assert!((1..=101).contains(&rounds), "{rounds} rounds in 100 s");
    drop(s);
}

#[test]
fn the_list_is_described() {
    let record = Record::default();
    metrics::with_local_recorder(&record, describe_metrics);
    let seen = record.0.lock().unwrap();
    assert_eq!(seen.described.len(), METRICS.len());
    for f in METRICS {
        assert_eq!(seen.described[f.name], f.meaning);
    }
}
