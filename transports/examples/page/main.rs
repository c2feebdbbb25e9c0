//! Serves the page with a conversation partner that needs no model, for trying and testing the page:
//!
//! ```text
//! cargo run -p omni-flow-transports --example page -- [ADDRESS] [KEY]
//! ```
//!
//! `ADDRESS` is 127.0.0.1:8080 unless given; with `KEY`, only holders of it come in. With `MUTE=1` in the environment the
//! graph is served without Realtime sessions.

mod partner;

use std::error::Error;
use std::sync::Arc;

use omni_flow::{CheckCx, Engine, GraphFile, Registry};
use omni_flow_transports::door::{self, Door, Gate};
use omni_flow_transports::realtime::config::Defaults;
use omni_flow_transports::realtime::config::capability::Capabilities;
use omni_flow_transports::realtime::host::{self, Host};
use tokio::net::TcpListener;

const GRAPH: &str = "
graph: parrot
lanes: [reply]
session: { mode: duplex, max-sessions: 4 }
nodes:
  mic: { use: session.in, audio: { rate: 16000 } }
  control: { use: session.in, kind: signal }
  ask: { use: session.in, kind: signal }
  turn: { use: demo.turns, in: { in: mic, control: { from: control, deadline: off } }, fences: reply }
  words: { use: demo.words, in: { from: ask, deadline: off }, lane: reply }
  voice: { use: demo.voice, in: words, lane: reply }
  playout: { use: demo.pace, in: { from: voice, window: { span: 2s } }, lane: reply }
  speaker: { use: session.out, in: playout, lane: reply }
  said-out: { use: session.out, in: words, lane: reply }
  heard-out: { use: session.out, in: turn.heard }
  turn-out: { use: session.out, in: turn.events }
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let key = args.next();
    let mut registry = Registry::base();
    partner::add(&mut registry)?;
    let plan = GraphFile::parse("parrot.yaml", GRAPH)?.check(&registry, &CheckCx::default())?.0;
    let engine = Engine::new()?;
    let (graph, clock) = (engine.start(plan).await?, engine.clock().clone());
    let capabilities = Capabilities { text_only_turn: true, ..Capabilities::profile_d(20) };
    let limits = host::Limits::default();
    let talks = std::env::var_os("MUTE").is_none();
    let host = Host::new(graph.clone(), clock.clone(), capabilities, Defaults::default(), limits)?;
    let door = Door {
        graph,
        clock,
        host: talks.then_some(host),
        model: "parrot".to_owned(),
        gate: Arc::new(Gate::new(key.as_deref(), [])),
        limits: door::Limits::default(),
    };
    let listener = TcpListener::bind(&address).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, door::router(door).merge(door::page())).await?;
    Ok(())
}
