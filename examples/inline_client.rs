//! A conversation without a socket: the engine, a graph and its Realtime client in one process. What stands in `converse`
//! is the same for a server elsewhere. `cargo run -p omni-flow-examples --example inline_client [URL]`
//!
//! Without a URL it embeds the graph `scripted-duplex`, which needs no model.

use std::sync::Arc;

use omni_flow::{CheckCx, Engine, GraphFile};
use omni_flow_transports::client::{Client, Command, Options, ResponseConfig, SessionConfig, TurnDetection};
use omni_flow_transports::realtime::config::Defaults;
use omni_flow_transports::realtime::config::capability::Capabilities;
use omni_flow_transports::realtime::host::{Host, Limits};

const GRAPH: &str = include_str!("../graphs/scripted-duplex.yaml");

/// A host of the graph: sessions for clients, whatever they come over.
async fn embedded() -> anyhow::Result<Arc<Host>> {
    let registry = omni_flow_nodes::registry::registry()?;
    let (plan, _) = GraphFile::parse("scripted-duplex.yaml", GRAPH)?.check(&registry, &CheckCx::default())?;
    let engine = Engine::new()?;
    let graph = engine.start(plan).await?;
    let capabilities = Capabilities::profile_d(1000);
    Ok(Host::new(graph, engine.clock().clone(), capabilities, Defaults::default(), Limits::default())?)
}

/// Two turns. Nothing here knows where the session is.
async fn converse(client: Client) -> anyhow::Result<()> {
    let rate = client.input_format().rate() as usize;
    for turn in 1..=2 {
        // A second of a tone stands for speech.
        let tone: Vec<i16> = (0..rate).map(|i| ((i as f32 * 0.05).sin() * 8000.0) as i16).collect();
        for frame in tone.chunks(rate / 50) {
            client.send(Command::append_pcm16(frame)).await?;
        }
        client.send(Command::commit()).await?;
        let mut answer = client.respond(ResponseConfig::new()).await?;
        let mut heard = std::time::Duration::ZERO;
        // Played as it comes, in a real application.
        while let Some(audio) = answer.next_audio().await {
            heard += audio.duration();
        }
        let end = answer.done().await?;
        println!("turn {turn}: {:?}, \"{}\", {:.1} s of audio", end.status, end.text, heard.as_secs_f64());
    }
    println!("closed: {}", client.close().await?.reason);
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let session = Some(SessionConfig::new().turns(TurnDetection::Manual));
    let options = Options { session, ..Options::default() };
    let client = match std::env::args().nth(1) {
        Some(url) => Client::connect(&url, options).await?,
        None => Client::in_process(embedded().await?, options).await?,
    };
    converse(client).await
}
