//! A session: everything that a client says and that a graph tells, in one order, and what follows from it.
//!
//! [`Session`] is one struct without I/O and without a clock. It is given client events, graph events and the time, and
//! answers with [`Effect`]s: events for the client and commands for the graph, in the order in which it decided them. At
//! most one response runs; each ends with exactly one `response.done`; after a cancel nothing of the old epoch is
//! shown. Sockets, journals and queues are around it and not in it.

mod answer;
mod graph;
mod ids;
mod input;
mod items;
mod playback;
mod response;
mod turns;
mod update;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub use graph::{AnswerPart, GraphCommand, GraphEvent, INPUT_RATE_HZ, Message, Prompt};
pub use ids::Ids;

use input::UserInput;
use response::Response;
use turns::Turn;

use crate::realtime::config::SessionConfig;
use crate::realtime::config::capability::Capabilities;
use crate::realtime::config::facts::SessionFacts;
use crate::realtime::rules::{items::Items, overlap::Overlap, pending::Pending};
use crate::realtime::wire::client::{ClientEvent, Incoming};
use crate::realtime::wire::client::response::ResponseOptions;
use crate::realtime::wire::client::signal::TurnSignal;
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::server::ServerEvent;
use crate::realtime::wire::server::response::CancelReason;
use crate::realtime::wire::server::session::{Playback, SessionState, SessionView, TurnState};

/// What follows from an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The client is told.
    Tell(ServerEvent),
    /// The graph is told.
    Graph(GraphCommand),
    /// Audio of this response that still waits to be sent is void, before anything that follows.
    Purge(Arc<str>),
    /// The session is over: after what precedes, nothing is told.
    Over {
        /// Why.
        reason: String,
    },
}

/// What a session is opened with.
pub struct Opening {
    /// Its id.
    pub id: String,
    /// Its configuration.
    pub config: SessionConfig,
    /// What the graph can do.
    pub capabilities: Capabilities,
    /// What the graph tells by itself.
    pub traits: GraphTraits,
    /// Names for items and responses.
    pub ids: Ids,
    /// When the session ends at the latest, Unix seconds.
    pub expires_at: u64,
    /// Further short acknowledgements.
    pub short_acks: Vec<String>,
}

/// What a graph tells, as far as the session's order of events depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphTraits {
    /// A transcript follows each turn.
    pub transcribes: bool,
    /// It finds turns itself, if asked to.
    pub detects: bool,
    /// Its text keeps step with its audio.
    pub aligned: bool,
    /// Samples per second of its audio.
    pub output_rate_hz: u32,
}

/// One session. See the [module](self).
pub struct Session {
    id: Arc<str>,
    config: Arc<SessionConfig>,
    capabilities: Arc<Capabilities>,
    traits: GraphTraits,
    state: SessionState,
    turn_state: TurnState,
    epoch: u64,
    turn_id: u64,
    ids: Ids,
    expires_at: u64,
    /// The newest answer asked of the graph.
    key: u64,
    input: UserInput,
    pending: Pending,
    turns: VecDeque<Turn>,
    items: Items,
    /// Items of the client that no answer has taken up.
    unanswered: usize,
    /// What a `response.create` asked, until its response exists.
    asked: Option<ResponseOptions>,
    response: Option<Running>,
    overlap: Overlap,
    short_acks: Vec<String>,
    /// The ledger of the last answer, as it is shown.
    playback: Playback,
    started: bool,
    audio_sent: bool,
    context_locked: bool,
    out: Vec<Effect>,
}

/// The active response.
struct Running {
    shown: Response,
    /// Its place among the answers in `items`.
    usage: crate::realtime::wire::server::response::Usage,
    encoder: crate::realtime::rules::output::Encoder,
    spoke: bool,
}
