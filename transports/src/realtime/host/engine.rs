//! One session of a graph as the other side of a [`machine`](crate::realtime::machine): commands become chunks and
//! fences, chunks become events.
//!
//! Nothing here waits for the graph in the way of a command: what goes in waits in a queue with a task that waits for
//! credit. A question goes in behind the audio that it is about. A fence acts at once, past all that waits. What comes out
//! is [`heard`](super::heard) by one task, so that what one node says first is told first.

use std::sync::Arc;

use std::time::Duration;

use omni_flow::{
    ABORT_TIMEOUT, Clock, Graph, Input, Lane, OpenError, Pcm, Sent, Session, SessionHandle, Signal, Stamp,
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::asked::{Asked, Stream};
use super::ends::Ends;
use super::feed::{Feed, Queue};
use super::heard::{self, Role};
use super::prompt;
use crate::realtime::config::turn::TurnDetection;
use crate::realtime::machine::{GraphCommand, GraphEvent, INPUT_RATE_HZ, Prompt};

/// Events that wait for the session's owner. A full queue slows the graph.
const EVENTS: usize = 32;

/// A running session of a graph.
pub(super) struct Link {
    session: Session,
    lane: Lane,
    speaks: bool,
    says: bool,
    shared: Arc<Shared>,
    events: mpsc::Receiver<GraphEvent>,
    /// The task that takes outputs, and the one that feeds.
    takers: JoinSet<()>,
    feeder: JoinSet<()>,
}

pub(super) struct Shared {
    handle: SessionHandle,
    clock: Clock,
    feed: Mutex<Queue>,
    fed: Notify,
    pub(super) asked: Mutex<Asked>,
    events: mpsc::Sender<GraphEvent>,
}

impl Link {
    /// Opens a session of `graph`; `by_itself` says that it answers unasked.
    ///
    /// # Errors
    /// [`OpenError`]: no place is free, or a node refuses.
    pub(super) fn open(graph: &Graph, ends: &Ends, clock: &Clock, by_itself: bool) -> Result<Self, OpenError> {
        let mut session = graph.open()?;
        let (tx, events) = mpsc::channel(EVENTS);
        let (speaks, says) = (ends.speaker.is_some(), ends.said.is_some());
        let unasked = if by_itself { streams(says, speaks) } else { Vec::new() };
        let shared = Arc::new(Shared {
            handle: session.handle(),
            clock: clock.clone(),
            feed: Mutex::default(),
            fed: Notify::new(),
            asked: Mutex::new(Asked::new(&unasked)),
            events: tx,
        });
        let (mut takers, mut feeder) = (JoinSet::new(), JoinSet::new());
        let control = ends.control.as_ref().and_then(|n| session.input(n));
        let ask = ends.ask.as_ref().and_then(|n| session.input(n));
        if ask.is_some() {
            // From the beginning, so that nothing in the graph answers by itself what this session will ask.
            shared.feed.lock().push(Feed::Own);
        }
        if let Some(mic) = session.input(&ends.mic) {
            feeder.spawn(feed(shared.clone(), Ins { mic, control, ask }));
        }
        let mut out = |name: &Option<String>| name.as_ref().and_then(|n| session.output(n));
        let lane = ends.lane;
        // In this order: how an answer comes is known before it comes, a turn before what was said in it, words before the
        // sound that they belong to.
        let taken = [
            (out(&ends.events), Role::Events),
            (out(&ends.turns), Role::Turns),
            (out(&ends.unheard), Role::Heard),
            (out(&ends.heard), Role::Heard),
            (out(&ends.said), Role::Said),
            (out(&ends.spoken), Role::Spoken),
            (out(&ends.speaker), Role::Speaker),
        ];
        let taken: Vec<_> = taken.into_iter().filter_map(|(output, role)| Some((output?, role))).collect();
        takers.spawn(heard::take(shared.clone(), taken, lane));
        Ok(Self { session, lane, speaks, says, shared, events, takers, feeder })
    }
    /// Does what the session asks. Never waits.
    pub(super) fn command(&self, command: GraphCommand) {
        match command {
            GraphCommand::Audio { samples, holds } => self.feed(Feed::Audio(samples, holds)),
            GraphCommand::Commit(rest) => self.feed(Feed::Commit(rest)),
            GraphCommand::Clear => {
                self.shared.feed.lock().clear();
                self.feed(Feed::Control("turn.clear", Map::new()));
            }
            GraphCommand::Detect(detection) => self.feed(Feed::Control("turn.config", rules(detection.as_ref()))),
            GraphCommand::Answer { key, prompt } => self.ask(key, &prompt),
            GraphCommand::Context { instructions, voice } => {
                self.feed(Feed::Question(self.stamp(), prompt::context(instructions, voice)));
            }
            GraphCommand::Fence => {
                let epoch = self.session.fence(self.lane);
                let mut asked = self.shared.asked.lock();
                asked.fence(epoch.0);
                if self.lane == Lane::MAIN {
                    // Nothing there can be made void; what still comes is another answer.
                    asked.clear();
                }
                drop(asked);
                self.shared.feed.lock().void();
            }
        }
    }
    fn feed(&self, feed: Feed) {
        self.shared.feed.lock().push(feed);
        self.shared.fed.notify_one();
    }
    fn stamp(&self) -> Stamp {
        let epochs = self.shared.handle.epochs();
        Stamp { epochs, origin: self.shared.clock.now(), ..Stamp::default() }
    }
    fn ask(&self, key: u64, prompt: &Prompt) {
        let stamp = self.stamp();
        let streams = streams(self.says, self.speaks && prompt.audio);
        self.shared.asked.lock().ask(key, stamp.epochs.of(self.lane).0, &streams);
        self.feed(Feed::Question(stamp, prompt::signal(prompt)));
    }
    /// The next event.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub(super) async fn next(&mut self) -> GraphEvent {
        loop {
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Some(event) => return event,
                    None => std::future::pending().await,
                },
                // An output that has ended; the session says why.
                _ = self.takers.join_next(), if !self.takers.is_empty() => {}
                () = self.shared.handle.ended(), if self.takers.is_empty() => {
                    let message = match self.session.wait().await {
                        Err(e) => e.to_string(),
                        Ok(()) => "the graph has ended".to_owned(),
                    };
                    return GraphEvent::Failed { message };
                }
            }
        }
    }
    /// Signs of life that are no chunks.
    pub(super) fn touch(&self) {
        self.session.touch();
    }
    /// Stops everything and waits until every node has let go. True if all have; else the session keeps its place until
    /// they have, and they are told again every `again`.
    pub(super) async fn close(mut self, again: Duration) -> bool {
        self.takers.abort_all();
        self.feeder.abort_all();
        let (handle, clock, session) = (self.shared.handle.clone(), self.shared.clock.clone(), self.session);
        handle.cancel();
        if clock.timeout(ABORT_TIMEOUT, handle.ended()).await.is_some() {
            return true;
        }
        tokio::spawn(async move {
            while clock.timeout(again, handle.ended()).await.is_none() {
                handle.cancel();
            }
            drop(session);
        });
        false
    }
}

fn streams(says: bool, speaks: bool) -> Vec<Stream> {
    let all = [(says, Stream::Text), (speaks, Stream::Audio)];
    all.into_iter().filter_map(|(there, stream)| there.then_some(stream)).collect()
}

impl Shared {
    pub(super) async fn tell(&self, event: GraphEvent) {
        // The owner is gone: so is everybody who would hear of it.
        let _ = self.events.send(event).await;
    }
}

/// The rules of turns as the graph's nodes read them.
fn rules(detection: Option<&TurnDetection>) -> Map<String, Value> {
    let value = match detection {
        None => json!({"mode": "manual"}),
        Some(d) => json!({
            "mode": "vad",
            "threshold": d.threshold,
            "prefix_padding_ms": d.prefix_padding_ms,
            "silence_duration_ms": d.silence_duration_ms,
            "min_speech_duration_ms": d.min_speech_duration_ms,
            "interrupt": d.interrupt_response,
        }),
    };
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The inputs of the graph.
struct Ins {
    mic: Input,
    control: Option<Input>,
    ask: Option<Input>,
}

/// Feeds the graph in order: the rules of turns ahead of the audio that they mean, a question behind what it is about.
async fn feed(shared: Arc<Shared>, mut ins: Ins) {
    loop {
        let next = shared.feed.lock().pop();
        let sent = match next {
            None => {
                shared.fed.notified().await;
                continue;
            }
            Some(Feed::Audio(samples, holds)) => {
                let sent = ins.mic.send(Pcm::mono(INPUT_RATE_HZ, samples)).await;
                if holds > 0 {
                    shared.tell(GraphEvent::Taken(holds)).await;
                }
                sent
            }
            Some(Feed::Freed(bytes)) => {
                shared.tell(GraphEvent::Taken(bytes)).await;
                Ok(Sent::Queued)
            }
            Some(Feed::Commit(rest)) => ins.mic.send_last(Pcm::mono(INPUT_RATE_HZ, rest)).await,
            Some(Feed::Control(name, mut data)) => match &mut ins.control {
                None => Ok(Sent::Queued),
                Some(control) => {
                    data.insert("at".to_owned(), ins.mic.position().to_samples(INPUT_RATE_HZ).into());
                    let data = Value::Object(data).to_string().into();
                    control.send(Signal::Named { name: name.into(), data }).await
                }
            },
            Some(Feed::Own) => match &mut ins.ask {
                None => Ok(Sent::Queued),
                Some(ask) => ask.send(prompt::own()).await,
            },
            Some(Feed::Question(stamp, question)) => match &mut ins.ask {
                None => Ok(Sent::Queued),
                Some(ask) => ask.answer(&stamp, question).await,
            },
        };
        if !matches!(sent, Ok(Sent::Queued | Sent::Stale)) {
            return;
        }
    }
}
