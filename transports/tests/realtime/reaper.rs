//! A session whose node does not let go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use omni_flow::{
    Body, BuildCx, BuildError, CheckCx, Clock, Ctx, Engine, Event, GraphFile, Kind, Make, Node, NodeError, Pcm, Port,
    Registry, Schema,
};
use omni_flow_transports::realtime::config::Defaults;
use omni_flow_transports::realtime::config::capability::Capabilities;
use omni_flow_transports::realtime::host::{Host, Limits};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use crate::host::Client;

/// Whoever holds it, holds up every node.
static HELD: Mutex<()> = Mutex::new(());
/// A node has come to where it is held up.
static ENTERED: AtomicBool = AtomicBool::new(false);

#[derive(Deserialize)]
struct NoConfig {}

/// Passes audio on, once it may, and hears of nothing until then.
struct Stubborn;
impl Node for Stubborn {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut audio = cx.input::<Pcm>("in")?;
        let mut out = cx.output::<Pcm>("out")?;
        while let Event::Data(stamp, pcm) = audio.next().await {
            ENTERED.store(true, Ordering::Relaxed);
            drop(HELD.lock());
            out.send(&stamp, pcm).await;
        }
        Ok(())
    }
}
impl Make for Stubborn {
    const NAME: &'static str = "test.stubborn";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("passes audio on")
            .input(Port::new("in", Kind::mono(16_000), "audio"))
            .output(Port::new("out", Kind::mono(16_000), "audio"))
            .example("x: { use: test.stubborn, in: a }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Stubborn))
    }
}

async fn host() -> Arc<Host> {
    let text = "graph: g\nsession: { mode: duplex, max-sessions: 1 }\nnodes:\n  \
        mic: { use: session.in, audio: { rate: 16000 } }\n  x: { use: test.stubborn, in: mic }\n  \
        speaker: { use: session.out, in: x }\n";
    let mut r = Registry::base();
    r.add::<Stubborn>().unwrap();
    let plan =
        GraphFile::parse("g.yaml", text).unwrap().check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}"));
    let engine = Engine::builder().clock(Clock::tokio()).build().unwrap();
    let graph = engine.start(plan.0).await.unwrap();
    let can = Capabilities { resume: false, ..Capabilities::profile_b() };
    Host::new(graph, engine.clock().clone(), can, Defaults::default(), Limits::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_place_comes_back_once_every_node_has_let_go() {
    let host = host().await;
    // A thread of its own holds it: what is held here may move between threads.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (taken, took) = tokio::sync::oneshot::channel();
    let holder = std::thread::spawn(move || {
        let _held = HELD.lock();
        let _ = taken.send(());
        let _ = released.recv();
    });
    took.await.unwrap();
    let mut c = Client::connect(&host, true);
    c.until("session.created").await;
    c.append(100).await;
    for _ in 0..6000 {
        if ENTERED.load(Ordering::Relaxed) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    c.say(json!({"type": "session.close"})).await;
    // Told all the same.
    assert_eq!(c.until("session.closed").await["reason"], "client_close");
    let mut full = Client::connect(&host, true);
    assert_eq!(full.until("error").await["error"]["code"], "resource_exhausted");
    release.send(()).unwrap();
    holder.join().unwrap();
    for _ in 0..6000 {
        let mut next = Client::connect(&host, true);
        if next.next().await.is_some_and(|e| e["type"] == "session.created") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the place is lost");
}
