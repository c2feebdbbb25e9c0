//! What a graph gives, as events for its session.
//!
//! One task takes all outputs, always from the first that has something: what is told about an answer comes before the
//! answer, words before their sound. What ends an answer without its last chunk is the exception: it waits until nothing
//! of the answer is left to take.

use std::sync::Arc;
use std::task::{Context, Poll};

use omni_flow::{Event, In, Lane, MediaTime, Payload, Signal, Stamp, TurnEnd};

use super::asked::Stream;
use super::engine::Shared;
use super::prompt::{self, Told};
use super::spoken::Spoken;
use crate::realtime::machine::{AnswerPart, GraphEvent, INPUT_RATE_HZ};
use crate::realtime::wire::server::response::Usage;

/// What an output is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// What is told about answers.
    Events,
    /// Where turns begin and end.
    Turns,
    /// What was said in them.
    Heard,
    /// Words of answers.
    Said,
    /// Which words have their sound by when.
    Spoken,
    /// Sound of answers.
    Speaker,
}

struct Outputs {
    shared: Arc<Shared>,
    taken: Vec<(In<Payload>, Role)>,
    lane: Lane,
    /// Told once nothing of the answer is left to take.
    held: Vec<GraphEvent>,
    /// How far answers have been said, where the graph tells.
    spoken: Option<Spoken>,
}

/// Takes outputs, in the order of their importance, until all have ended.
pub(super) async fn take(shared: Arc<Shared>, taken: Vec<(In<Payload>, Role)>, lane: Lane) {
    let spoken = taken.iter().any(|(_, role)| *role == Role::Spoken).then(Spoken::default);
    let mut outputs = Outputs { shared: shared.clone(), taken, lane, held: Vec::new(), spoken };
    while !outputs.taken.is_empty() {
        for event in std::future::poll_fn(|cx| outputs.poll(cx)).await {
            shared.tell(event).await;
        }
    }
}

impl Outputs {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Vec<GraphEvent>> {
        let mut at = 0;
        while at < self.taken.len() {
            let (output, role) = &mut self.taken[at];
            let role = *role;
            let waits = match role {
                Role::Events => !self.held.is_empty(),
                Role::Said => !self.shared.asked.lock().takes(Stream::Text),
                Role::Speaker => !self.shared.asked.lock().takes(Stream::Audio),
                Role::Turns | Role::Heard | Role::Spoken => false,
            };
            let event = if waits { Poll::Pending } else { output.poll_next(cx) };
            match event {
                Poll::Pending => at += 1,
                Poll::Ready(Event::Data(stamp, payload)) => return Poll::Ready(self.read(role, &stamp, payload)),
                Poll::Ready(Event::Fence(_)) => return Poll::Ready(Vec::new()),
                Poll::Ready(Event::End(_)) => {
                    self.taken.remove(at);
                    return Poll::Ready(Vec::new());
                }
            }
        }
        if self.held.is_empty() { Poll::Pending } else { Poll::Ready(std::mem::take(&mut self.held)) }
    }
    /// What a chunk tells.
    fn read(&mut self, role: Role, stamp: &Stamp, payload: Payload) -> Vec<GraphEvent> {
        let epoch = stamp.epochs.of(self.lane).0;
        match (role, payload) {
            (Role::Speaker, Payload::Audio(pcm)) => {
                let ms = pcm.frames() as f64 * 1e3 / f64::from(pcm.rate());
                let spoken_chars = self.spoken.as_mut().map(|s| s.audio(epoch, ms, stamp.last));
                self.answer(Stream::Audio, stamp, pcm.frames(), |from| {
                    let samples = &pcm.f32()[from * usize::from(pcm.channels().max(1))..];
                    (!samples.is_empty()).then(|| AnswerPart::Audio {
                        samples: samples.into(),
                        rate_hz: pcm.rate(),
                        spoken_chars,
                    })
                })
            }
            (Role::Said, Payload::Text(text)) => {
                if let Some(spoken) = &mut self.spoken {
                    spoken.text(epoch, &text, stamp.last);
                }
                self.answer(Stream::Text, stamp, text.len(), |from| {
                    let new = text.get(from..).unwrap_or_default();
                    (!new.is_empty()).then(|| AnswerPart::Text(new.to_owned()))
                })
            }
            (Role::Spoken, Payload::Signal(signal)) => {
                if let (Some(spoken), Some((text, until_ms))) = (&mut self.spoken, prompt::spoken(&signal)) {
                    spoken.piece(epoch, text, until_ms, stamp.last);
                }
                Vec::new()
            }
            (Role::Heard, Payload::Text(text)) => {
                vec![GraphEvent::Transcript { start: samples(stamp.pts), text }]
            }
            (Role::Turns, Payload::Signal(signal)) => turn(&signal).into_iter().collect(),
            (Role::Events, Payload::Signal(signal)) => self.told(epoch, &signal).into_iter().collect(),
            _ => Vec::new(),
        }
    }
    /// A piece of an answer, of which all before a place may have been given on already.
    fn answer(
        &self,
        stream: Stream,
        stamp: &Stamp,
        len: usize,
        content: impl FnOnce(usize) -> Option<AnswerPart>,
    ) -> Vec<GraphEvent> {
        let epoch = stamp.epochs.of(self.lane).0;
        let mut asked = self.shared.asked.lock();
        let Some(one) = asked.of(stream, epoch) else { return Vec::new() };
        let (key, from) = (one.key, one.fresh(stream, len));
        let mut events: Vec<_> = content(from).map(|part| GraphEvent::Answer { key, part }).into_iter().collect();
        if stamp.last
            && let Some(key) = asked.ended(stream, epoch)
        {
            events.push(GraphEvent::Answer { key, part: AnswerPart::End { usage: Usage::default(), cut: false } });
        }
        events
    }
    /// What is told about an answer: now, or after the rest of it.
    fn told(&mut self, epoch: u32, signal: &Signal) -> Option<GraphEvent> {
        let mut asked = self.shared.asked.lock();
        match prompt::told(signal)? {
            Told::Begins(how) => asked.announce(epoch, how),
            Told::Now(part) => return asked.told(epoch).map(|key| GraphEvent::Answer { key, part }),
            Told::Then(part) => {
                let key = asked.told(epoch)?;
                if part != AnswerPart::NeedsUnit {
                    asked.over(key);
                }
                self.held.push(GraphEvent::Answer { key, part });
            }
        }
        None
    }
}

fn samples(time: MediaTime) -> u64 {
    time.to_samples(INPUT_RATE_HZ)
}

fn turn(signal: &Signal) -> Option<GraphEvent> {
    match *signal {
        Signal::SpeechStarted { at } => Some(GraphEvent::SpeechStarted { at: samples(at) }),
        Signal::SpeechStopped { at } => Some(GraphEvent::SpeechStopped { at: samples(at) }),
        Signal::TurnEnded { start, end, reason, .. } => Some(GraphEvent::TurnEnded {
            start: samples(start),
            end: samples(end),
            committed: reason == TurnEnd::Committed,
        }),
        _ => None,
    }
}
