//! `omni-flow run GRAPH` without an input: the graph is served to clients over HTTP and WebSocket until Ctrl-C.
//!
//! The socket is taken before anything is loaded, so that a port in use is known at once; until the models are there every
//! request is told that the server is starting. The first Ctrl-C lets answers under way end, the second stops at once.

mod metrics;
mod told;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use omni_flow::{Client, Engine, Graph, GraphFile, Plan};
use omni_flow_transports::api;
use omni_flow_transports::door::{self, Door};
use omni_flow_transports::realtime::config::capability::Capabilities;
use omni_flow_transports::realtime::host::{Ends, Host, facts};
use omni_flow_transports::serve::{Address, App, Listener, Metrics, Settings, SettingsError, Shield, Tls, routes};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::run::{Stop, abort_timeout, output_timeout, say, summary};

/// A graph that is to be served, and how.
pub struct Job {
    plan: Plan,
    settings: Settings,
    /// What can be done in a conversation; `None` if there are none.
    capabilities: Option<Capabilities>,
    tls: Option<Tls>,
    args: RunArgs,
}

/// True if the command line gives the graph nothing to hear, and it waits for somebody.
pub fn wanted(args: &RunArgs, plan: &Plan) -> bool {
    let files = !args.inputs.is_empty() || !args.outputs.is_empty() || args.text.is_some();
    let listens = || plan.nodes.iter().any(|n| n.schema.client == Some(Client::In));
    args.listen.is_some() || (!files && listens())
}

/// Everything that can be wrong before a model is loaded.
pub fn prepare(args: &RunArgs, plan: Plan, file: &GraphFile) -> Result<Job, Failure> {
    let mut settings = Settings::of(file, &plan, args.listen.as_deref()).map_err(|e| match &e {
        SettingsError::Open(_) => Failure::usage(e.to_string(), "or listen on 127.0.0.1 only"),
        _ => Failure::usage(e.to_string(), ""),
    })?;
    let answers = api::Ends::of(&plan).any();
    let talks = match Ends::of(&plan) {
        Ok(_) => settings.realtime,
        Err(e) if !answers => {
            return Err(Failure::usage(
                format!("`{}` cannot be served: {e}", plan.name),
                "or run it with --input FILE",
            ));
        }
        Err(_) => false,
    };
    if let Some(limit) = output_timeout()? {
        settings.api.limits.output_wait = limit;
    }
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(Tls::files(cert, key)),
        _ if args.tls_self_signed => Some(Tls::self_signed(&[])),
        _ => None,
    };
    let tls = tls.transpose().map_err(|e| Failure::usage(e.to_string(), "give --tls-cert and --tls-key PEM files"))?;
    let capabilities = talks.then(|| facts(&plan, file)).transpose().map_err(|e| Failure::usage(e.to_string(), ""))?;
    Ok(Job { plan, settings, capabilities, tls, args: args.clone() })
}

/// Serves until the user has had enough.
pub async fn go(job: Job) -> Result<(), Failure> {
    let stop = Stop::listen();
    let Job { plan, settings, capabilities, tls, args } = job;
    let recorder = metrics::Recorder::install()?;
    let engine = crate::run::engine(&args, abort_timeout()?)?;
    let (halt, halted) = watch::channel(false);
    let app = App::default();
    let secure = tls.is_some();
    let fingerprint = tls.as_ref().filter(|_| args.tls_self_signed).map(|t| t.fingerprint().to_owned());
    let mut servers = JoinSet::new();
    let at = listen(&settings.listen, tls, &app, &halted, &mut servers)?;
    let gate = Arc::new(settings.gate.clone());
    let scrape = door::scrape(gate.clone(), move || recorder.render());
    if let Metrics::At(address) = &settings.metrics {
        // They answer while the graph starts, too.
        let own = App::default();
        own.ready(scrape.clone(), halted.clone());
        listen(address, None, &own, &halted, &mut servers)?;
    }
    let began = Instant::now();
    say(&args, &format!("starting {}: {}", plan.name, summary(&plan)));
    let graph = tokio::select! {
        biased;
        () = stop.asked(1) => return Err(Failure::Interrupted),
        started = engine.start(plan) => started.map_err(anyhow::Error::from)?,
    };
    let host = capabilities.map(|can| host(&engine, &graph, &settings, can)).transpose()?;
    let door = Door {
        graph: graph.clone(),
        clock: engine.clock().clone(),
        host: host.clone(),
        model: graph.plan().name.clone(),
        gate,
        limits: settings.socket,
    };
    let router = routes(door, &settings, scrape).context("the folder of voices cannot be used")?;
    app.ready(router, halted.clone());
    told::ready(&args, &graph, (at, host.is_some()), secure, fingerprint.as_deref(), began.elapsed());
    stop.asked(1).await;
    let _ = halt.send(true);
    told::stopping(&args, settings.drain);
    let drained = async {
        let drained = match &host {
            Some(host) => host.drain(settings.drain).await,
            None => true,
        };
        // What is left are requests that are being answered.
        let _ = tokio::time::timeout(settings.drain, async { while servers.join_next().await.is_some() {} }).await;
        drained
    };
    tokio::select! {
        biased;
        () = stop.asked(2) => Err(Failure::Interrupted),
        drained = drained => {
            if !drained {
                tracing::warn!("not every session let go in time");
            }
            told::stopped(&args);
            Ok(())
        }
    }
}

fn listen(
    address: &Address,
    tls: Option<Tls>,
    app: &App,
    halted: &watch::Receiver<bool>,
    servers: &mut JoinSet<()>,
) -> Result<SocketAddr, Failure> {
    let listener = Listener::bind(address, tls, Shield::default()).map_err(|e| match e.kind() {
        std::io::ErrorKind::AddrInUse => Failure::usage(
            format!("{address} is in use by another program"),
            "stop that one, or give another port: --listen 127.0.0.1:0 takes any that is free",
        ),
        std::io::ErrorKind::PermissionDenied => {
            Failure::usage(format!("{address}: {e}"), "ports below 1024 are for the system; use one above")
        }
        _ => Failure::usage(format!("cannot listen at {address}: {e}"), "give an address of this machine to --listen"),
    })?;
    let at = listener.address().context("the socket has no address")?;
    servers.spawn(listener.serve(app.clone(), halted.clone()));
    Ok(at)
}

fn host(engine: &Engine, graph: &Graph, settings: &Settings, capabilities: Capabilities) -> Result<Arc<Host>, Failure> {
    let (clock, defaults) = (engine.clock().clone(), settings.defaults.clone());
    Host::new(graph.clone(), clock, capabilities, defaults, settings.host.clone()).map_err(|e| anyhow!(e).into())
}
