//! Routes that answer requests over a graph: speech, transcriptions, chat.
//!
//! Which of them a graph serves follows from its [`Ends`]. Each request has a session of the graph for itself, and the
//! session is aborted as soon as the request is: its client has gone, does not read, or has its answer. Everything is
//! bounded by [`Limits`], and every wait has an end. The routes stand in the document at `/openapi.json`.

mod audio;
mod chat;
mod ends;
mod fields;
mod form;
mod job;
mod limits;
mod observe;
mod openapi;
mod room;
mod run;
mod speech;
mod stream;
mod transcribe;
mod voices;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderMap;
use axum::routing::{delete, get, post};
use omni_flow::{Clock, Graph};

pub use ends::{Chat, Ends, Speech, Transcription};
pub use limits::Limits;
pub use observe::observe;

use crate::door::{Door, Gate, HttpError};
use job::Job;
use room::Room;
use voices::Voices;

/// What the routes are told beside their graph.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Limits of all requests.
    pub limits: Limits,
    /// `serve.routes`: of the routes that the graph could serve, those that it does; `None` is all but translations. Names
    /// are paths, with or without `/v1/`.
    pub only: Option<Vec<String>>,
    /// Voices that the graph has.
    pub voices: Vec<String>,
    /// Where uploaded voices are kept, `serve.voices.dir`; `None` keeps them in memory.
    pub voices_dir: Option<PathBuf>,
}

/// What all handlers share.
struct Shared {
    graph: Graph,
    clock: Clock,
    model: String,
    gate: Arc<Gate>,
    ends: Ends,
    config: Config,
    voices: Voices,
    /// Memory for bodies.
    room: Room,
    /// The graph's name, as a label.
    name: Arc<str>,
}

type Api = Arc<Shared>;

impl Shared {
    /// Lets a request in.
    fn admit(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        Ok(self.gate.admit(headers, &crate::door::protocols(headers))?)
    }
    /// Whether the file lets a route be served, if the graph can.
    fn allowed(&self, path: &str) -> bool {
        let path = if path == VOICE { VOICES } else { path };
        match &self.config.only {
            None => path != TRANSLATIONS,
            Some(only) => only.iter().any(|o| short(o) == short(path)),
        }
    }
    fn speech(&self, path: &str) -> Result<&Speech, HttpError> {
        if let (None, Some(_)) = (&self.ends.speech, self.ends.chat.as_ref().and_then(|c| c.speaker.as_ref())) {
            return Err(HttpError::bad(
                "the audio of this graph is part of its answers: ask for it at /v1/chat/completions",
            ));
        }
        self.ends.speech.as_ref().filter(|_| self.allowed(path)).ok_or_else(|| HttpError::not_bound("Speech API"))
    }
    /// The model, if the request names one, is the one that is served.
    fn model(&self, named: Option<&str>) -> Result<(), HttpError> {
        match named {
            Some(other) if other != self.model => Err(HttpError::no_model(other)),
            _ => Ok(()),
        }
    }
    fn job(&self, route: &'static str) -> Job {
        Job::begin(&self.name, route, &self.clock)
    }
}

const SPEECH: &str = "/v1/audio/speech";
const SPEECH_BATCH: &str = "/v1/audio/speech/batch";
const SPEECH_STREAM: &str = "/v1/audio/speech/stream";
const VOICES: &str = "/v1/audio/voices";
const VOICE: &str = "/v1/audio/voices/{name}";
const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
const TRANSLATIONS: &str = "/v1/audio/translations";
const CHAT: &str = "/v1/chat/completions";
const OPENAPI: &str = "/openapi.json";

/// The paths that `serve.routes` may name; `/v1/realtime` and `/v1/duplex` beside them.
pub const ROUTES: [&str; 7] = [SPEECH, SPEECH_BATCH, SPEECH_STREAM, VOICES, TRANSCRIPTIONS, TRANSLATIONS, CHAT];

/// A path as `serve.routes` may write it: `audio/speech` for `/v1/audio/speech`.
pub fn short(path: &str) -> &str {
    let path = path.trim_matches('/');
    path.strip_prefix("v1/").unwrap_or(path)
}

/// The routes over the graph of a door. All of them exist; those that the graph does not bind answer 404.
///
/// # Errors
/// The folder of uploaded voices cannot be made or read.
pub fn routes(door: &Door, config: Config) -> std::io::Result<Router> {
    let ends = Ends::of(door.graph.plan());
    let name: Arc<str> = door.graph.plan().name.as_str().into();
    crate::metrics::describe(&name);
    let voices = Voices::open(config.voices_dir.as_deref(), &config.limits)?;
    let api: Api = Arc::new(Shared {
        graph: door.graph.clone(),
        clock: door.clock.clone(),
        model: door.model.clone(),
        gate: door.gate.clone(),
        ends,
        room: Room::new(config.limits.bodies_bytes),
        config,
        voices,
        name,
    });
    Ok(Router::new()
        .route(SPEECH, post(speech::speak))
        .route(SPEECH_BATCH, post(speech::batch::speak))
        .route(SPEECH_STREAM, get(speech::socket::open))
        .route(VOICES, get(voices::list).post(voices::upload))
        .route(VOICE, delete(voices::remove))
        .route(TRANSCRIPTIONS, post(transcribe::transcribe))
        .route(TRANSLATIONS, post(transcribe::translate))
        .route(CHAT, post(chat::complete))
        .route(OPENAPI, get(openapi::document))
        // Each route has a limit of its own.
        .layer(DefaultBodyLimit::disable())
        .with_state(api))
}
