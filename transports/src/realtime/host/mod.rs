//! Sessions over running graphs: one [`Host`] serves one graph to any number of sockets.
//!
//! A socket is two channels, so that a WebSocket, another transport and a client in the same process are the same:
//! [`Host::connect`] reads text messages and writes [`Out`]s until either side is done. A graph of `session.mode: turn` is
//! talked with in the shorter protocol of such graphs.
//!
//! | end of the graph | what goes through it |
//! |---|---|
//! | `session.in` with audio | the user, 16 kHz; a last chunk is a commit |
//! | `control` | the rules of turns: `turn.config`, `turn.clear` |
//! | `ask` | questions: `chat.prompt`; for a graph that answers by itself `chat.context` with `instructions` and `voice` |
//! | `session.out` with audio, `said` | answers; a last chunk ends each of the two |
//! | `heard`, `unheard`, `turns` | what the user said, and where their turns begin and end |
//! | `events` or `calls` | `chat.call`, `chat.failed` or `failed`, `listen`; `answer.started` before an answer that has no words (`text: false`) or whose pieces hold all so far (`text_mode`, `audio_mode`: `cumulative`); `unit.needed` from a model that goes on once it hears one more unit |

mod asked;
mod ends;
mod engine;
mod facts;
mod feed;
mod heard;
mod owner;
mod prompt;
mod spoken;
mod turn;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use omni_flow::{Clock, Graph, Mode, OpenError};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};

pub use ends::{Ends, EndsError};
use engine::Link;
pub use facts::{FactsError, facts};
use owner::{Mail, Opened, Owner};
pub use owner::{Out, Said};

use super::config::capability::Capabilities;
use super::config::{Defaults, SessionConfig};
use super::machine::{Ids, Opening, Session};
use super::outlet::Outlet;
use super::rules::token::Credential;
use super::rules::{items, journal, lease, outbox, pending};
use super::wire::client::{ClientEvent, Incoming, Rejected, parse};
use super::wire::code::{Code, Refusal};
use super::wire::profile::Profile;
use super::wire::project::{Envelope, project};
use super::wire::server::ServerEvent;

/// Limits of all sessions.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one client message.
    pub message: usize,
    /// Wait for the first message where one is needed.
    pub first_message: Duration,
    /// The output queue.
    pub outbox: outbox::Limits,
    /// Events kept for a client that comes back.
    pub journal: journal::Limits,
    /// Pending input.
    pub pending: pending::Limits,
    /// The conversation.
    pub conversation: items::Limits,
    /// Idle time, and time without a socket.
    pub lease: lease::Limits,
    /// The longest life of a session, in seconds, as `expires_at` tells it.
    pub life_s: u64,
    /// Further short acknowledgements, beside the built-in ones.
    pub short_acks: Vec<String>,
    /// Units of silence in a row that a model is given to go on speaking.
    pub silence_units: u32,
    /// Between two looks at what does not let go of a session that has ended.
    pub reaper: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 15 << 20,
            first_message: Duration::from_secs(10),
            outbox: outbox::Limits::default(),
            journal: journal::Limits::default(),
            pending: pending::Limits::default(),
            conversation: items::Limits::default(),
            lease: lease::Limits::default(),
            life_s: 24 * 3600,
            short_acks: Vec::new(),
            silence_units: 8,
            reaper: Duration::from_secs(5),
        }
    }
}

/// How a connection was opened.
#[derive(Clone, Debug)]
pub struct Hello {
    /// How events look.
    pub profile: Profile,
    /// Open the default session at once.
    pub autostart: bool,
    /// The model that the address names.
    pub model: Option<String>,
}

/// Serves one graph.
pub struct Host {
    graph: Graph,
    clock: Clock,
    ends: Ends,
    capabilities: Capabilities,
    defaults: Defaults,
    limits: Limits,
    sessions: Mutex<HashMap<Arc<str>, mpsc::Sender<Mail>>>,
    /// Sessions and sockets there are.
    present: watch::Sender<usize>,
    /// Nobody is let in any more.
    closing: AtomicBool,
    /// Sessions whose clients have said goodbye, with the generation of their socket, the oldest first.
    left: Mutex<VecDeque<(u64, mpsc::Sender<Mail>)>>,
}

/// A session or a socket that is there, as long as this is kept.
pub struct Present(Arc<Host>);

impl Drop for Present {
    fn drop(&mut self) {
        self.0.present.send_modify(|n| *n -= 1);
    }
}

impl Host {
    /// A host of `graph`, whose clock is the engine's.
    ///
    /// # Errors
    /// [`EndsError`]: nobody could talk to it.
    pub fn new(
        graph: Graph,
        clock: Clock,
        capabilities: Capabilities,
        defaults: Defaults,
        limits: Limits,
    ) -> Result<Arc<Self>, EndsError> {
        let ends = Ends::of(graph.plan())?;
        Ok(Arc::new(Self {
            graph,
            clock,
            ends,
            capabilities,
            defaults,
            limits,
            sessions: Mutex::default(),
            present: watch::Sender::new(0),
            closing: AtomicBool::new(false),
            left: Mutex::default(),
        }))
    }
    /// Sessions that are open now.
    pub fn sessions(&self) -> usize {
        self.sessions.lock().len()
    }
    /// What the graph can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// Somebody is there: a drain waits for it.
    pub fn present(self: &Arc<Self>) -> Present {
        self.present.send_modify(|n| *n += 1);
        Present(self.clone())
    }
    /// Ends all sessions in order; each client is told. Nobody is let in any more, what is idle ends at once, and an answer
    /// under way may go on for `limit`. Gives true once nobody is left.
    ///
    /// # Cancel safety
    /// Dropped, what was told stays told: nobody is let in.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.closing.store(true, Ordering::Relaxed);
        let mut present = self.present.subscribe();
        let all = || self.sessions.lock().values().cloned().collect::<Vec<_>>();
        for mailbox in all() {
            let _ = mailbox.send(Mail::Drain).await;
        }
        if self.clock.timeout(limit, present.wait_for(|n| *n == 0)).await.is_some() {
            return true;
        }
        for mailbox in all() {
            let _ = mailbox.send(Mail::Shutdown).await;
        }
        self.clock.timeout(owner::FAREWELL, present.wait_for(|n| *n == 0)).await.is_some()
    }
    fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.now().0)
    }

    /// One connection, from its first message to its end. `messages` are those of the client; closed, the client is gone.
    ///
    /// # Cancel safety
    /// Dropped, the client is gone.
    pub async fn connect(self: &Arc<Self>, hello: Hello, mut messages: mpsc::Receiver<Said>, out: mpsc::Sender<Out>) {
        if self.graph.plan().session.mode == Mode::Turn {
            return turn::serve(self, &hello, messages, out).await;
        }
        match self.handshake(&hello, &mut messages, &out).await {
            Ok(Some((generation, mailbox))) => {
                drop(out);
                let mut bye = false;
                loop {
                    let said = tokio::select! {
                        said = messages.recv() => said,
                        // The session is over; the socket was told by its owner.
                        () = mailbox.closed() => return,
                    };
                    let mail = match said {
                        Some(Said::Text(text)) => Mail::Client(generation, parse(&text, self.limits.message)),
                        Some(Said::Bye) => {
                            bye = true;
                            continue;
                        }
                        None => Mail::Gone(generation),
                    };
                    let gone = matches!(mail, Mail::Gone(_));
                    if mailbox.send(mail).await.is_err() {
                        return;
                    }
                    if gone {
                        return if bye {
                            self.left(generation, mailbox)
                        };
                    }
                }
            }
            Ok(None) => {}
            Err((refusal, event_id)) => {
                let reason = refusal.code.as_str().to_owned();
                let event = ServerEvent::Error { refusal, event_id };
                let envelope = Envelope { event_id: self::event_id(), server_event_seq: None };
                if let Some(value) = project(&event, hello.profile, &envelope) {
                    let _ = out.send(Out::Text(value.to_string().into())).await;
                }
                let _ = out.send(Out::Close(1000, reason)).await;
            }
        }
    }
    async fn handshake(
        self: &Arc<Self>,
        hello: &Hello,
        messages: &mut mpsc::Receiver<Said>,
        out: &mpsc::Sender<Out>,
    ) -> Result<Option<(u64, mpsc::Sender<Mail>)>, (Refusal, Option<String>)> {
        let mut given = Map::new();
        if let Some(model) = &hello.model {
            given.insert("model".to_owned(), Value::String(model.clone()));
        }
        let bare = |refusal| (refusal, None);
        if hello.autostart {
            return self.open(hello, &given, out, false).await.map(Some).map_err(bare);
        }
        let first = match self.clock.timeout(self.limits.first_message, messages.recv()).await {
            Some(Some(Said::Text(text))) => text,
            Some(Some(Said::Bye) | None) => return Ok(None),
            None => {
                let message =
                    format!("no message came within {:?}; send session.update first", self.limits.first_message);
                return Err(bare(Refusal::new(Code::ConfigTimeout, message)));
            }
        };
        let Incoming { event_id, event } =
            parse(&first, self.limits.message).map_err(|Rejected { event_id, refusal }| (refusal, event_id))?;
        match event {
            ClientEvent::SessionUpdate(fields) => {
                given.extend(fields);
                self.open(hello, &given, out, true).await.map(Some).map_err(|r| (r, event_id))
            }
            ClientEvent::Resume(resume) => {
                let claim = resume.claim().map_err(|r| (r, event_id.clone()))?;
                let mailbox = self.sessions.lock().get(claim.session_id.as_str()).cloned();
                let expired = || {
                    let message = "no such session; it has ended, or never was: open another one";
                    (Refusal::new(Code::SessionResumeExpired, message), event_id.clone())
                };
                let mailbox = mailbox.ok_or_else(expired)?;
                let (reply, answer) = oneshot::channel();
                mailbox.send(Mail::Resume(claim, out.clone(), reply)).await.map_err(|_| expired())?;
                match answer.await {
                    Ok(Ok(generation)) => Ok(Some((generation, mailbox))),
                    // It has been told what is missing.
                    Ok(Err(refusal)) if refusal.message.is_empty() => Ok(None),
                    Ok(Err(refusal)) => Err((refusal, event_id)),
                    Err(_) => Err(expired()),
                }
            }
            event => {
                let opened = self.open(hello, &given, out, false).await.map_err(|r| (r, event_id.clone()))?;
                let _ = opened.1.send(Mail::Client(opened.0, Ok(Incoming { event_id, event }))).await;
                Ok(Some(opened))
            }
        }
    }
    /// A client has said goodbye. Its session is kept, for it may come back, but gives its place to who needs it.
    fn left(&self, generation: u64, mailbox: mpsc::Sender<Mail>) {
        let mut left = self.left.lock();
        left.retain(|(_, m)| !m.is_closed());
        left.push_back((generation, mailbox));
    }
    /// Ends the session of the client that left first, if any has. True if it is worth another try.
    async fn make_room(&self) -> bool {
        loop {
            let Some((generation, mailbox)) = self.left.lock().pop_front() else { return false };
            if mailbox.is_closed() {
                continue;
            }
            let gone = async {
                if mailbox.send(Mail::Give(generation)).await.is_ok() {
                    mailbox.closed().await;
                }
            };
            // One that has come back since stays.
            if self.clock.timeout(owner::FAREWELL, gone).await.is_some() {
                return true;
            }
        }
    }
    /// Opens a session and tells of it.
    async fn open(
        self: &Arc<Self>,
        hello: &Hello,
        given: &Map<String, Value>,
        out: &mpsc::Sender<Out>,
        updated: bool,
    ) -> Result<(u64, mpsc::Sender<Mail>), Refusal> {
        if self.closing.load(Ordering::Relaxed) {
            let message = "the server is stopping; open a session with another one, or in a moment";
            return Err(Refusal::new(Code::ResourceExhausted, message));
        }
        let config = SessionConfig::open(hello.profile, given, &self.capabilities, &self.defaults)?;
        let link = loop {
            match Link::open(&self.graph, &self.ends, &self.clock, self.capabilities.native()) {
                Ok(link) => break link,
                Err(OpenError::Full { .. }) if self.make_room().await => {}
                Err(OpenError::Full { limit, .. }) => return Err(Refusal::capacity(limit)),
                Err(e) => return Err(Refusal::new(Code::EngineError, e.to_string())),
            }
        };
        let id: Arc<str> = format!("duplex-{:032x}", random()).into();
        let no_random = |e: super::rules::token::NoRandom| Refusal::new(Code::InternalError, e.to_string());
        let (credential, token) = match self.capabilities.resume {
            true => Credential::new().map(|(c, t)| (Some(c), Some(t))).map_err(no_random)?,
            false => (None, None),
        };
        let mut lease = lease::Lease::new(self.now(), self.limits.lease);
        lease.set_silence(Duration::from_secs_f64(config.idle_timeout_s.clamp(0.001, 1e9)));
        let seed = random() as u64;
        let (session, effects) = Session::open(Opening {
            id: id.to_string(),
            config,
            capabilities: self.capabilities.clone(),
            traits: self.ends.traits(),
            ids: Ids::new(seed),
            expires_at: unix() + self.limits.life_s,
            short_acks: self.limits.short_acks.clone(),
            pending: self.limits.pending,
            conversation: self.limits.conversation,
            silence_units: self.limits.silence_units,
            configured: updated,
        });
        let journal = credential.is_some().then_some(self.limits.journal);
        let mut outlet = Outlet::new(hello.profile, id.clone(), self.limits.outbox, journal, seed);
        let view = || Box::new(session.view());
        outlet.tell(ServerEvent::SessionCreated {
            session: view(),
            attachment_generation: 1,
            resume_token: token.map(|t| t.reveal().to_owned()),
        });
        outlet.tell(ServerEvent::ConversationCreated { conversation_id: format!("conv_{:032x}", random()) });
        if updated {
            outlet.tell(ServerEvent::SessionUpdated { session: view() });
        }
        let (tx, mailbox) = mpsc::channel(16);
        let (clock, out, reaper) = (self.clock.clone(), out.clone(), self.limits.reaper);
        let owner = Owner::new(Opened { session, link, outlet, lease, credential, clock, mailbox, out, reaper });
        self.sessions.lock().insert(id.clone(), tx.clone());
        if self.closing.load(Ordering::Relaxed) {
            // A drain began meanwhile and did not see it.
            let _ = tx.try_send(Mail::Drain);
        }
        let host = self.clone();
        let present = self.present();
        tokio::spawn(async move {
            let _present = present;
            // However it ends, its name leaves the list.
            let _listed = Listed { host, id };
            owner.run(effects).await;
        });
        Ok((1, tx))
    }
}

struct Listed {
    host: Arc<Host>,
    id: Arc<str>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.host.sessions.lock().remove(&self.id);
    }
}

/// A name for an event that belongs to no session.
pub(crate) fn event_id() -> String {
    format!("event_{:032x}", random())
}

/// A number nobody can guess; if the system has none, one that has not been used.
fn random() -> u128 {
    let mut bytes = [0; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u128::from_le_bytes(bytes),
        Err(_) => u128::from(unix()) << 64 | std::ptr::from_ref(&bytes).addr() as u128,
    }
}

fn unix() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
