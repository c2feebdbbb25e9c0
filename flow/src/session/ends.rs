//! The client's ends of a graph: `session.in` and `session.out`.

use std::sync::Arc;

use serde::Deserialize;

use super::SessionShared;
use crate::node::{Body, BuildCx, BuildError};
use crate::registry::{Make, OptionError};
use crate::schema::{Client, Opt, Port, Schema};
use crate::{Chunk, Item, Kind, MediaTime, Medium, Out, Payload, SampleType, Sent, Stamp};

/// Where a client puts chunks into a running graph. Each is stamped on arrival: with the epochs of that moment, with the
/// time as its origin, and with its place on the stream's own time line.
pub struct Input {
    /// `None` once it has ended.
    out: Option<Out<Payload>>,
    kind: Kind,
    pts: MediaTime,
    shared: Arc<SessionShared>,
    /// Which node of the plan it is.
    node: usize,
}

/// A chunk that an input refuses. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the input takes {takes}, not {got}: convert it first, or change `session.in` in the graph file")]
pub struct InputError {
    /// What the graph file says.
    pub takes: Kind,
    /// What was given.
    pub got: Kind,
}

impl Input {
    pub(crate) fn new(out: Out<Payload>, kind: Kind, shared: Arc<SessionShared>, node: usize) -> Self {
        Self { out: Some(out), kind, pts: MediaTime::ZERO, shared, node }
    }
    /// What it takes.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }
    /// Where the next chunk will stand on the input's time line.
    pub fn position(&self) -> MediaTime {
        self.pts
    }
    /// Sends a value, waiting for credit: a slow graph slows its client. Audio takes its own length on the time line.
    ///
    /// # Errors
    /// [`InputError`] if the value is not of the input's kind.
    ///
    /// # Cancel safety
    /// Dropped while waiting, the value was not sent and the time line has not moved.
    pub async fn send(&mut self, value: impl Item) -> Result<Sent, InputError> {
        self.send_as(value, false).await
    }
    /// As [`Input::send`], for the last value of a segment. On a microphone that ends the utterance there and then, as a
    /// speaker's button does (`speech.turn`); audio without a sample will do.
    ///
    /// # Errors
    /// As [`Input::send`].
    ///
    /// # Cancel safety
    /// As [`Input::send`].
    pub async fn send_last(&mut self, value: impl Item) -> Result<Sent, InputError> {
        self.send_as(value, true).await
    }
    /// As [`Input::send`], for what has a place of its own on the time line (packets from a network, captions): `pts` is
    /// where it stands, and the next value without one follows its end.
    ///
    /// # Errors
    /// As [`Input::send`].
    ///
    /// # Cancel safety
    /// As [`Input::send`].
    pub async fn send_at(&mut self, pts: MediaTime, len: MediaTime, value: impl Item) -> Result<Sent, InputError> {
        let before = std::mem::replace(&mut self.pts, pts);
        let sent = self.send_payload(value.into_payload(), Some(len), self.arrival()).await;
        if sent.is_err() {
            self.pts = before;
        }
        sent
    }
    /// As [`Input::send`], for what a client makes of a chunk that it took from an output: `asked` is that chunk's stamp.
    /// What is sent inherits its epochs and its origin, as a node's answer does, so that it is stale wherever the chunk
    /// would be: if `asked` was ended by a fence in the meantime, no answer to it leaves the fenced lane.
    ///
    /// An input on the fenced lane itself refuses it at once ([`Sent::Stale`]); one on another lane takes it, and it dies
    /// where the graph crosses to the fenced lane.
    ///
    /// # Errors
    /// As [`Input::send`].
    ///
    /// # Cancel safety
    /// As [`Input::send`].
    pub async fn answer(&mut self, asked: &Stamp, value: impl Item) -> Result<Sent, InputError> {
        self.send_payload(value.into_payload(), None, asked.last(false)).await
    }
    /// As [`Input::answer`], for the last value of a segment.
    ///
    /// # Errors
    /// As [`Input::send`].
    ///
    /// # Cancel safety
    /// As [`Input::send`].
    pub async fn answer_last(&mut self, asked: &Stamp, value: impl Item) -> Result<Sent, InputError> {
        self.send_payload(value.into_payload(), None, asked.last(true)).await
    }
    /// The stamp of what a client sends of its own: the epochs of this moment, which is also its origin.
    fn arrival(&self) -> Stamp {
        Stamp { epochs: self.shared.lanes.epochs(), origin: self.shared.clock.now(), ..Stamp::default() }
    }
    async fn send_as(&mut self, value: impl Item, last: bool) -> Result<Sent, InputError> {
        self.send_payload(value.into_payload(), None, self.arrival().last(last)).await
    }
    /// Sends under the epochs, the origin and the `last` of `stamp`; the place on the time line is the input's own.
    async fn send_payload(
        &mut self,
        payload: Payload,
        len: Option<MediaTime>,
        stamp: Stamp,
    ) -> Result<Sent, InputError> {
        let got = kind_of(&payload);
        if !got.feeds(&self.kind) {
            return Err(InputError { takes: self.kind.clone(), got });
        }
        let len = len.unwrap_or(match &payload {
            Payload::Audio(a) => a.len(),
            _ => MediaTime::ZERO,
        });
        let stamp = Stamp { pts: self.pts, len, seq: 0, ..stamp };
        let Some(out) = &mut self.out else { return Ok(Sent::Gone) };
        let sent = out.send_chunk(Chunk { stamp, payload }).await;
        self.pts += len;
        Ok(sent)
    }
    /// Ends the input: what is under way still comes out.
    pub fn end(mut self) {
        if let Some(out) = self.out.take() {
            out.end();
        }
    }
}

impl Drop for Input {
    /// Dropped without [`Input::end`], the client has gone: the graph sees its stream end in error.
    fn drop(&mut self) {
        drop(self.out.take());
        self.shared.input_ended(self.node);
    }
}

fn kind_of(p: &Payload) -> Kind {
    match p {
        Payload::Audio(a) => Kind {
            rate: Some(a.rate()),
            channels: Some(a.channels()),
            sample: Some(a.sample()),
            ..Kind::of(Medium::Audio)
        },
        Payload::Packet(x) => Kind::packet(&x.codec),
        other => Kind::of(other.medium()),
    }
}

/// The node type `session.in`: what a client sends enters the graph here.
pub struct SessionIn;

/// Options of `session.in`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SessionInConfig {
    /// What enters, as a port kind: `text`, `video`, `packet opus`.
    kind: Option<String>,
    /// Shorthand for audio.
    audio: Option<AudioConfig>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct AudioConfig {
    rate: u32,
    #[serde(default = "one")]
    channels: u16,
}
fn one() -> u16 {
    1
}

impl Make for SessionIn {
    const NAME: &'static str = "session.in";
    type Config = SessionInConfig;
    fn schema() -> Schema {
        let mut s = Schema::new("Where a client's chunks enter the graph")
            .output(Port::new("out", Kind::of(Medium::Any), "what the client sends"))
            .option(Opt::maybe("audio", "map", "audio of `rate` Hz and `channels` (1) channels, f32"))
            .option(Opt::maybe("kind", "text", "any other port kind: `text`, `packet opus`"))
            .example("mic: { use: session.in, audio: { rate: 16000 } }");
        s.client = Some(Client::In);
        s
    }
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        schema.outputs[0].kind = match (&config.audio, &config.kind) {
            (Some(_), Some(_)) => {
                return Err(OptionError::new("kind", "is given together with `audio`", "keep one of the two"));
            }
            (None, None) => {
                return Err(OptionError::new("audio", "is missing", "write `audio: { rate: 16000 }` or `kind: text`"));
            }
            (Some(a), None) => {
                if !(1000..=768_000).contains(&a.rate) {
                    return Err(OptionError::new("audio", format!("has a rate of {} Hz", a.rate), "use 8000 to 48000"));
                }
                if !(1..=64).contains(&a.channels) {
                    return Err(OptionError::new("audio", format!("has {} channels", a.channels), "use 1 or 2"));
                }
                Kind {
                    rate: Some(a.rate),
                    channels: Some(a.channels),
                    sample: Some(SampleType::F32),
                    ..Kind::of(Medium::Audio)
                }
            }
            (None, Some(k)) => k
                .parse()
                .map_err(|e: crate::KindError| OptionError::new("kind", e.to_string(), "for instance `text`"))?,
        };
        Ok(())
    }
    fn build(_: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::client())
    }
}

/// The node type `session.out`: what the client gets leaves the graph here.
pub struct SessionOut;

/// Options of `session.out`: none.
#[derive(Debug, Deserialize)]
pub struct SessionOutConfig {}

impl Make for SessionOut {
    const NAME: &'static str = "session.out";
    type Config = SessionOutConfig;
    fn schema() -> Schema {
        let mut s = Schema::new("Where chunks leave the graph towards a client")
            .input(Port::new("in", Kind::of(Medium::Any), "what the client gets"))
            .example("speaker: { use: session.out, lane: reply, in: voice.audio }");
        s.client = Some(Client::Out);
        s
    }
    fn build(_: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::client())
    }
}
