//! Front doors: HTTP and WebSocket in front of a [`Host`].
//!
//! [`router`] is an [`axum::Router`], so that a graph can be served inside somebody's own service as well as by
//! `omni-flow run`.

mod error;
mod gate;
mod health;
mod listen;
mod query;
mod scrape;
mod socket;
mod stats;

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use omni_flow::{Clock, Graph, Mode};
use serde_json::{Value, json};

pub use error::HttpError;
pub(crate) use gate::protocols;
pub use gate::{Gate, GateError};
pub use listen::{SEND_BUFFER, listen};
use query::Query;
pub use scrape::scrape;
pub use socket::Limits;
pub use stats::Stopping;

use crate::realtime::host::{Hello, Host};
use crate::realtime::wire::profile::Profile;

/// Bytes of each buffer of a socket; a message may be longer.
const BUFFER: usize = 8 << 10;

/// What a door serves, and to whom.
#[derive(Clone)]
pub struct Door {
    /// The graph.
    pub graph: Graph,
    /// The clock of its engine.
    pub clock: Clock,
    /// Its Realtime sessions; `None` if it is none to talk with.
    pub host: Option<Arc<Host>>,
    /// Its name, as `/v1/models` lists it.
    pub model: String,
    /// Who may come in.
    pub gate: Arc<Gate>,
    /// Limits of one socket.
    pub limits: Limits,
}

/// The routes of a door, without its [`page`].
pub fn router(door: Door) -> Router {
    Router::new()
        .route("/v1/realtime", get(realtime))
        .route("/v1/duplex", get(duplex))
        .route("/v1/models", get(models))
        .route("/v1/models/{id}", get(model))
        .fallback(missing)
        .with_state(door.clone())
        .merge(alive(&door))
        .merge(stats::routes(door))
}

/// The page at `/`, for who has nothing else there: `router(door).merge(page())`.
pub fn page() -> Router {
    crate::page::routes()
}

async fn realtime(
    State(door): State<Door>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let duplex = query.duplex == Some(true);
    let refused = query.duplex == Some(false) && door.mode() == Mode::Duplex;
    open(door, query, &headers, upgrade, duplex, refused.then_some("Realtime API is not available"))
}

async fn duplex(
    State(door): State<Door>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let refused = door.mode() == Mode::Turn;
    open(door, query, &headers, upgrade, true, refused.then_some("Duplex API is not available"))
}

impl Door {
    fn mode(&self) -> Mode {
        self.graph.plan().session.mode
    }
}

/// Opens a socket, to say in one error why it is `refused` or to talk.
fn open(
    door: Door,
    query: Query,
    headers: &HeaderMap,
    upgrade: WebSocketUpgrade,
    duplex: bool,
    refused: Option<&'static str>,
) -> Response {
    let offered = gate::protocols(headers);
    if let Err(e) = door.gate.admit(headers, &offered) {
        return HttpError::from(e).into_response();
    }
    let Some(host) = door.host else { return HttpError::not_bound("Realtime API").into_response() };
    let beta = offered.iter().any(|p| p.starts_with("openai-beta."))
        || headers.get("openai-beta").is_some_and(|v| v.to_str().is_ok_and(|v| v.contains("realtime=v1")));
    let profile = match (duplex, beta) {
        (true, _) => Profile::Duplex,
        (false, true) => Profile::Beta,
        (false, false) => Profile::Stock,
    };
    let hello = Hello { profile, autostart: query.autostart && !query.resume, model: query.model };
    let upgrade = small(upgrade).max_message_size(door.limits.frame).max_frame_size(door.limits.frame);
    let upgrade = if offered.iter().any(|p| p == "realtime") { upgrade.protocols(["realtime"]) } else { upgrade };
    if let Some(message) = refused {
        return upgrade.on_upgrade(move |socket| socket::refuse(socket, profile, message, door.limits));
    }
    upgrade.on_upgrade(move |socket| socket::serve(host, hello, socket, door.limits))
}

/// Buffers that fit speech: those of the socket layer's own size are most of the memory of a session.
pub(crate) fn small(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade.read_buffer_size(BUFFER).write_buffer_size(BUFFER)
}

/// One entry of `/v1/models`.
fn entry(door: &Door) -> Value {
    json!({
        "id": door.model,
        "object": "model",
        "created": 0,
        "owned_by": "omni-flow",
        "capabilities": door.host.as_ref().map_or(json!({}), |h| h.capabilities().to_json()),
    })
}

async fn models(State(door): State<Door>, headers: HeaderMap) -> Result<Json<Value>, HttpError> {
    door.gate.admit(&headers, &[])?;
    Ok(Json(json!({"object": "list", "data": [entry(&door)]})))
}

async fn model(State(door): State<Door>, Path(id): Path<String>, headers: HeaderMap) -> Result<Json<Value>, HttpError> {
    door.gate.admit(&headers, &[])?;
    if id == door.model {
        return Ok(Json(entry(&door)));
    }
    let shown: String = id.chars().take(64).collect();
    Err(HttpError::not_found(format!("The model `{shown}` does not exist.")).about("model"))
}

/// `/health` and `/ready`. Whoever watches the server needs no key to see that it lives.
fn alive(door: &Door) -> Router {
    let (graph, clock, seen) = (door.graph.clone(), door.clock.clone(), Arc::new(health::Health::default()));
    let look = move || {
        let (well, body) = seen.look(&graph, &clock);
        let status = if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        async move { (status, Json(body)) }
    };
    // A router is only there once every node is built and every edge is joined.
    let ready = || async { Json(json!({"status": "ready"})) };
    Router::new().route("/health", get(look)).route("/ready", get(ready))
}

async fn missing(uri: axum::http::Uri) -> HttpError {
    HttpError::not_found(format!("{} is not available", uri.path()))
}
