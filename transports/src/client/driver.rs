//! The task of one connection: everything about it passes here, in order.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::carrier::Carrier;
use super::command::Command;
use super::config::{AudioFormat, merge};
use super::error::{ClientError, Closed};
use super::event::{Event, receive};
use super::open::Opened;
use super::options::Options;
use super::response::{Collector, Response};
use crate::realtime::host::Out;

/// The note of ours in a response's metadata, which says whose it is.
const NOTE: &str = "client_event_id";
/// Responses under way at a time; a server that begins more does not end them.
const MOST_LIVE: usize = 64;

/// What the application wants.
pub(super) enum Ask {
    Say(Command),
    Respond { command: Command, id: String, reply: oneshot::Sender<Result<Response, ClientError>> },
    Close,
}

/// Somebody waits for the response that this command asked for.
pub(super) struct Asked {
    id: String,
    until: Instant,
    pub(super) reply: oneshot::Sender<Result<Response, ClientError>>,
}

/// A response under way.
pub(super) struct Live {
    pub(super) collector: Collector,
    pub(super) heard: Instant,
}

/// How a step ended that ended the connection.
enum Over {
    /// For good.
    End(Result<Closed, ClientError>),
    /// It broke.
    Broke(ClientError),
}

pub(super) struct Driver {
    pub(super) carrier: Carrier,
    pub(super) options: Arc<Options>,
    shared: Arc<Shared>,
    asks: mpsc::Receiver<Ask>,
    /// Resolves when the client is dropped.
    pub(super) alive: oneshot::Receiver<()>,
    pub(super) opened: Opened,
    /// What all `session.update`s together ask for.
    pub(super) config: Option<Value>,
    format: AudioFormat,
    /// What waits to be sent, before anything else is asked.
    pub(super) queue: VecDeque<String>,
    /// The wire takes nothing any more.
    pub(super) deaf: bool,
    pub(super) asked: Vec<Asked>,
    pub(super) live: HashMap<String, Live>,
    began: Instant,
    pub(super) heartbeat: Instant,
    pub(super) unanswered: u32,
    /// Since when something waits to be sent, and events wait to be read.
    pub(super) blocked: Option<Instant>,
    unread: Option<Instant>,
    /// This side has asked to close; until then it waits.
    pub(super) closing: Option<Instant>,
    /// What the server said last.
    farewell: Option<ClientError>,
}

/// What comes next.
enum Next {
    Ask(Option<Ask>),
    Message(Box<Room>, Option<Out>),
    Dropped,
    Alarm,
}

/// Room for what one message may bring.
type Room = (Option<mpsc::OwnedPermit<Event>>, Option<mpsc::OwnedPermit<Response>>);

impl Driver {
    pub(super) fn new(
        carrier: Carrier,
        options: Arc<Options>,
        shared: Arc<Shared>,
        asks: mpsc::Receiver<Ask>,
        alive: oneshot::Receiver<()>,
        opened: Opened,
    ) -> Self {
        let now = Instant::now();
        let config = options.session.as_ref().map(|s| s.to_json(options.profile));
        let format = AudioFormat::stated(&opened.session, "output").unwrap_or(AudioFormat::Pcm16(24_000));
        let heartbeat = now + options.timeouts.heartbeat;
        Self {
            carrier,
            options,
            shared,
            asks,
            alive,
            opened,
            config,
            format,
            queue: VecDeque::new(),
            deaf: false,
            asked: Vec::new(),
            live: HashMap::new(),
            began: now,
            heartbeat,
            unanswered: 0,
            blocked: None,
            unread: None,
            closing: None,
            farewell: None,
        }
    }
    pub(super) async fn run(mut self) {
        let end = loop {
            match self.step().await {
                Ok(()) => {}
                Err(Over::End(end)) => break end,
                Err(Over::Broke(why)) => {
                    if let Err(why) = self.recover(why).await {
                        break Err(why);
                    }
                }
            }
        };
        let Self { shared, options, opened, live, asked, closing, .. } = self;
        let why = end.as_ref().err().cloned().unwrap_or(ClientError::Ended);
        for live in live.values() {
            live.collector.fail(why.clone());
        }
        for asked in asked {
            let _ = asked.reply.send(Err(why.clone()));
        }
        if opened.ours
            && matches!(why, ClientError::Unread(_) | ClientError::TooLarge { .. } | ClientError::Protocol(_))
        {
            // Nobody will come back: the server need not keep the session. If it takes nothing any more, it will.
            let _ = opened.wire.tx.try_send(Command::close().to_json(options.profile).to_string().into());
        }
        let wire = opened.wire.close(options.timeouts.close);
        // Who closed waits until all is let go of; who did not is told at once.
        if closing.is_some() {
            wire.await;
            shared.finish(end);
        } else {
            shared.finish(end);
            wire.await;
        }
    }
    fn now(&self) -> Duration {
        self.began.elapsed()
    }
    async fn step(&mut self) -> Result<(), Over> {
        let waits = !self.queue.is_empty();
        let (events, responses) = self.shared.readers();
        let full = events.as_ref().is_some_and(|e| e.capacity() == 0 && !e.is_closed())
            || responses.as_ref().is_some_and(|r| r.capacity() == 0 && !r.is_closed());
        self.unread = full.then(|| self.unread.unwrap_or_else(Instant::now));
        self.blocked = (waits && !self.deaf).then(|| self.blocked.unwrap_or_else(Instant::now));
        let alarm = self.alarm();
        let (open, sends) = (self.closing.is_none(), waits && !self.deaf);
        let Opened { wire, .. } = &mut self.opened;
        let next = tokio::select! {
            permit = wire.tx.reserve(), if sends => {
                match permit {
                    Ok(permit) => permit.send(self.queue.pop_front().unwrap_or_default().into()),
                    // Its other end says why; what waits is for the next wire.
                    Err(_) => self.deaf = true,
                }
                self.blocked = None;
                return Ok(());
            }
            ask = self.asks.recv(), if !waits && open => Next::Ask(ask),
            (room, message) = incoming(events, responses, &mut wire.rx) => Next::Message(Box::new(room), message),
            _ = &mut self.alive, if open => Next::Dropped,
            () = sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => Next::Alarm,
        };
        match next {
            Next::Ask(Some(ask)) => self.ask(ask),
            Next::Ask(None) | Next::Dropped => self.close(),
            Next::Message(room, message) => self.message(*room, message),
            Next::Alarm => self.ring(),
        }
    }
    fn say(&mut self, command: &Command) {
        self.queue.push_back(command.to_json(self.options.profile).to_string());
    }
    fn ask(&mut self, ask: Ask) -> Result<(), Over> {
        match ask {
            Ask::Close => return self.close(),
            Ask::Say(command) => {
                if let Some(config) = command.configures(self.options.profile) {
                    merge(self.config.get_or_insert_with(|| json!({})), &config);
                }
                self.say(&command);
            }
            Ask::Respond { command, id, reply } => {
                self.say(&command);
                let until = Instant::now() + self.options.timeouts.create;
                self.asked.push(Asked { id, until, reply });
            }
        }
        Ok(())
    }
    fn close(&mut self) -> Result<(), Over> {
        self.closing = Some(Instant::now() + self.options.timeouts.close);
        if !self.opened.ours {
            // Others know no such command: the closing frame says it.
            return Err(Over::End(Ok(Closed { reason: "client_close".to_owned() })));
        }
        self.say(&Command::close());
        Ok(())
    }
    /// The next moment at which something is due.
    fn alarm(&self) -> Option<Instant> {
        let t = &self.options.timeouts;
        let beats = self.opened.ours && !t.heartbeat.is_zero();
        let ack = self.opened.token.is_some().then(|| self.opened.track.due()).flatten().map(|d| self.began + d);
        let all = [
            ack,
            beats.then_some(self.heartbeat),
            self.closing,
            self.blocked.map(|b| b + t.send),
            self.unread.map(|u| u + t.unread),
            self.asked.iter().map(|a| a.until).min(),
            self.live.values().map(|l| l.heard + t.response).min(),
        ];
        all.into_iter().flatten().min()
    }
    fn ring(&mut self) -> Result<(), Over> {
        let (now, t) = (Instant::now(), self.options.timeouts);
        if self.closing.is_some_and(|until| until <= now) {
            return Err(Over::End(Ok(Closed { reason: "client_close".to_owned() })));
        }
        if self.blocked.is_some_and(|b| b + t.send <= now) {
            return Err(Over::Broke(ClientError::Timeout { what: "writing to the server", limit: t.send }));
        }
        if self.unread.is_some_and(|u| u + t.unread <= now) {
            let (events, responses) = self.shared.readers();
            let full = |n: Option<usize>| n == Some(0);
            if full(events.map(|e| e.capacity())) {
                return Err(Over::End(Err(ClientError::Unread("events"))));
            }
            if full(responses.map(|r| r.capacity())) {
                return Err(Over::End(Err(ClientError::Unread("responses"))));
            }
        }
        let elapsed = self.now();
        if self.opened.token.is_some()
            && let Some(seq) = self.opened.track.acknowledge(elapsed)
        {
            self.say(&Command::event_ack(seq));
        }
        if self.opened.ours && !t.heartbeat.is_zero() && self.heartbeat <= now {
            if self.unanswered >= 2 {
                return Err(Over::Broke(ClientError::Lost("the server is silent".to_owned())));
            }
            (self.unanswered, self.heartbeat) = (self.unanswered + 1, now + t.heartbeat);
            self.say(&Command::heartbeat());
        }
        let (late, asked) = std::mem::take(&mut self.asked).into_iter().partition(|a: &Asked| a.until <= now);
        self.asked = asked;
        for asked in late {
            let _ = asked.reply.send(Err(ClientError::Timeout { what: "beginning a response", limit: t.create }));
        }
        self.live.retain(|_, live| {
            let silent = live.heard + t.response <= now;
            if silent {
                live.collector.fail(ClientError::Timeout { what: "a response", limit: t.response });
            }
            !silent
        });
        Ok(())
    }
    fn message(&mut self, room: Room, message: Option<Out>) -> Result<(), Over> {
        self.unanswered = 0;
        let (code, reason) = match message {
            Some(Out::Text(text)) => return self.text(room, &text),
            Some(Out::Close(code, reason)) => (Some(code), Some(reason)),
            None => (None, None),
        };
        if self.closing.is_some() {
            let reason = match self.farewell.take() {
                Some(ClientError::Closed { reason, .. }) => reason,
                _ => "client_close".to_owned(),
            };
            return Err(Over::End(Ok(Closed { reason })));
        }
        Err(match (self.farewell.take(), reason) {
            (Some(said), _) => Over::End(Err(said)),
            (None, Some(reason)) => Over::Broke(ClientError::Closed { code, reason }),
            (None, None) => Over::Broke(self.opened.wire.why()),
        })
    }
    fn text(&mut self, room: Room, text: &str) -> Result<(), Over> {
        let limit = self.options.limits.frame;
        if text.len() > limit {
            return Err(Over::End(Err(ClientError::TooLarge { what: "a message", limit })));
        }
        let received = receive(text).map_err(|e| Over::End(Err(ClientError::Protocol(e))))?;
        let now = self.now();
        if !self.opened.track.see(now, received.seq) {
            return Ok(());
        }
        let (events, responses) = room;
        let event = received.event;
        match &event {
            Event::SessionCreated { session, .. } | Event::SessionUpdated { session } => self.session(session.clone()),
            Event::SessionClosed { reason } | Event::SessionExpired { reason } => {
                self.farewell = Some(ClientError::Closed { code: None, reason: reason.clone() });
            }
            Event::SessionReplaced {} => self.farewell = Some(ClientError::Replaced),
            Event::ResponseCreated { response } => {
                let whose = response.metadata.get(NOTE).and_then(Value::as_str).map(str::to_owned);
                self.created(&response.id, whose.as_deref(), response.metadata.is_empty(), responses)?;
            }
            Event::Error { error } => {
                let at = self.asked.iter().position(|a| error.event_id.as_deref() == Some(&*a.id));
                if let Some(at) = at {
                    let _ = self.asked.remove(at).reply.send(Err(ClientError::Server(error.clone())));
                }
            }
            _ => {}
        }
        if let Some(id) = event.response_id()
            && let Some(live) = self.live.get_mut(id)
        {
            live.heard = Instant::now();
            if live.collector.take(&event, self.format) {
                self.live.remove(id);
            }
        }
        self.tell(events, event);
        Ok(())
    }
    /// Hands an event to who reads them. Who began to read after the room was looked for has all of it free.
    pub(super) fn tell(&self, room: Option<mpsc::OwnedPermit<Event>>, event: Event) {
        match (room, self.shared.readers().0) {
            (Some(room), _) => drop(room.send(event)),
            (None, Some(events)) => drop(events.try_send(event)),
            (None, None) => {}
        }
    }
    pub(super) fn session(&mut self, session: Value) {
        if let Some(format) = AudioFormat::stated(&session, "output") {
            self.format = format;
        }
        self.opened.session = session.clone();
        self.shared.set_session(session);
    }
    fn created(
        &mut self,
        id: &str,
        whose: Option<&str>,
        bare: bool,
        room: Option<mpsc::OwnedPermit<Response>>,
    ) -> Result<(), Over> {
        let mine = match whose {
            Some(whose) => self.asked.iter().position(|a| a.id == whose),
            // A server that gives no notes back: the oldest question is answered first.
            None if bare && !self.opened.ours && !self.asked.is_empty() => Some(0),
            None => None,
        };
        if self.live.len() >= MOST_LIVE {
            return Err(Over::End(Err(ClientError::Protocol(format!("{MOST_LIVE} responses have no end")))));
        }
        let (collector, response) = Collector::new(id, self.options.limits.response);
        let taken = match mine {
            Some(at) => self.asked.remove(at).reply.send(Ok(response)).err().and_then(Result::ok),
            None => Some(response),
        };
        // Nobody asked, or who asked has gone: it is for who reads responses.
        if let Some(response) = taken {
            let given = match (room, self.shared.readers().1) {
                (Some(room), _) => {
                    room.send(response);
                    true
                }
                (None, Some(responses)) => responses.try_send(response).is_ok(),
                (None, None) => false,
            };
            if !given {
                return Ok(());
            }
        }
        self.live.insert(id.to_owned(), Live { collector, heard: Instant::now() });
        Ok(())
    }
}

/// The command of `response.create`, noted as ours.
pub(super) fn noted(command: Command, id: &str) -> Command {
    let mut response = command.to_json(crate::realtime::wire::profile::Profile::Stock)["response"].take();
    merge(&mut response, &json!({"metadata": {NOTE: id}}));
    command.id(id).with("response", response)
}

/// The next message, once there is room for what it may bring.
///
/// # Cancel safety
/// Dropped while waiting, nothing is lost.
async fn incoming(
    events: Option<mpsc::Sender<Event>>,
    responses: Option<mpsc::Sender<Response>>,
    rx: &mut mpsc::Receiver<Out>,
) -> (Room, Option<Out>) {
    let events = match events {
        Some(events) => events.reserve_owned().await.ok(),
        None => None,
    };
    let responses = match responses {
        Some(responses) => responses.reserve_owned().await.ok(),
        None => None,
    };
    ((events, responses), rx.recv().await)
}
