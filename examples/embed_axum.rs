//! Realtime sessions inside a web service of one's own: its routes stay, `/v1/realtime` joins them, and only who has a key
//! comes in. `cargo run -p omni-flow-examples --example embed_axum [ADDRESS]`
//!
//! With an address (`127.0.0.1:8080`) it serves until it is stopped; without one it tries itself out and ends.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use omni_flow::{CheckCx, Engine, GraphFile};
use omni_flow_transports::client::{Client, ClientError, Options};
use omni_flow_transports::door::{self, Door, Gate};
use omni_flow_transports::realtime::config::Defaults;
use omni_flow_transports::realtime::config::capability::Capabilities;
use omni_flow_transports::realtime::host::{Host, Limits};

const GRAPH: &str = include_str!("../graphs/scripted-duplex.yaml");
const KEY: &str = "sk-example";

/// The service: a page of its own, and the graph's routes.
async fn service() -> anyhow::Result<Router> {
    let registry = omni_flow_nodes::registry::registry()?;
    let (plan, _) = GraphFile::parse("scripted-duplex.yaml", GRAPH)?.check(&registry, &CheckCx::default())?;
    let engine = Engine::new()?;
    let (graph, clock) = (engine.start(plan).await?, engine.clock().clone());
    let capabilities = Capabilities::profile_d(1000);
    let host = Host::new(graph.clone(), clock.clone(), capabilities, Defaults::default(), Limits::default())?;
    let door = Door {
        graph,
        clock,
        host: Some(host),
        model: "partner".to_owned(),
        gate: Arc::new(Gate::new([KEY], [])),
        limits: door::Limits::default(),
    };
    Ok(Router::new().route("/", get(|| async { "a shop that also talks" })).merge(door::router(door)))
}

/// What a client of the service sees.
async fn try_out(address: &str) -> anyhow::Result<()> {
    let url = format!("ws://{address}/v1/realtime");
    match Client::connect(&url, Options::default()).await {
        Err(ClientError::Refused { status, .. }) => println!("without a key: {status}"),
        other => anyhow::bail!("without a key: {other:?}"),
    }
    let client = Client::connect(&url, Options { key: Some(KEY.into()), ..Options::default() }).await?;
    println!("with a key: a session of type {}", client.session()["type"]);
    println!("closed: {}", client.close().await?.reason);
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let given = std::env::args().nth(1);
    // With buffers as a door wants them: what lies in the system's cannot be taken back by an interruption.
    let listener = door::listen(given.as_deref().unwrap_or("127.0.0.1:0").parse()?)?;
    let address = listener.local_addr()?.to_string();
    let served = axum::serve(listener, service().await?);
    match given {
        Some(_) => {
            println!("http://{address}/ and ws://{address}/v1/realtime with the key {KEY}");
            Ok(served.await?)
        }
        None => {
            tokio::spawn(async move { served.await });
            try_out(&address).await
        }
    }
}
