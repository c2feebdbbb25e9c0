//! A graph that answers, small enough to know what it will say.

use std::sync::Arc;
use std::time::Duration;

use omni_flow::{
    Body, BuildCx, BuildError, CheckCx, Clock, Ctx, Engine, Event, GraphFile, Kind, Make, Medium, Node, NodeError, Pcm,
    Port, Registry, Schema, Sent, Signal,
};
use omni_flow_transports::realtime::config::Defaults;
use omni_flow_transports::realtime::config::capability::Capabilities;
use omni_flow_transports::realtime::host::{Host, Limits};
use serde::Deserialize;

#[derive(Deserialize)]
struct NoConfig {}

/// Answers each question with so many pieces of 200 ms as the newest committed turn had seconds, or for ever.
struct Toy;
impl Node for Toy {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut mic = cx.input::<Pcm>("in")?;
        let mut ask = cx.input::<Signal>("ask")?;
        let mut audio = cx.output::<Pcm>("audio")?;
        let mut text = cx.output::<Arc<str>>("text")?;
        let (mut heard, mut turn) = (0, 0);
        loop {
            tokio::select! {
                // A question comes behind the audio that it is about.
                biased;
                event = mic.next() => match event {
                    Event::Data(stamp, pcm) => {
                        heard += pcm.frames();
                        if stamp.last {
                            turn = std::mem::take(&mut heard);
                        }
                    }
                    Event::Fence(_) => {}
                    Event::End(_) => return Ok(()),
                },
                event = ask.next() => match event {
                    Event::Data(stamp, signal) => {
                        let Signal::Named { data, .. } = signal else { continue };
                        if data.contains("break") {
                            return Err("told to".into());
                        }
                        let count = if data.contains("for ever") { usize::MAX } else { turn / 16_000 };
                        for i in 1..=count {
                            text.send(&stamp.last(i == count), format!("{i} ").into()).await;
                            let piece = Pcm::mono(24_000, vec![0.1; 4_800]);
                            if audio.send(&stamp.last(i == count), piece).await != Sent::Queued {
                                break;
                            }
                            cx.clock().sleep(Duration::from_millis(200)).await;
                        }
                    }
                    Event::Fence(_) => {}
                    Event::End(_) => return Ok(()),
                },
            }
        }
    }
}
impl Make for Toy {
    const NAME: &'static str = "test.toy";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("answers")
            .input(Port::new("in", Kind::mono(16_000), "audio"))
            .input(Port::new("ask", Kind::of(Medium::Signal), "questions"))
            .output(Port::new("audio", Kind::mono(24_000), "audio"))
            .output(Port::new("text", Kind::of(Medium::Text), "text"))
            .example("x: { use: test.toy, in: { in: a, ask: b } }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Toy))
    }
}

const GRAPH: &str = "
graph: toy
lanes: [reply]
session: { mode: duplex, max-sessions: 2 }
nodes:
  mic: { use: session.in, audio: { rate: 16000 } }
  ask: { use: session.in, kind: signal }
  toy: { use: test.toy, in: { in: mic, ask: ask }, lane: reply }
  speaker: { use: session.out, in: toy.audio, lane: reply }
  said: { use: session.out, in: toy.text, lane: reply }
";

/// A host of it, on the clock of the runtime.
pub async fn host(limits: Limits) -> Arc<Host> {
    let mut r = Registry::base();
    r.add::<Toy>().unwrap();
    let plan = GraphFile::parse("toy.yaml", GRAPH).unwrap().check(&r, &CheckCx::default()).unwrap().0;
    let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
    let graph = engine.start(plan).await.unwrap();
    let mut capabilities = Capabilities::profile_d(200);
    capabilities.text_only_turn = false;
    Host::new(graph, engine.clock().clone(), capabilities, Defaults::default(), limits).unwrap()
}
