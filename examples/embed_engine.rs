//! A graph inside another program: audio goes in and comes out by code, two sessions run side by side, one of them is
//! interrupted. `cargo run -p omni-flow-examples --example embed_engine`
//!
//! The graph measures loudness: a step turns each chunk of audio into an event. Nothing here needs a model or a file.

use omni_flow::{
    Body, BuildCx, BuildError, CheckCx, Emit, Engine, Event, Graph, GraphFile, Kind, Lane, Make, Medium, Payload, Pcm,
    Port, Registry, Schema, Signal, Stamp, Step, StepError, Terminal,
};

const RATE: u32 = 16_000;

const GRAPH: &str = "
graph: loudness
lanes: [measure]
session: { mode: duplex, max-sessions: 2 }
nodes:
  mic:   { use: session.in, audio: { rate: 16000 } }
  meter: { use: embed.meter, in: mic, lane: measure }
  # A window of four chunks: when the reader sleeps, the meter waits, then the microphone.
  level: { use: session.out, lane: measure, in: { from: meter, window: { items: 4 } } }
";

/// RMS of each chunk.
struct Meter;

impl Step for Meter {
    type In = Pcm;
    type Out = Signal;
    fn step(&mut self, stamp: &Stamp, audio: Pcm, out: &mut Emit<Signal>) -> Result<(), StepError> {
        let samples = audio.f32();
        let power = samples.iter().map(|s| s * s).sum::<f32>() / samples.len().max(1) as f32;
        let data = format!("{:.1}", 20.0 * power.sqrt().max(1e-6).log10());
        out.push(*stamp, Signal::Named { name: "dbfs".into(), data: data.into() });
        Ok(())
    }
}

#[derive(serde::Deserialize)]
struct NoOptions {}

impl Make for Meter {
    const NAME: &'static str = "embed.meter";
    type Config = NoOptions;
    fn schema() -> Schema {
        Schema::new("Measures loudness").input(Port::new("in", Kind::mono(RATE), "audio")).output(Port::new(
            "out",
            Kind::of(Medium::Signal),
            "its level in dB of full scale",
        ))
    }
    fn build(_: &NoOptions, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Meter))
    }
}

/// 20 ms of a sine of some loudness.
fn tone(amplitude: f32) -> Pcm {
    Pcm::mono(RATE, (0..320).map(|i| amplitude * (i as f32 * 0.17).sin()).collect())
}

/// Sends five chunks and prints what comes back.
async fn talk(graph: &Graph, name: &str, amplitude: f32) -> anyhow::Result<()> {
    let mut session = graph.open()?;
    let mut mic = session.input("mic").expect("the graph has a `mic`");
    let mut level = session.output("level").expect("the graph has a `level`");
    let feed = async move {
        for i in 1..=5 {
            mic.send(tone(amplitude / i as f32)).await?;
        }
        mic.end();
        anyhow::Ok(())
    };
    let read = async {
        loop {
            match level.next().await {
                Event::Data(stamp, Payload::Signal(Signal::Named { data, .. })) => {
                    println!("{name}: {data} dBFS at {:.2} s", stamp.pts.as_secs_f64());
                }
                Event::Data(..) => {}
                Event::Fence(epoch) => println!("{name}: interrupted, {epoch:?} begins"),
                Event::End(Terminal::End) => return anyhow::Ok(()),
                Event::End(Terminal::Error(e)) => return Err(e.into()),
            }
        }
    };
    tokio::try_join!(feed, read)?;
    Ok(session.wait().await?)
}

/// An answer that nobody wants any more is dropped wherever it is.
async fn interrupted(graph: &Graph) -> anyhow::Result<()> {
    let mut session = graph.open()?;
    let mut mic = session.input("mic").expect("the graph has a `mic`");
    let mut level = session.output("level").expect("the graph has a `level`");
    for _ in 0..3 {
        mic.send(tone(0.5)).await?;
    }
    // Lane 0 is `main`; `measure` is the first of the file.
    let measure = Lane::new(1).expect("a lane");
    session.fence(measure);
    // What is sent from here on was asked after the interruption.
    mic.send(tone(0.01)).await?;
    mic.end();
    let mut seen = Vec::new();
    loop {
        match level.next().await {
            Event::Data(stamp, _) => seen.push(stamp.pts.as_millis()),
            Event::Fence(_) => {}
            Event::End(_) => break,
        }
    }
    println!("after the fence only what was asked after it arrived: chunks at {seen:?} ms");
    session.wait().await?;
    let stats = session.stats();
    let stale: u64 = stats.edges.iter().map(|e| e.counts.stale).sum();
    println!(
        "{stale} chunks were dropped as stale; every edge is whole again: {}",
        stats.edges.iter().all(|e| e.depth == 0)
    );
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut registry = Registry::base();
    registry.add::<Meter>()?;
    // No node fences the lane: this program does. Said here, the check does not miss it.
    let cx = CheckCx { fences: vec!["measure".into()], ..CheckCx::default() };
    let (plan, warnings) = GraphFile::parse("loudness.yaml", GRAPH)?.check(&registry, &cx)?;
    eprint!("{}", warnings.render(false));
    let graph = Engine::new()?.start(plan).await?;
    tokio::try_join!(talk(&graph, "loud", 0.8), talk(&graph, "soft", 0.05))?;
    interrupted(&graph).await
}
