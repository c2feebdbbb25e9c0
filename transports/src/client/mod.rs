//! A Realtime client: over a socket to any server, or in process over a [`Host`], with one API.
//!
//! ```no_run
//! use omni_flow_transports::client::{Client, Command, Options, ResponseConfig};
//! # async fn talk() -> Result<(), omni_flow_transports::client::ClientError> {
//! // Or `Client::in_process(host, Options::default())`; nothing else changes.
//! let client = Client::connect("ws://127.0.0.1:8080/v1/realtime", Options::default()).await?;
//! client.send(Command::user_text("Good morning!")).await?;
//! let mut response = client.respond(ResponseConfig::new()).await?;
//! while let Some(words) = response.next_text().await {
//!     print!("{words}");
//! }
//! println!(" ({:?})", response.done().await?.status);
//! client.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! **What is bounded.** Commands wait in a queue for the socket, events and responses in queues for their reader; a full
//! one makes its other side wait, with a deadline. Nothing is dropped to make room. A response holds its audio until it is
//! taken, up to a limit. Who does not ask for events or responses is sent none.
//!
//! **Ends.** The connection has exactly one ([`Client::closed`]), each response has exactly one ([`Response::done`]);
//! both are told again to whoever asks again.
//!
//! **Coming back.** Where the server numbers its events and gave a token (ours does), a connection that breaks is resumed:
//! missed events come after all, each once, and what is under way goes on. A command that was on its way when the
//! connection broke may be lost; later ones wait. What to do with other servers is [`Reconnect`]'s.

mod backoff;
mod carrier;
mod command;
mod config;
mod driver;
mod error;
mod event;
mod open;
pub mod options;
mod recover;
mod response;
mod secret;
mod track;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::Stream;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

pub use backoff::Backoff;
use carrier::{Address, Carrier};
pub use command::Command;
pub use config::{AudioFormat, ResponseConfig, SessionConfig, TurnDetection};
use driver::{Ask, Driver};
pub use error::{ClientError, Closed, ServerError};
pub use event::{At, ContentPart, Event, Item, ResponseInfo, Usage};
pub use options::{Limits, Options, Reconnect, Timeouts, Trust};
pub use response::{Audio, Call, Outcome, Response, Status, Whole};
pub use secret::Secret;

use crate::realtime::host::Host;

type End = Result<Closed, ClientError>;

/// What the task of a connection and its handles share.
struct Shared {
    events: Mutex<Option<mpsc::Sender<Event>>>,
    responses: Mutex<Option<mpsc::Sender<Response>>>,
    session: Mutex<Value>,
    end: watch::Sender<Option<End>>,
}

impl Shared {
    fn readers(&self) -> (Option<mpsc::Sender<Event>>, Option<mpsc::Sender<Response>>) {
        let events = self.events.lock().clone().filter(|e| !e.is_closed());
        (events, self.responses.lock().clone().filter(|r| !r.is_closed()))
    }
    fn set_session(&self, session: Value) {
        *self.session.lock() = session;
    }
    fn finish(&self, end: End) {
        self.end.send_if_modified(|e| {
            let first = e.is_none();
            e.get_or_insert(end);
            first
        });
        // Readers get what is queued, then the end.
        self.events.lock().take();
        self.responses.lock().take();
    }
}

/// A connection to one session. Dropped, the session is closed in the background.
pub struct Client {
    commands: Commands,
    options: Arc<Options>,
    /// Dropped with it: the task sees it.
    _alive: oneshot::Sender<()>,
}

/// Says things to a session. Cheap to clone, for whoever feeds a microphone; it does not keep the session open.
#[derive(Clone)]
pub struct Commands {
    tx: mpsc::Sender<Ask>,
    shared: Arc<Shared>,
    limit: Duration,
    ids: Arc<AtomicU64>,
}

/// Events in order, from the moment they were asked for. Dropped, they are not kept any more.
pub struct Events(mpsc::Receiver<Event>);

/// Responses that began without [`Client::respond`]: answers to turns that the server found. Dropped, they are not kept
/// any more.
pub struct Responses(mpsc::Receiver<Response>);

impl Client {
    /// Opens a session on the server at `url`: `ws://HOST:PORT/v1/realtime`, `wss:`, `http:` or `https:`.
    ///
    /// # Errors
    /// [`ClientError::Options`], [`ClientError::Connect`], [`ClientError::Refused`], [`ClientError::Server`] (the
    /// session or its configuration was refused), [`ClientError::Timeout`], [`ClientError::Protocol`].
    ///
    /// # Cancel safety
    /// Dropped, the connection is dropped.
    pub async fn connect(url: &str, options: Options) -> Result<Self, ClientError> {
        Self::open(Carrier::Socket(Address::parse(url)?), options).await
    }
    /// Opens a session of a host in this process: the same events, without a socket.
    ///
    /// # Errors
    /// As [`Client::connect`], as far as they can happen.
    ///
    /// # Cancel safety
    /// Dropped, the session ends.
    pub async fn in_process(host: Arc<Host>, options: Options) -> Result<Self, ClientError> {
        Self::open(Carrier::Host(host), options).await
    }
    async fn open(carrier: Carrier, options: Options) -> Result<Self, ClientError> {
        let options = Arc::new(options);
        let config = options.session.as_ref().map(|s| s.to_json(options.profile));
        let opened = open::open(&carrier, &options, config.as_ref()).await?;
        let session = Mutex::new(opened.session.clone());
        let (events, responses, end) = (Mutex::default(), Mutex::default(), watch::Sender::new(None));
        let shared = Arc::new(Shared { events, responses, session, end });
        let (tx, asks) = mpsc::channel(options.limits.commands.max(1));
        let (alive, dropped) = oneshot::channel();
        tokio::spawn(Driver::new(carrier, options.clone(), shared.clone(), asks, dropped, opened).run());
        let commands = Commands { tx, shared, limit: options.timeouts.send, ids: Arc::default() };
        Ok(Self { commands, options, _alive: alive })
    }
    /// A handle to say things from elsewhere.
    pub fn commands(&self) -> Commands {
        self.commands.clone()
    }
    /// Says something; see [`Commands::send`].
    ///
    /// # Errors
    /// As [`Commands::send`].
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing was said.
    pub async fn send(&self, command: Command) -> Result<(), ClientError> {
        self.commands.send(command).await
    }
    /// Asks for a response; see [`Commands::respond`].
    ///
    /// # Errors
    /// As [`Commands::respond`].
    ///
    /// # Cancel safety
    /// As [`Commands::respond`].
    pub async fn respond(&self, config: ResponseConfig) -> Result<Response, ClientError> {
        self.commands.respond(config).await
    }
    /// Events from now on. Asked again, the earlier stream ends.
    pub fn events(&self) -> Events {
        let (tx, rx) = mpsc::channel(self.options.limits.events.max(1));
        self.install(&self.commands.shared.events, tx);
        Events(rx)
    }
    /// Responses from now on. Asked again, the earlier stream ends.
    pub fn responses(&self) -> Responses {
        let (tx, rx) = mpsc::channel(self.options.limits.responses.max(1));
        self.install(&self.commands.shared.responses, tx);
        Responses(rx)
    }
    fn install<T>(&self, slot: &Mutex<Option<mpsc::Sender<T>>>, tx: mpsc::Sender<T>) {
        let mut slot = slot.lock();
        // Of a connection that has ended nothing comes.
        if self.commands.shared.end.borrow().is_none() {
            *slot = Some(tx);
        }
    }
    /// The session object as the server showed it last.
    pub fn session(&self) -> Value {
        self.commands.shared.session.lock().clone()
    }
    /// The format in which this session takes audio; PCM16 with 24 kHz if the server does not say.
    pub fn input_format(&self) -> AudioFormat {
        AudioFormat::stated(&self.commands.shared.session.lock(), "input").unwrap_or(AudioFormat::Pcm16(24_000))
    }
    /// The format in which its audio comes.
    pub fn output_format(&self) -> AudioFormat {
        AudioFormat::stated(&self.commands.shared.session.lock(), "output").unwrap_or(AudioFormat::Pcm16(24_000))
    }
    /// Waits for the end of the connection. Asked again, it is the same.
    ///
    /// # Errors
    /// Why it ended, unless this client closed it.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub async fn closed(&self) -> Result<Closed, ClientError> {
        self.commands.end().await
    }
    /// Closes the session after all that was said before, and waits until it is closed.
    ///
    /// # Errors
    /// As [`Client::closed`]: it had ended before.
    ///
    /// # Cancel safety
    /// Dropped while waiting, it is closed in the background.
    pub async fn close(self) -> Result<Closed, ClientError> {
        let limit = self.options.timeouts.close;
        // The command, the farewell and the socket: each has this long.
        let _ = timeout(limit, self.commands.tx.send(Ask::Close)).await;
        let Self { commands, _alive, .. } = self;
        match timeout(limit * 2, commands.end()).await {
            Ok(end) => end,
            Err(_) => {
                drop(_alive);
                Ok(Closed { reason: "client_close".to_owned() })
            }
        }
    }
}

impl Commands {
    async fn end(&self) -> End {
        let mut end = self.shared.end.subscribe();
        let end = end.wait_for(Option::is_some).await.map(|e| e.clone());
        end.ok().flatten().unwrap_or(Err(ClientError::Ended))
    }
    fn ended(&self) -> ClientError {
        let end = self.shared.end.borrow().clone();
        end.and_then(Result::err).unwrap_or(ClientError::Ended)
    }
    async fn put(&self, ask: Ask) -> Result<(), ClientError> {
        // Its end is told a moment before its task is gone.
        if self.shared.end.borrow().is_some() {
            return Err(self.ended());
        }
        match timeout(self.limit, self.tx.send(ask)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.ended()),
            Err(_) => Err(ClientError::Timeout { what: "sending a command", limit: self.limit }),
        }
    }
    /// Queues a command. That it was queued does not mean that it arrived: what a server refuses comes as
    /// [`Event::Error`].
    ///
    /// # Errors
    /// Why the connection ended, or [`ClientError::Timeout`] after
    /// [`Timeouts::send`](options::Timeouts) without room.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing was said.
    pub async fn send(&self, command: Command) -> Result<(), ClientError> {
        self.put(Ask::Say(command)).await
    }
    /// Asks for a response and waits until it begins.
    ///
    /// # Errors
    /// [`ClientError::Server`]: refused; [`ClientError::Timeout`]: it did not begin; or as [`Commands::send`].
    ///
    /// # Cancel safety
    /// Dropped while waiting, the response may still begin; then it is among [`Responses`].
    pub async fn respond(&self, config: ResponseConfig) -> Result<Response, ClientError> {
        let id = format!("client_{}", self.ids.fetch_add(1, Ordering::Relaxed));
        let command = driver::noted(Command::respond(config), &id);
        let (reply, answer) = oneshot::channel();
        self.put(Ask::Respond { command, id, reply }).await?;
        // The task of the connection answers in time, or ends.
        answer.await.unwrap_or_else(|_| Err(self.ended()))
    }
}

impl Events {
    /// The next event; `None`: the connection has ended, and [`Client::closed`] says how.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }
    /// The same as a stream.
    pub fn stream(&mut self) -> impl Stream<Item = Event> + '_ {
        futures_util::stream::poll_fn(|cx| self.0.poll_recv(cx))
    }
}

impl Responses {
    /// The next response; `None`: the connection has ended, and [`Client::closed`] says how.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub async fn next(&mut self) -> Option<Response> {
        self.0.recv().await
    }
    /// The same as a stream.
    pub fn stream(&mut self) -> impl Stream<Item = Response> + '_ {
        futures_util::stream::poll_fn(|cx| self.0.poll_recv(cx))
    }
}

macro_rules! opaque {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}
opaque!(Client, Commands, Events, Responses);
