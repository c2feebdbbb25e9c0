//! `class: background` on an edge: what it feeds computes when nobody else wants to.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

use omni_flow::*;

use crate::common::{NoConfig, registry, text, texts};

static GO_ON: OnceLock<Mutex<Receiver<()>>> = OnceLock::new();
static BEGUN: OnceLock<Sender<String>> = OnceLock::new();

/// Heavy work that the test lets go on.
struct Slow;
impl Step for Slow {
    type In = Arc<str>;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, x: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        BEGUN.get().expect("the test made it").send(x.to_string())?;
        GO_ON.get().expect("the test made it").lock().unwrap().recv()?;
        out.push(*stamp, x);
        Ok(())
    }
}
impl Make for Slow {
    const NAME: &'static str = "test.slow";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("waits").heavy().example("x: { use: test.slow, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Slow))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn background_work_goes_last() {
    let (begun_tx, begun) = channel();
    let (go_on, go_on_rx) = channel();
    BEGUN.set(begun_tx).unwrap();
    assert!(GO_ON.set(Mutex::new(go_on_rx)).is_ok());
    let yaml = "
graph: classes
session: { mode: duplex }
nodes:
  a: { use: session.in, kind: text }
  b: { use: session.in, kind: text }
  later: { use: test.slow, in: { from: a, class: background } }
  now: { use: test.slow, in: b }
  out-a: { use: session.out, in: later }
  out-b: { use: session.out, in: now }
";
    let mut r = registry();
    r.add::<Slow>().unwrap();
    let file = GraphFile::parse("classes.yaml", yaml).unwrap_or_else(|d| panic!("{d}"));
    let (plan, _) = file.check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}"));
    let engine = Engine::builder().threads(1).build().unwrap();
    let graph = engine.start(plan).await.unwrap();
    let open = || {
        let mut s = graph.open().unwrap();
        let ends =
            (s.input("a").unwrap(), s.input("b").unwrap(), s.output("out-a").unwrap(), s.output("out-b").unwrap());
        (s, ends)
    };
    // The one thread is taken first; then the background comes before the work that somebody waits for.
    let (_s, (mut a, mut b, mut out_a, mut out_b)) = open();
    let (_t, (mut a2, _b2, mut out_a2, _out_b2)) = open();
    a.send(text("taken")).await.unwrap();
    let begun = tokio::task::spawn_blocking(move || {
        assert_eq!(begun.recv().unwrap(), "taken");
        begun
    })
    .await
    .unwrap();
    a2.send(text("background")).await.unwrap();
    while engine.pool().stats().queued < 1 {
        tokio::task::yield_now().await;
    }
    b.send(text("wanted")).await.unwrap();
    while engine.pool().stats().queued < 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..3 {
        go_on.send(()).unwrap();
    }
    for out in [&mut out_a, &mut out_a2, &mut out_b] {
        assert!(matches!(out.next().await, Event::Data(..)));
    }
    assert_eq!((begun.recv().unwrap(), begun.recv().unwrap()), ("wanted".to_owned(), "background".to_owned()));
}
