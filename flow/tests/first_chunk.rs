//! On the way to the first chunk of an answer, the node nearest the listener goes first, even where a core is free.

mod common;

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_is_not_wanted_yet_waits_for_the_first_chunk() {
    let (begun_tx, begun) = channel();
    let (go_on, go_on_rx) = channel();
    assert!(GATE.set(Gate { begun: begun_tx, go_on: Mutex::new(go_on_rx) }).is_ok());
    let mut r = registry();
    r.add::<Gated>().unwrap();
    let yaml = "
graph: first
session: { mode: turn }
nodes:
  ask: { use: session.in, kind: text }
  llm: { use: test.speller, in: ask }
  voice: { use: test.gated, in: llm }
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
    // Letters that were made, whether anybody has taken them or not.
    let handle = s.handle();
    let made = move || handle.stats().nodes.iter().find(|n| n.name == "llm").map_or(0, |n| n.steps);
    // Kept, so that later units can tell it.
    let _begun = tokio::task::spawn_blocking(move || {
        begun.recv().unwrap();
        // One letter may be under way; another begins only if nothing holds it.
        let first = made();
        for _ in 0..50_000 {
            std::thread::yield_now();
        }
        assert!(made() <= first + 2, "a free core took up work that waits for nothing");
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
