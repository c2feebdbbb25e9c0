//! Who waits for whom: the watchdog's report, and declared cycles.

mod common;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::*;
use omni_flow::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event as LogEvent, Level, Metadata, Subscriber};

/// Keeps warnings as text.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);
struct Text(String);
impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}
impl Subscriber for Warnings {
    fn enabled(&self, m: &Metadata<'_>) -> bool {
        *m.level() <= Level::WARN
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, e: &LogEvent<'_>) {
        let mut text = Text(String::new());
        e.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_is_blocked_for_long_is_reported_once_with_both_names() {
    let log = Warnings::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
    let yaml = "
graph: stuck
nodes:
  n: { use: test.count }
  out: { use: session.out, in: { from: n, window: { items: 2 } } }
";
    let graph = start(&engine, yaml).await;
    let mut s = graph.open().unwrap();
    let mut out = s.output("out").unwrap();
    let count = || log.0.lock().unwrap().len();
    tokio::time::sleep(Duration::from_millis(4500)).await;
    assert_eq!(count(), 0, "not yet");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let said = log.0.lock().unwrap().clone();
    assert_eq!(said.len(), 1, "once per time that it blocks: {said:?}");
    for name in ["stuck/n", "stuck/out", "n.out->out.in"] {
        assert!(said[0].contains(name), "{name} in {}", said[0]);
    }
    // It moves again, and blocks again: that is another time.
    for _ in 0..3 {
        out.next().await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(count(), 2);
    drop(out);
    s.wait().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(count(), 2, "a session that has ended blocks nobody");
}

/// Passes its input on and counts what comes back on its feedback port, when there is nothing else to do.
struct Hears;
static HEARD: AtomicU64 = AtomicU64::new(0);
impl Node for Hears {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Arc<str>>("in")?;
        let mut back = cx.input::<Arc<str>>("back")?;
        let mut out = cx.output::<Arc<str>>("out")?;
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                e = input.next() => match e {
                    Event::Data(stamp, text) => {
                        if out.send(&stamp, text).await == Sent::Gone {
                            return Ok(());
                        }
                    }
                    Event::Fence(_) => {}
                    Event::End(Terminal::End) => return Ok(()),
                    Event::End(Terminal::Error(e)) => return Err(e.into()),
                },
                e = back.next(), if open => match e {
                    Event::Data(..) => drop(HEARD.fetch_add(1, Ordering::Relaxed)),
                    Event::Fence(_) => {}
                    Event::End(_) => open = false,
                },
            }
        }
    }
}
impl Make for Hears {
    const NAME: &'static str = "test.hears";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("hears itself")
            .input(Port::new("in", Kind::of(Medium::Text), "text"))
            .input(Port::new("back", Kind::of(Medium::Text), "what was said").feedback().lossy())
            .output(Port::new("out", Kind::of(Medium::Text), "text"))
            .example("x: { use: test.hears, in: { in: y, back: z } }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Hears))
    }
}

/// A declared cycle under a flood: no deadlock, drops counted, nothing lost on the way out, a clean end.
#[tokio::test]
async fn a_declared_cycle_runs_and_ends() {
    const MESSAGES: usize = 20_000;
    let yaml = "
graph: ring
session: { mode: turn }
nodes:
  ask: { use: session.in, kind: text }
  a: { use: test.hears, in: { in: ask, back: { from: b, policy: drop-oldest, window: { items: 2 } } } }
  b: { use: test.pass, in: { from: a, window: { items: 2 } } }
  say: { use: session.out, in: { from: b, window: { items: 2 } } }
";
    let mut r = registry();
    r.add::<Hears>().unwrap();
    let file = GraphFile::parse("ring.yaml", yaml).unwrap_or_else(|d| panic!("{d}"));
    let plan = file.check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
    let engine = Engine::builder().inline().build().unwrap();
    let graph = engine.start(plan).await.unwrap();
    let mut s = graph.open().unwrap();
    let mut ask = s.input("ask").unwrap();
    let mut say = s.output("say").unwrap();
    let reader = tokio::spawn(async move { collect(&mut say).await });
    for i in 0..MESSAGES {
        assert_eq!(ask.send(text(&i.to_string())).await, Ok(Sent::Queued));
    }
    ask.end();
    let (got, end) = reader.await.unwrap();
    assert!(matches!(end, Terminal::End), "{end:?}");
    assert_eq!(got.len(), MESSAGES, "what is not lossy loses nothing");
    s.wait().await.unwrap();
    let stats = s.stats();
    let back = stats.edges.iter().find(|e| e.name.ends_with("a.back")).unwrap();
    let c = back.counts;
    assert!(c.policy > 0, "a flood drops something: {c:?}");
    assert_eq!(HEARD.load(Ordering::Relaxed) + c.policy + c.closed, MESSAGES as u64, "every drop is counted: {c:?}");
    assert!(stats.edges.iter().all(|e| e.ended && e.used == Amount::ZERO), "{stats:?}");
}
