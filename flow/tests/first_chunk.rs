//! On the way to the first chunk of an answer, the node nearest the listener goes first, even where a core is free.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

use common::*;
use omni_flow::*;

/// Units that the test stage `Gated` has begun, and what lets them go on.
struct Gate {
    begun: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}
static GATE: OnceLock<Gate> = OnceLock::new();
static LETTERS: AtomicUsize = AtomicUsize::new(0);

/// Passes text on, one unit per text, each of which waits for the test.
struct Gated;
fn wait(_: &str) {
    let gate = GATE.get().expect("the test made it");
    gate.begun.send(()).expect("the test listens");
    gate.go_on.lock().unwrap().recv().expect("the test lets it go on");
}
impl Make for Gated {
    const NAME: &'static str = "test.gated";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("waits").shared().example("x: { use: test.gated, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::stage(OneByOne { act: wait }))
    }
}

/// Counts what passes.
struct Counted;
impl Step for Counted {
    type In = Arc<str>;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, x: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        LETTERS.fetch_add(1, Ordering::SeqCst);
        out.push(*stamp, x);
        Ok(())
    }
}
impl Make for Counted {
    const NAME: &'static str = "test.counted";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("counts").example("x: { use: test.counted, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Counted))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_is_not_wanted_yet_waits_for_the_first_chunk() {
    let (begun_tx, begun) = channel();
    let (go_on, go_on_rx) = channel();
    assert!(GATE.set(Gate { begun: begun_tx, go_on: Mutex::new(go_on_rx) }).is_ok());
    let mut r = registry();
    r.add::<Gated>().unwrap().add::<Counted>().unwrap();
    let yaml = "
graph: first
session: { mode: turn }
nodes:
  ask: { use: session.in, kind: text }
  llm: { use: test.speller, in: ask }
  count: { use: test.counted, in: llm }
  voice: { use: test.gated, in: count }
  out: { use: session.out, in: voice }
";
    let file = GraphFile::parse("first.yaml", yaml).unwrap_or_else(|d| panic!("{d}"));
    let (plan, _) = file.check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}"));
    let engine = Engine::builder().threads(2).build().unwrap();
    let graph = engine.start(plan).await.unwrap();
    let mut s = graph.open().unwrap();
    let (mut ask, mut out) = (s.input("ask").unwrap(), s.output("out").unwrap());
    ask.send(Arc::<str>::from("abcdefghijklmnopqrst")).await.unwrap();
    ask.end();
    // Kept, so that later units can tell it.
    let _begun = tokio::task::spawn_blocking(move || {
        begun.recv().unwrap();
        // The second letter may have been on its way; a third begins only if nothing holds it.
        let first = LETTERS.load(Ordering::SeqCst);
        for _ in 0..2000 {
            std::thread::yield_now();
        }
        assert!(LETTERS.load(Ordering::SeqCst) <= first + 2, "a free core took up work that waits for nothing");
        for _ in 0..20 {
            go_on.send(()).unwrap();
        }
        begun
    })
    .await
    .unwrap();
    let mut said = String::new();
    loop {
        match out.next().await {
            Event::Data(_, Payload::Text(t)) => said += &t,
            Event::End(Terminal::End) => break,
            e => panic!("{e:?}"),
        }
    }
    assert_eq!(said, "abcdefghijklmnopqrst");
}
