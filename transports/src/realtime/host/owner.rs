//! The owner of one session: a task with one mailbox, through which everything about the session passes in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use omni_flow::Clock;
use tokio::sync::{mpsc, oneshot};

use super::engine::Link;
use crate::realtime::machine::{Effect, GraphEvent, Session};
use crate::realtime::outlet::Outlet;
use crate::realtime::rules::journal::ReplayError;
use crate::realtime::rules::lease::{Expired, Lease, Use};
use crate::realtime::rules::token::Credential;
use crate::realtime::wire::client::{Claim, ClientEvent, Incoming, Rejected};
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::server::ServerEvent;
use crate::realtime::wire::server::session::{Expiry, Resync};

/// The longest that the last events wait for their reader.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);

/// From the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A message.
    Text(String),
    /// The client closes the connection because it wants to, and not because it was lost: its session is kept for it only as
    /// long as nobody else needs the place.
    Bye,
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// For the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Out {
    /// An event as JSON text.
    Text(Arc<str>),
    /// Nothing more follows: close with this code and reason.
    Close(u16, String),
}

/// For the owner.
pub(super) enum Mail {
    /// A message of the socket with this generation.
    Client(u64, Result<Incoming, Rejected>),
    /// The socket with this generation is gone.
    Gone(u64),
    /// Somebody needs the place of a client that has left, if it has not come back since this socket.
    Give(u64),
    /// A client comes back.
    Resume(Claim, mpsc::Sender<Out>, oneshot::Sender<Result<u64, Refusal>>),
    /// The server would like to stop: the session ends as soon as it is idle.
    Drain,
    /// The server stops.
    Shutdown,
}

/// What comes next.
enum Next {
    Mail(Option<Mail>),
    Graph(GraphEvent),
    /// The socket took an event; what follows from that.
    Room(Vec<Effect>),
    Unread,
    Alarm,
}

/// The socket that a session has now.
struct Attached {
    generation: u64,
    out: mpsc::Sender<Out>,
    /// It has been told of the session and of its new token.
    told: Arc<AtomicBool>,
}

/// A session that was just opened, and the socket that it was opened for.
pub(super) struct Opened {
    pub(super) session: Session,
    pub(super) link: Link,
    pub(super) outlet: Outlet,
    pub(super) lease: Lease,
    pub(super) credential: Option<Credential>,
    pub(super) clock: Clock,
    pub(super) mailbox: mpsc::Receiver<Mail>,
    pub(super) out: mpsc::Sender<Out>,
    /// Between two looks at what does not let go.
    pub(super) reaper: Duration,
}

pub(super) struct Owner {
    session: Session,
    link: Link,
    outlet: Outlet,
    lease: Lease,
    credential: Option<Credential>,
    clock: Clock,
    mailbox: mpsc::Receiver<Mail>,
    reaper: Duration,
    /// When the user last gave input, or the model began to wait for it.
    fed: Duration,
    generation: u64,
    attached: Option<Attached>,
    /// An operation is under way, as the lease knows it.
    busy: bool,
    /// It ends as soon as it is idle.
    draining: bool,
    /// It is over: this is why.
    over: Option<String>,
}

impl Owner {
    pub(super) fn new(opened: Opened) -> Self {
        let Opened { session, link, outlet, lease, credential, clock, mailbox, out, reaper } = opened;
        let attached = Some(Attached { generation: 1, out, told: Arc::default() });
        Self {
            session,
            link,
            outlet,
            lease,
            credential,
            clock,
            mailbox,
            reaper,
            fed: Duration::ZERO,
            generation: 1,
            attached,
            busy: false,
            draining: false,
            over: None,
        }
    }
    fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.now().0)
    }
    /// Lives as long as the session does.
    pub(super) async fn run(mut self, opened: Vec<Effect>) {
        self.act(opened);
        while self.over.is_none() {
            self.step().await;
        }
        let Self { mut session, link, mut outlet, attached, over, clock, reaper, .. } = self;
        let reason = over.unwrap_or_default();
        if !link.close(reaper).await {
            tracing::warn!(
                session = &**session.id(),
                "not everything let go in time; its place comes back once it has"
            );
        }
        outlet.close(match reason.as_str() {
            r if r == Expiry::IdleTtl.as_str() => expired(&session, Expiry::IdleTtl),
            r if r == Expiry::DisconnectGrace.as_str() => expired(&session, Expiry::DisconnectGrace),
            r => session.closed(r),
        });
        let Some(Attached { out, .. }) = attached else { return };
        let tell = async {
            while let Some(sent) = outlet.next(Duration::from_nanos(clock.now().0)) {
                if out.send(Out::Text(sent.text)).await.is_err() {
                    return;
                }
            }
            let _ = out.send(Out::Close(1000, reason)).await;
        };
        clock.timeout(FAREWELL, tell).await;
    }
    async fn step(&mut self) {
        match self.next().await {
            Next::Mail(Some(mail)) => self.mail(mail),
            Next::Mail(None) => self.end("shutdown"),
            Next::Graph(event) => self.graph(event),
            Next::Room(effects) => self.act(effects),
            // Nobody reads any more.
            Next::Unread => self.detach(),
            Next::Alarm => self.alarm(),
        }
        self.keep();
    }
    async fn next(&mut self) -> Next {
        let now = self.now();
        let starves = self.session.hungry().map(|unit| self.fed.saturating_add(unit));
        let deadline = self.lease.next_deadline().into_iter().chain(starves).min().map(|d| d.saturating_sub(now));
        let Self { mailbox, link, outlet, attached, clock, session, .. } = self;
        let alarm = async {
            match deadline {
                Some(left) => clock.sleep(left).await,
                None => std::future::pending().await,
            }
        };
        let (waits, attached) = (outlet.waits(), attached.as_ref());
        let gone = async {
            match attached {
                Some(a) => a.out.closed().await,
                None => std::future::pending().await,
            }
        };
        let room = async {
            match attached {
                Some(a) if waits => a.out.reserve().await.ok(),
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            mail = mailbox.recv() => Next::Mail(mail),
            // Whoever carried the connection has let go of it without a word.
            () = gone => Next::Unread,
            permit = room => match permit {
                Some(permit) => {
                    let mut effects = Vec::new();
                    if let Some(sent) = outlet.next(Duration::from_nanos(clock.now().0)) {
                        if let Some(response) = &sent.audio_of {
                            effects = session.sent(response);
                        }
                        permit.send(Out::Text(sent.text));
                    }
                    Next::Room(effects)
                }
                None => Next::Unread,
            },
            // After what waits for the socket: a graph that never pauses must not fill the queue of a reader who reads.
            event = link.next() => Next::Graph(event),
            () = alarm => Next::Alarm,
        }
    }
    /// What the lease and the journal have to know after each step.
    fn keep(&mut self) {
        let busy = self.session.busy();
        if busy != self.busy {
            if busy {
                self.lease.begin()
            } else {
                self.lease.end(self.now())
            }
            self.busy = busy;
        }
        if self.draining && !busy && !self.outlet.waits() && self.over.is_none() {
            self.end("shutdown");
        }
        if self.attached.is_none() {
            // Nobody reads: what is told goes into the journal alone.
            let now = self.now();
            while let Some(sent) = self.outlet.next(now) {
                if let Some(response) = &sent.audio_of {
                    let effects = self.session.sent(response);
                    self.act(effects);
                }
            }
        }
    }
    fn mail(&mut self, mail: Mail) {
        match mail {
            Mail::Client(generation, _) | Mail::Gone(generation) if generation != self.generation => {}
            Mail::Client(_, Ok(incoming)) => self.client(incoming),
            Mail::Client(_, Err(rejected)) => {
                self.lease.note(self.now(), Use::Refused);
                let effects = self.session.refuse(rejected.refusal, rejected.event_id);
                self.act(effects);
            }
            Mail::Gone(_) => self.detach(),
            Mail::Give(generation) => {
                if generation == self.generation && self.attached.is_none() {
                    self.end("disconnect");
                }
            }
            Mail::Resume(claim, out, reply) => self.resume(&claim, out, reply),
            Mail::Drain => self.draining = true,
            Mail::Shutdown => self.end("shutdown"),
        }
    }
    fn client(&mut self, incoming: Incoming) {
        let used = match &incoming.event {
            ClientEvent::EventAck(_) => Use::EventAck,
            ClientEvent::Append(_) => Use::Append,
            ClientEvent::Heartbeat => Use::Heartbeat,
            ClientEvent::PlaybackAck(_) => Use::PlaybackAck,
            _ => Use::Signal,
        };
        self.lease.note(self.now(), used);
        if used == Use::Append {
            self.fed = self.now();
        }
        self.link.touch();
        if let ClientEvent::EventAck(seq) = incoming.event {
            if let Err(e) = self.outlet.acknowledge(i64::try_from(seq).unwrap_or(i64::MAX)) {
                let refusal = Refusal::new(Code::InvalidEventAck, e.to_string()).about("server_event_seq");
                let effects = self.session.refuse(refusal, incoming.event_id);
                self.act(effects);
            }
            return;
        }
        let effects = self.session.client(incoming);
        self.lease.set_silence(Duration::from_secs_f64(self.session.config().idle_timeout_s.clamp(0.001, 1e9)));
        self.act(effects);
    }
    fn graph(&mut self, event: GraphEvent) {
        if matches!(event, GraphEvent::Answer { .. }) {
            self.lease.note(self.now(), Use::ModelOutput);
        }
        let full = self.session.hungry().is_none();
        let effects = self.session.graph(event);
        if full && self.session.hungry().is_some() {
            self.fed = self.now();
        }
        self.act(effects);
    }
    fn act(&mut self, effects: Vec<Effect>) {
        let mut overflowed = false;
        for effect in effects {
            match effect {
                Effect::Tell(event) => overflowed |= !self.outlet.tell(event),
                Effect::Graph(command) => self.link.command(command),
                Effect::Purge(response) => self.outlet.purge(&response),
                Effect::Over { reason } => self.over = Some(reason),
            }
        }
        if overflowed {
            let effects = self.session.overflow();
            self.act(effects);
        }
    }
    fn end(&mut self, reason: &str) {
        let effects = self.session.end(reason);
        self.act(effects);
        self.over.get_or_insert_with(|| reason.to_owned());
    }
    fn alarm(&mut self) {
        let now = self.now();
        if self.session.hungry().is_some_and(|unit| now >= self.fed.saturating_add(unit)) {
            let effects = self.session.starve();
            self.act(effects);
        }
        match self.lease.expired(self.now()) {
            Some(Expired::Idle) => self.end(Expiry::IdleTtl.as_str()),
            Some(Expired::Grace) => self.end(Expiry::DisconnectGrace.as_str()),
            Some(Expired::Silence) => {
                if let Some(a) = &self.attached {
                    leave(&self.clock, a.out.clone(), None, "idle_timeout");
                }
                self.detach();
            }
            None => {}
        }
    }
    /// The socket is gone. A session that cannot be resumed goes with it.
    fn detach(&mut self) {
        if self.attached.take().is_none() {
            return;
        }
        if self.credential.is_none() {
            return self.end("disconnect");
        }
        self.lease.detach(self.now());
    }
    fn resume(&mut self, claim: &Claim, out: mpsc::Sender<Out>, reply: oneshot::Sender<Result<u64, Refusal>>) {
        let answer = self.claimed(claim, out);
        // Whoever asked may be gone by now; then the new socket is gone too, and that is seen soon.
        let _ = reply.send(answer);
    }
    fn claimed(&mut self, claim: &Claim, out: mpsc::Sender<Out>) -> Result<u64, Refusal> {
        let Some(credential) = &mut self.credential else {
            let message = "this session cannot be resumed; open another one";
            return Err(Refusal::new(Code::UnsupportedSessionResume, message));
        };
        if self.attached.as_ref().is_some_and(|a| a.told.load(Ordering::Relaxed)) {
            credential.delivered();
        }
        if !credential.accepts(&claim.resume_token) {
            let message = "the token is not the newest one of this session";
            return Err(Refusal::new(Code::InvalidResumeToken, message).about("resume_token"));
        }
        let now = Duration::from_nanos(self.clock.now().0);
        let after = i64::try_from(claim.last_received).unwrap_or(i64::MAX);
        let missed = match self.outlet.replay(now, after) {
            Ok(missed) => Some(missed),
            Err(ReplayError::Overflowed) => None,
            Err(ReplayError::Gap { .. }) => {
                let resync = ServerEvent::ResyncRequired {
                    session_id: self.session.id().to_string(),
                    reason: Resync::JournalGap,
                };
                leave(&self.clock, out, self.outlet.directly(&resync), "journal_gap");
                return Err(Refusal::new(Code::SessionResumeConflict, ""));
            }
            Err(e) => {
                return Err(
                    Refusal::new(Code::SessionResumeConflict, e.to_string()).about("last_received_server_event_seq")
                );
            }
        };
        let token = match credential.rotate(&claim.resume_token) {
            Ok(Some(token)) => token,
            Ok(None) => return Err(Refusal::new(Code::InvalidResumeToken, "the token has been used")),
            Err(e) => return Err(Refusal::new(Code::RuntimeResumeFailed, e.to_string())),
        };
        if let Some(old) = self.attached.take() {
            let replaced = ServerEvent::SessionReplaced {
                session_id: self.session.id().to_string(),
                attachment_generation: old.generation,
            };
            leave(&self.clock, old.out, self.outlet.directly(&replaced), "session_replaced");
        }
        self.generation += 1;
        let resumed = ServerEvent::SessionResumed {
            session: Box::new(self.session.view()),
            attachment_generation: self.generation,
            resume_token: token.reveal().to_owned(),
        };
        let mut first: Vec<Arc<str>> = self.outlet.directly(&resumed).into_iter().collect();
        match missed {
            Some(missed) => first.extend(missed),
            None => {
                let reason = Resync::JournalOverflow;
                let resync = ServerEvent::ResyncRequired { session_id: self.session.id().to_string(), reason };
                first.extend(self.outlet.directly(&resync));
            }
        }
        self.lease.attach(now);
        let generation = self.generation;
        let told = Arc::new(AtomicBool::new(false));
        self.attached = Some(Attached { generation, out: replayed(first, out, told.clone()), told });
        Ok(generation)
    }
}

/// A sender behind which what is sent comes after `first`, however much that is. `told` once the first of it was taken.
fn replayed(first: Vec<Arc<str>>, out: mpsc::Sender<Out>, told: Arc<AtomicBool>) -> mpsc::Sender<Out> {
    let (tx, mut rx) = mpsc::channel(1);
    tokio::spawn(async move {
        for text in first {
            if out.send(Out::Text(text)).await.is_err() {
                return;
            }
            told.store(true, Ordering::Relaxed);
        }
        loop {
            let next = tokio::select! {
                next = rx.recv() => next,
                () = out.closed() => return,
            };
            let Some(next) = next else { return };
            if out.send(next).await.is_err() {
                return;
            }
        }
    });
    tx
}

/// The last that a socket hears of a session that goes on without it. Does not wait for it.
fn leave(clock: &Clock, out: mpsc::Sender<Out>, text: Option<Arc<str>>, reason: &str) {
    let (clock, reason) = (clock.clone(), reason.to_owned());
    tokio::spawn(async move {
        let tell = async {
            if let Some(text) = text {
                let _ = out.send(Out::Text(text)).await;
            }
            let _ = out.send(Out::Close(1000, reason)).await;
        };
        clock.timeout(FAREWELL, tell).await;
    });
}

fn expired(session: &Session, reason: Expiry) -> ServerEvent {
    ServerEvent::SessionExpired { session_id: session.id().to_string(), reason }
}
