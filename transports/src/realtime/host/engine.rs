//! One session of a graph as the other side of a [`machine`](crate::realtime::machine): commands become chunks and
//! fences, chunks become events.
//!
//! Nothing here waits for the graph in the way of a command: what goes in waits in a queue with a task that waits for
//! credit. A question goes in behind the audio that it is about. A fence acts at once, past all that waits.

use std::sync::Arc;

use omni_flow::{
    Clock, Event, Graph, In, Input, Lane, MediaTime, OpenError, Payload, Pcm, RunError, Sent, Session, SessionHandle,
    Signal, Stamp, Terminal, TurnEnd,
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::asked::{Asked, Stream};
use super::ends::Ends;
use super::feed::{Feed, Queue};
use super::prompt;
use crate::realtime::config::turn::TurnDetection;
use crate::realtime::machine::{AnswerPart, GraphCommand, GraphEvent, INPUT_RATE_HZ, Prompt};
use crate::realtime::wire::server::response::Usage;

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
    /// Tasks that take outputs, and the one that feeds.
    takers: JoinSet<()>,
    feeder: JoinSet<()>,
}

struct Shared {
    handle: SessionHandle,
    clock: Clock,
    feed: Mutex<Queue>,
    fed: Notify,
    asked: Mutex<Asked>,
    events: mpsc::Sender<GraphEvent>,
}

impl Link {
    /// Opens a session of `graph`.
    ///
    /// # Errors
    /// [`OpenError`]: no place is free, or a node refuses.
    pub(super) fn open(graph: &Graph, ends: &Ends, clock: &Clock) -> Result<Self, OpenError> {
        let mut session = graph.open()?;
        let (tx, events) = mpsc::channel(EVENTS);
        let shared = Arc::new(Shared {
            handle: session.handle(),
            clock: clock.clone(),
            feed: Mutex::default(),
            fed: Notify::new(),
            asked: Mutex::default(),
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
        let taken = [
            (out(&ends.speaker), Role::Speaker),
            (out(&ends.said), Role::Said),
            (out(&ends.heard), Role::Heard),
            (out(&ends.unheard), Role::Heard),
            (out(&ends.turns), Role::Turns),
            (out(&ends.events), Role::Events),
        ];
        for (output, role) in taken {
            if let Some(output) = output {
                takers.spawn(take(shared.clone(), output, role, lane));
            }
        }
        let (speaks, says) = (ends.speaker.is_some(), ends.said.is_some());
        Ok(Self { session, lane, speaks, says, shared, events, takers, feeder })
    }
    /// Does what the session asks. Never waits.
    pub(super) fn command(&self, command: GraphCommand) {
        match command {
            GraphCommand::Audio { samples, holds } => self.feed(Feed::Audio(samples, holds)),
            GraphCommand::Commit => self.feed(Feed::Commit),
            GraphCommand::Clear => {
                self.shared.feed.lock().clear();
                self.feed(Feed::Control("turn.clear", Map::new()));
            }
            GraphCommand::Detect(detection) => self.feed(Feed::Control("turn.config", rules(detection.as_ref()))),
            GraphCommand::Answer { key, prompt } => self.ask(key, &prompt),
            GraphCommand::Fence => {
                let epoch = self.session.fence(self.lane);
                self.shared.asked.lock().fence(epoch.0);
                self.shared.feed.lock().void();
            }
        }
    }
    fn feed(&self, feed: Feed) {
        self.shared.feed.lock().push(feed);
        self.shared.fed.notify_one();
    }
    fn ask(&self, key: u64, prompt: &Prompt) {
        let epochs = self.shared.handle.epochs();
        let stamp = Stamp { epochs, origin: self.shared.clock.now(), ..Stamp::default() };
        let mut streams = Vec::new();
        if self.says {
            streams.push(Stream::Text);
        }
        if self.speaks && prompt.audio {
            streams.push(Stream::Audio);
        }
        self.shared.asked.lock().ask(key, epochs.of(self.lane).0, &streams);
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
    /// Stops everything and waits until every node has let go.
    ///
    /// # Errors
    /// Which nodes have not let go in time; they go on letting go.
    pub(super) async fn close(mut self) -> Result<(), RunError> {
        self.takers.abort_all();
        self.feeder.abort_all();
        self.session.abort().await
    }
}

impl Shared {
    async fn tell(&self, event: GraphEvent) {
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
            Some(Feed::Commit) => ins.mic.send_last(Pcm::mono(INPUT_RATE_HZ, Vec::new())).await,
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

#[derive(Clone, Copy, Debug)]
enum Role {
    Speaker,
    Said,
    Heard,
    Turns,
    Events,
}

/// Takes an output until it ends.
async fn take(shared: Arc<Shared>, mut output: In<Payload>, role: Role, lane: Lane) {
    loop {
        match output.next().await {
            Event::Data(stamp, payload) => {
                for event in read(&shared, role, lane, &stamp, payload) {
                    shared.tell(event).await;
                }
            }
            Event::Fence(_) => {}
            Event::End(Terminal::End | Terminal::Error(_)) => return,
        }
    }
}

fn samples(time: MediaTime) -> u64 {
    time.to_samples(INPUT_RATE_HZ)
}

/// What a chunk tells.
fn read(shared: &Shared, role: Role, lane: Lane, stamp: &Stamp, payload: Payload) -> Vec<GraphEvent> {
    let epoch = stamp.epochs.of(lane).0;
    let part = |key, part| GraphEvent::Answer { key, part };
    let mut events = Vec::new();
    let mut stream = |stream: Stream, content: Option<AnswerPart>| {
        let mut asked = shared.asked.lock();
        let Some(key) = asked.of(stream, epoch) else { return };
        events.extend(content.map(|c| part(key, c)));
        if stamp.last
            && let Some(key) = asked.ended(stream, epoch)
        {
            events.push(part(key, AnswerPart::End { usage: Usage::default(), cut: false }));
        }
    };
    match (role, payload) {
        (Role::Speaker, Payload::Audio(pcm)) => {
            let audio = (!pcm.is_empty()).then(|| AnswerPart::Audio {
                samples: pcm.f32().into_owned().into(),
                rate_hz: pcm.rate(),
                spoken_chars: None,
            });
            stream(Stream::Audio, audio);
        }
        (Role::Said, Payload::Text(text)) => {
            stream(Stream::Text, (!text.is_empty()).then(|| AnswerPart::Text(text.to_string())));
        }
        (Role::Heard, Payload::Text(text)) => {
            events.push(GraphEvent::Transcript { start: samples(stamp.pts), text });
        }
        (Role::Turns, Payload::Signal(signal)) => events.extend(match signal {
            Signal::SpeechStarted { at } => Some(GraphEvent::SpeechStarted { at: samples(at) }),
            Signal::SpeechStopped { at } => Some(GraphEvent::SpeechStopped { at: samples(at) }),
            Signal::TurnEnded { start, end, reason, .. } => Some(GraphEvent::TurnEnded {
                start: samples(start),
                end: samples(end),
                committed: reason == TurnEnd::Committed,
            }),
            _ => None,
        }),
        (Role::Events, Payload::Signal(signal)) => {
            let key = shared.asked.lock().of(Stream::Text, epoch);
            events.extend(key.and_then(|key| prompt::told(&signal).map(|p| part(key, p))));
        }
        _ => {}
    }
    events
}
