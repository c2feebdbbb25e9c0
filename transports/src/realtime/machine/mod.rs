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
mod native;
mod playback;
mod response;
mod turns;
mod update;

use std::collections::VecDeque;
use std::sync::Arc;

pub use graph::{AnswerPart, GraphCommand, GraphEvent, INPUT_RATE_HZ, Message, Prompt};
pub use ids::Ids;

use answer::Running;
use input::UserInput;
use native::Native;
use turns::Turn;

use crate::realtime::config::SessionConfig;
use crate::realtime::config::capability::Capabilities;
use crate::realtime::config::facts::SessionFacts;
use crate::realtime::rules::items::{self as conversation, Conversation};
use crate::realtime::rules::overlap::Overlap;
use crate::realtime::rules::pending::{self, Pending};
use crate::realtime::rules::short_acks::ShortAcks;
use crate::realtime::wire::client::signal::TurnSignal;
use crate::realtime::wire::client::{ClientEvent, Incoming};
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
#[derive(Debug)]
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
    /// Bounds of pending input.
    pub pending: pending::Limits,
    /// Bounds of the conversation.
    pub conversation: conversation::Limits,
    /// Units of silence in a row that a model is given to go on speaking.
    pub silence_units: u32,
    /// It was opened with a configuration of the client's: what is fixed in an open session is fixed at once.
    pub configured: bool,
}

/// What a graph tells, as far as the session's order of events depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphTraits {
    /// A transcript follows each turn.
    pub transcribes: bool,
    /// It finds turns itself, if asked to.
    pub detects: bool,
    /// It speaks its answers.
    pub speaks: bool,
    /// Its text keeps step with its audio.
    pub aligned: bool,
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
    items: Conversation,
    /// Items of the client that no answer has taken up, and whether a turn or a function's result is among what waits.
    unanswered: usize,
    unanswered_turn: bool,
    response: Option<Running>,
    native: Native,
    overlap: Overlap,
    short_acks: Arc<ShortAcks>,
    /// The ledger of the last answer, as it is shown.
    playback: Playback,
    configured: bool,
    started: bool,
    audio_sent: bool,
    out: Vec<Effect>,
}

impl Session {
    /// A session, and what its opening asks of the graph. `session.created` is told by whoever attaches a socket.
    pub fn open(opening: Opening) -> (Self, Vec<Effect>) {
        let detect = opening.config.turn_detection.clone();
        let mut me = Self {
            id: opening.id.into(),
            config: Arc::new(opening.config),
            capabilities: Arc::new(opening.capabilities),
            traits: opening.traits,
            state: SessionState::Open,
            turn_state: TurnState::Idle,
            epoch: 0,
            turn_id: 0,
            ids: opening.ids,
            expires_at: opening.expires_at,
            key: 0,
            input: UserInput::new(),
            pending: Pending::new(opening.pending),
            turns: VecDeque::new(),
            items: Conversation::new(opening.conversation),
            unanswered: 0,
            unanswered_turn: false,
            response: None,
            native: Native::new(opening.silence_units),
            overlap: Overlap::new(),
            short_acks: Arc::new(ShortAcks::with(opening.short_acks.iter().map(String::as_str))),
            playback: Playback::default(),
            configured: opening.configured,
            started: false,
            audio_sent: false,
            out: Vec::new(),
        };
        me.out.push(Effect::Graph(GraphCommand::Detect(detect)));
        me.give_context();
        if let Some(text) = me.config.initial_user_text.clone() {
            // A first message of any length fits an empty conversation, or is too long to be answered.
            let _ = me.add_user_text(text);
        }
        let out = std::mem::take(&mut me.out);
        (me, out)
    }
    /// Its id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }
    /// Its configuration as it is now.
    pub fn config(&self) -> &Arc<SessionConfig> {
        &self.config
    }
    /// The session as it is shown.
    pub fn view(&self) -> SessionView {
        let active = self.response.as_ref();
        SessionView {
            config: self.config.clone(),
            facts: SessionFacts {
                id: self.id.to_string(),
                state: self.state,
                turn_state: self.turn_state,
                epoch: self.epoch,
                turn_id: self.turn_id,
                active_request_id: active.map(|r| format!("{}-{}", self.id, r.shown.key)),
                active_response_id: active.map(|r| r.shown.id.to_string()),
                active_response_turn_id: active.map(|r| r.shown.turn_id()),
                playback: self.playback,
                expires_at: self.expires_at,
                capabilities: (*self.capabilities).clone(),
            },
        }
    }
    /// True while an answer or a turn of the user is under way: the session is not idle then.
    pub fn busy(&self) -> bool {
        self.response.is_some() || !self.turns.is_empty() || self.native.awaits()
    }
    /// What a client said, and what follows from it. A refusal is told, with the client's `event_id`, and changes nothing
    /// else.
    pub fn client(&mut self, incoming: Incoming) -> Vec<Effect> {
        if self.state != SessionState::Open {
            let code = if self.state == SessionState::Closing { Code::SessionClosed } else { Code::UnknownSession };
            return self.refuse(Refusal::new(code, "the session is closed; open another one"), incoming.event_id);
        }
        if let Err(refusal) = self.event(incoming.event) {
            // What was decided before the refusal was not: a refused event changes nothing.
            self.tell(ServerEvent::Error { refusal, event_id: incoming.event_id });
        }
        std::mem::take(&mut self.out)
    }
    /// Tells a refusal that was decided elsewhere: what cannot be read, what the socket does not take.
    pub fn refuse(&mut self, refusal: Refusal, event_id: Option<String>) -> Vec<Effect> {
        self.tell(ServerEvent::Error { refusal, event_id });
        std::mem::take(&mut self.out)
    }
    fn event(&mut self, event: ClientEvent) -> Result<(), Refusal> {
        match event {
            ClientEvent::SessionUpdate(given) => self.update(&given)?,
            ClientEvent::Heartbeat => self.tell(ServerEvent::HeartbeatAck { session_id: self.id.to_string() }),
            // The journal is not the session's.
            ClientEvent::EventAck(_) => {}
            ClientEvent::Close { reason } => self.close(&reason),
            ClientEvent::Resume(_) => {
                let message = "a session is open on this connection; resume as the first message of a new one";
                return Err(Refusal::new(Code::UnsupportedSessionResume, message));
            }
            ClientEvent::Append(append) => self.append(&append)?,
            ClientEvent::Commit(commit) => self.commit(commit)?,
            ClientEvent::InputClear => self.clear_input(),
            ClientEvent::InputCancel => {
                self.epoch += 1;
                self.clear_input();
            }
            ClientEvent::TextAppend { text } => {
                if self.capabilities.native() {
                    let message = "this model hears; it takes no text beside the audio";
                    return Err(Refusal::new(Code::NativeTextAppendUnsupported, message));
                }
                self.append_text(&text);
            }
            ClientEvent::ItemCreate(create) => self.create_item(create)?,
            ClientEvent::ItemRetrieve { item_id } => self.retrieve(&item_id)?,
            ClientEvent::ItemDelete { item_id } => self.delete(&item_id)?,
            ClientEvent::ItemTruncate(cut) => self.truncate(cut)?,
            ClientEvent::ResponseCreate(options) => self.create(*options)?,
            ClientEvent::ResponseCancel { response_id } => {
                if !self.is_active(response_id.as_deref()) {
                    return Err(Refusal::cancel_not_active());
                }
                self.epoch += 1;
                self.cancel(CancelReason::ClientCancelled);
                self.advance();
            }
            ClientEvent::OutputClear { response_id } => self.clear_output(response_id)?,
            ClientEvent::BargeIn => self.barge_in(),
            ClientEvent::TurnSignal(signal) => self.signal(signal)?,
            ClientEvent::PlaybackAck(ack) => self.acknowledge(&ack)?,
        }
        Ok(())
    }
    fn is_active(&self, response: Option<&str>) -> bool {
        self.response.as_ref().is_some_and(|r| response.is_none_or(|id| id == &*r.shown.id))
    }
    fn clear_output(&mut self, response_id: Option<String>) -> Result<(), Refusal> {
        if self.is_active(response_id.as_deref()) {
            self.epoch += 1;
            let id = self.response.as_ref().map(|r| r.shown.id.to_string()).unwrap_or_default();
            self.tell(ServerEvent::OutputCleared { response_id: id });
            self.cancel(CancelReason::OutputAudioBufferClear);
            self.advance();
            return Ok(());
        }
        match response_id.filter(|id| self.items.answer(id).is_some()) {
            Some(response_id) => self.tell(ServerEvent::OutputCleared { response_id }),
            None => return Err(Refusal::cancel_not_active()),
        }
        Ok(())
    }
    fn barge_in(&mut self) {
        let session_id = self.id.to_string();
        if !self.capabilities.barge_in {
            return self.tell(ServerEvent::Overlap(crate::realtime::wire::server::Overlap {
                session_id,
                epoch: self.epoch,
                policy: self.config.overlap.policy,
                action: "listen",
                reason: "barge_in_unsupported",
                duration_ms: 0,
                overlap_speech_ms: 0,
                buffer_audio: false,
                defer_runtime_append: false,
            }));
        }
        self.epoch += 1;
        self.cancel(CancelReason::BargeIn);
        self.turn_state = TurnState::BargeIn;
        self.turned("barge_in");
        self.advance();
    }
    fn turned(&mut self, event: &str) {
        let (session_id, turn_state, epoch) = (self.id.to_string(), self.turn_state, self.epoch);
        self.tell(ServerEvent::Turn { session_id, event: event.to_owned(), turn_state, epoch });
    }
    fn signal(&mut self, signal: TurnSignal) -> Result<(), Refusal> {
        match signal {
            TurnSignal::Close => self.close("client_close"),
            TurnSignal::Timeout => self.close("timeout"),
            TurnSignal::PlaybackAck { played_ms, committed_ms } => {
                let played_ms = played_ms.unwrap_or_default();
                let ack = crate::realtime::wire::client::PlaybackAck {
                    played_ms,
                    committed_ms: committed_ms.unwrap_or(played_ms),
                    response_id: None,
                    item_id: None,
                    truncate: false,
                };
                self.acknowledge(&ack)?;
            }
            other => {
                if let Some(state) = other.turn_state() {
                    self.turn_state = state;
                }
                self.turned(other.as_str());
            }
        }
        Ok(())
    }
    /// What the graph told, and what follows from it.
    pub fn graph(&mut self, event: GraphEvent) -> Vec<Effect> {
        if self.state == SessionState::Open {
            match event {
                GraphEvent::Taken(bytes) => self.taken(bytes),
                GraphEvent::SpeechStarted { at } => self.speech_started(at),
                GraphEvent::SpeechStopped { at } => self.speech_stopped(at),
                GraphEvent::TurnEnded { start, end, committed } => self.turn_ended(start, end, committed),
                GraphEvent::Transcript { start, text } => self.transcript(start, &text),
                GraphEvent::Answer { key, part } => self.part(key, part),
                GraphEvent::Failed { message } => {
                    let refusal = Refusal::new(Code::EngineError, message);
                    if self.response.is_some() {
                        self.fail(refusal);
                    } else {
                        self.tell(ServerEvent::Error { refusal, event_id: None });
                    }
                    self.over("engine_error");
                }
            }
        }
        std::mem::take(&mut self.out)
    }
    /// The reader did not keep up: the answer has failed and the session is over.
    pub fn overflow(&mut self) -> Vec<Effect> {
        if self.state == SessionState::Open {
            let message = "events were not read in time; read them as they come, or ask for shorter answers";
            if let Some(running) = &self.response {
                self.out.push(Effect::Purge(running.shown.id.clone()));
            }
            self.fail(Refusal::new(Code::OutputOverflow, message));
            self.over("output_overflow");
        }
        std::mem::take(&mut self.out)
    }
    /// Ends the session for a reason of the server's.
    pub fn end(&mut self, reason: &str) -> Vec<Effect> {
        self.close(reason);
        std::mem::take(&mut self.out)
    }
    fn close(&mut self, reason: &str) {
        if self.state == SessionState::Open {
            self.epoch += 1;
            self.cancel(CancelReason::ClientCancelled);
            self.over(reason);
        }
    }
    fn over(&mut self, reason: &str) {
        self.state = SessionState::Closing;
        self.turns.clear();
        self.native.clear();
        self.out.push(Effect::Over { reason: crate::realtime::rules::outbox::close_reason(reason).to_owned() });
    }
    /// Its graph is gone: nothing more is said but that.
    pub fn closed(&mut self, reason: &str) -> ServerEvent {
        self.state = SessionState::Closed;
        ServerEvent::SessionClosed { session_id: self.id.to_string(), reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests;
