//! A Realtime client: it speaks a recording to a server, as one turn, and keeps what comes back.
//! `cargo run -p omni-flow-examples --example voice_echo [RECORDING [ANSWER.wav [URL]]]`
//!
//! Without a URL it serves a partner that gives back what it hears (`scripted-duplex` with an echo for an answer), on a
//! port of its own.

use std::path::PathBuf;
use std::sync::Arc;

use omni_flow::{CheckCx, Engine, GraphFile, Layers};
use omni_flow_media::file::decode;
use omni_flow_media::pcm::{Layout, PcmSpec, SampleFormat};
use omni_flow_media::resample::{Quality, Resampler};
use omni_flow_media::wav::WavWriter;
use omni_flow_transports::client::{Client, Command, Options, ResponseConfig, SessionConfig, TurnDetection};
use omni_flow_transports::door::{self, Door, Gate};
use omni_flow_transports::realtime::config::Defaults;
use omni_flow_transports::realtime::config::capability::Capabilities;
use omni_flow_transports::realtime::host::{Host, Limits};

const GRAPH: &str = include_str!("../graphs/scripted-duplex.yaml");
/// Ten minutes at 48 kHz.
const LONGEST: u64 = 10 * 60 * 48_000;

/// Serves the partner, and says where.
async fn serve() -> anyhow::Result<String> {
    let echo = r#"{"nodes": {"partner": {"answers": [{"echo": true, "chunk_ms": 200, "text": ""}]}}}"#;
    let layers = Layers { overrides: vec![echo.to_owned()], ..Layers::default() };
    let registry = omni_flow_nodes::registry::registry()?;
    let file = GraphFile::parse_with("scripted-duplex.yaml", GRAPH, &layers)?;
    let (plan, _) = file.check(&registry, &CheckCx::default())?;
    let engine = Engine::new()?;
    let (graph, clock) = (engine.start(plan).await?, engine.clock().clone());
    let capabilities = Capabilities::profile_d(1000);
    let host = Host::new(graph.clone(), clock.clone(), capabilities, Defaults::default(), Limits::default())?;
    let (model, gate) = ("echo".to_owned(), Arc::new(Gate::default()));
    let door = Door { graph, clock, host: Some(host), model, gate, limits: door::Limits::default() };
    let listener = door::listen("127.0.0.1:0".parse()?)?;
    let url = format!("ws://{}/v1/realtime", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, door::router(door)).await });
    Ok(url)
}

/// A recording as mono PCM16 of some rate.
fn read(path: &PathBuf, rate: u32) -> anyhow::Result<Vec<i16>> {
    let recording = decode(path, LONGEST)?;
    let channels = recording.channels;
    let mono: Vec<f32> = recording.samples.chunks(channels).map(|f| f.iter().sum::<f32>() / channels as f32).collect();
    let mut resampler = Resampler::new(recording.rate, rate, 1, Quality::Good)?;
    let mut out = Vec::new();
    resampler.push(&mono, &mut out);
    resampler.flush(&mut out);
    Ok(out.into_iter().map(|s| (s * 32767.0) as i16).collect())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let recording =
        words.next().map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../question.wav").into(), PathBuf::from);
    let answer = words.next().map_or_else(|| std::env::temp_dir().join("voice-echo.wav"), PathBuf::from);
    let url = match words.next() {
        Some(url) => url,
        None => serve().await?,
    };
    let session = Some(SessionConfig::new().turns(TurnDetection::Manual));
    let client = Client::connect(&url, Options { session, ..Options::default() }).await?;
    let rate = client.input_format().rate();
    let speech = read(&recording, rate)?;
    println!("spoke {:.2} s", speech.len() as f64 / f64::from(rate));
    for frame in speech.chunks(rate as usize / 50) {
        client.send(Command::append_pcm16(frame)).await?;
    }
    client.send(Command::commit()).await?;
    let mut response = client.respond(ResponseConfig::new()).await?;
    let rate = client.output_format().rate();
    let mut file = WavWriter::create(&answer, PcmSpec::new(SampleFormat::I16, rate, Layout::MONO)?)?;
    // Written while it comes.
    while let Some(audio) = response.next_audio().await {
        file.write(&audio.samples())?;
    }
    let end = response.done().await?;
    println!("heard {:.2} s, {:?}", file.frames() as f64 / f64::from(rate), end.status);
    file.finish()?;
    client.close().await?;
    Ok(())
}
