//! What a session leaves behind, seen from inside: nothing.

use std::sync::{Arc, Weak};

use serde::Deserialize;

use super::SessionShared;
use crate::edge::Edge;
use crate::*;

#[derive(Deserialize)]
struct NoConfig {}
struct Pass;
impl Step for Pass {
    type In = Arc<str>;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, x: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        out.push(*stamp, x);
        Ok(())
    }
}
impl Make for Pass {
    const NAME: &'static str = "test.pass";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("passes text on")
            .input(Port::new("in", Kind::of(Medium::Text), "text"))
            .output(Port::new("out", Kind::of(Medium::Text), "text"))
            .example("x: { use: test.pass, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Pass))
    }
}

const GRAPH: &str = "
graph: weak
session: { mode: turn }
nodes:
  ask: { use: session.in, kind: text }
  a: { use: test.pass, in: ask }
  b: { use: test.pass, in: { from: a, window: { items: 1 } } }
  say: { use: session.out, in: { from: b, window: { items: 1 } } }
";

/// However a session ends, in whatever order its parts are dropped: every edge of it is freed.
#[tokio::test(start_paused = true)]
async fn every_edge_of_a_session_is_freed() {
    let mut r = Registry::base();
    r.add::<Pass>().unwrap();
    let plan = GraphFile::parse("weak.yaml", GRAPH).unwrap().check(&r, &CheckCx::default()).unwrap().0;
    for fuse in [true, false] {
        let engine = Engine::builder().clock(Clock::tokio()).inline().fuse(fuse).build().unwrap();
        let graph = engine.start(plan.clone()).await.unwrap();
        let mut edges: Vec<Weak<Edge>> = Vec::new();
        let mut shared: Vec<Weak<SessionShared>> = Vec::new();
        for i in 0..60 {
            let mut s = graph.open().unwrap();
            edges.extend(s.shared.edges.iter().map(Arc::downgrade));
            shared.push(Arc::downgrade(&s.shared));
            let mut ask = s.input("ask").unwrap();
            let mut say = s.output("say").unwrap();
            for _ in 0..i % 4 {
                let _ =
                    tokio::time::timeout(std::time::Duration::from_millis(1), ask.send(Arc::<str>::from("x"))).await;
            }
            match i % 5 {
                0 => s.abort().await.unwrap(),
                1 => drop(s),
                2 => drop((say, s)),
                3 => {
                    ask.end();
                    while !matches!(say.next().await, Event::End(_)) {}
                    s.wait().await.unwrap();
                }
                _ => drop(ask),
            }
        }
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
        assert_eq!(edges.iter().filter(|e| e.strong_count() > 0).count(), 0, "fused {fuse}");
        assert_eq!(shared.iter().filter(|s| s.strong_count() > 0).count(), 0, "fused {fuse}");
    }
}
