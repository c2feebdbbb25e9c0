//! `util.chunk`: joins frames of audio, tokens or a tensor's rows into chunks as a chunk policy says.
//!
//! No frame goes twice and none is lost: when a boundary is reached all whole frames go out as one chunk. The last chunk of
//! a segment carries what is left, also part of a frame; if nothing is left, it is empty. A fence forgets what is held.

use omni_flow::units::Dur;
use omni_flow::{
    Body, Buf, BuildCx, BuildError, ChunkNotes, Ctx, Dtype, Event, Make, MediaTime, Medium, Node, NodeError, Opt,
    OptionError, Payload, Pcm, Port, SampleType, Schema, Sent, Stamp, Tensor, Terminal, Tokens,
};
use serde::Deserialize;
use thiserror::Error;

use super::{Active, ChunkConfig, Chunker, Policy, StreamStart, Streams, in_words, option_error};

/// The node type.
pub struct Chunk;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ChunkOptions {
    size: Option<i64>,
    initial: Option<i64>,
    ramp: Option<Vec<i64>>,
    adaptive: Option<bool>,
    min: Option<i64>,
    margin: Option<Dur>,
    divisor: Option<i64>,
    delta_min: Option<i64>,
    factor: Option<f64>,
    max: Option<i64>,
    rtf: Option<f64>,
    frame: Option<Dur>,
    #[serde(default = "one")]
    tokens_per_frame: usize,
}
fn one() -> usize {
    1
}

impl ChunkOptions {
    fn config(&self) -> ChunkConfig {
        ChunkConfig {
            size: self.size,
            initial: self.initial,
            ramp: self.ramp.clone(),
            adaptive: self.adaptive,
            min: self.min,
            margin_ms: self.margin.map(|d| d.0.as_secs_f64() * 1e3),
            divisor: self.divisor,
            delta_min: self.delta_min,
            factor: self.factor,
            max: self.max,
            rtf: self.rtf,
        }
    }
    fn policy(&self) -> Result<Policy, super::ChunkConfigError> {
        self.config().policy().map(|(policy, _)| policy)
    }
}

/// Bytes held at most while a boundary is waited for.
const MOST: usize = 64 << 20;

/// What cannot be chunked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum ChunkError {
    #[error("chunks of {0} have no frames: feed audio, tokens or a tensor")]
    Medium(&'static str),
    #[error("a segment changes from {0} to {1}: mark the last chunk before the change, or convert before")]
    Changed(String, String),
    #[error("more than {MOST} bytes wait for a boundary of {0} frames: lower `size` or `max`")]
    TooLarge(u64),
    #[error("a tensor of shape {0:?} has no rows: its first size counts frames")]
    NoRows(Vec<usize>),
    #[error("the frames cannot be copied from the device: {0}")]
    Device(String),
}

/// What the frames of a segment are.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    Audio { rate: u32, channels: u16, sample: SampleType },
    Tokens,
    Tensor { dtype: Dtype, row: Vec<usize> },
}

impl Form {
    fn of(p: &Payload) -> Result<Self, ChunkError> {
        match p {
            Payload::Audio(a) => Ok(Self::Audio { rate: a.rate(), channels: a.channels(), sample: a.sample() }),
            Payload::Tokens(_) => Ok(Self::Tokens),
            Payload::Tensor(t) => match t.shape.split_first() {
                Some((_, row)) if row.iter().all(|n| *n > 0) => Ok(Self::Tensor { dtype: t.dtype, row: row.to_vec() }),
                _ => Err(ChunkError::NoRows(t.shape.to_vec())),
            },
            other => Err(ChunkError::Medium(other.medium().name())),
        }
    }
    fn payload(&self, bytes: Vec<u8>) -> Result<Payload, NodeError> {
        Ok(match self {
            Self::Audio { rate, channels, sample } => {
                Payload::Audio(Pcm::new(*rate, *channels, *sample, Buf::from(bytes))?)
            }
            Self::Tokens => {
                let ids = bytes.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b));
                Payload::Tokens(Tokens(ids.collect()))
            }
            Self::Tensor { dtype, row } => {
                let bytes_of_row = (row.iter().product::<usize>() * dtype.bytes()).max(1);
                let shape: Vec<usize> =
                    std::iter::once(bytes.len() / bytes_of_row).chain(row.iter().copied()).collect();
                Payload::Tensor(Tensor { dtype: *dtype, shape: shape.into(), buf: bytes.into() })
            }
        })
    }
    /// Playing time of a frame, ms.
    fn play_ms(&self, c: &ChunkOptions) -> f64 {
        let usual = if matches!(self, Self::Audio { .. }) { 20.0 } else { 80.0 };
        c.frame.map_or(usual, |d| d.0.as_secs_f64() * 1e3)
    }
    fn frame_bytes(&self, c: &ChunkOptions) -> usize {
        match self {
            Self::Audio { rate, channels, sample } => {
                let frame = c.frame.map_or(std::time::Duration::from_millis(20), |d| d.0);
                let samples = MediaTime::from_duration(frame).to_samples(*rate).max(1) as usize;
                samples * usize::from(*channels) * sample.bytes()
            }
            Self::Tokens => 4 * c.tokens_per_frame,
            Self::Tensor { dtype, row } => row.iter().product::<usize>() * dtype.bytes(),
        }
    }
}

/// The segment in work.
struct Held {
    form: Form,
    frame: usize,
    bytes: Vec<u8>,
    /// Bytes given to the chunker as frames.
    counted: usize,
    pts: MediaTime,
    len: MediaTime,
    stamp: Stamp,
    _active: Active,
}

struct Chunking {
    options: ChunkOptions,
    policy: Policy,
    /// Of all sessions, and how many there may be.
    streams: Streams,
    slots: usize,
    /// Of the segment in work.
    chunker: Chunker,
    held: Option<Held>,
}

impl Chunking {
    /// Takes one chunk; gives what is due.
    fn push(
        &mut self,
        stamp: Stamp,
        payload: Payload,
        now: omni_flow::Mono,
    ) -> Result<Vec<(Stamp, Payload)>, NodeError> {
        let form = Form::of(&payload)?;
        let bytes = match &payload {
            Payload::Audio(a) => a.buf().to_host(),
            Payload::Tensor(t) => t.buf.to_host(),
            Payload::Tokens(t) => Ok(t.0.iter().flat_map(|id| id.to_le_bytes()).collect()),
            _ => Ok(Default::default()),
        };
        let bytes = bytes.map_err(|e| ChunkError::Device(e.to_string()))?;
        if let Some(h) = &self.held
            && h.form != form
        {
            return Err(ChunkError::Changed(format!("{:?}", h.form), format!("{form:?}")).into());
        }
        let (policy, chunker) = (&self.policy, &mut self.chunker);
        let h = self.held.get_or_insert_with(|| {
            // A segment begins: its first chunk is chosen by the load that it finds.
            let (active, load) = self.streams.begin(self.slots);
            let (frame, play_ms) = (form.frame_bytes(&self.options).max(1), form.play_ms(&self.options));
            *chunker = Chunker::new(policy.clone(), StreamStart { requested_initial: None, load, play_ms });
            let (pts, len) = (stamp.pts, MediaTime::ZERO);
            Held { form, frame, bytes: Vec::new(), counted: 0, pts, len, stamp, _active: active }
        });
        if h.bytes.is_empty() {
            (h.pts, h.len) = (stamp.pts, MediaTime::ZERO);
        }
        if h.bytes.len() + bytes.len() > MOST {
            return Err(ChunkError::TooLarge(self.chunker.held()).into());
        }
        h.bytes.extend_from_slice(&bytes);
        h.len += stamp.len;
        h.stamp = stamp;
        let frames = (h.bytes.len() - h.counted) / h.frame;
        h.counted += frames * h.frame;
        let mut made = Vec::new();
        if let Some(e) = self.chunker.push(frames, now) {
            made.push(h.take(e.frames as usize * h.frame)?);
        }
        if stamp.last {
            made.extend(self.finish(true)?);
        }
        Ok(made)
    }
    /// Ends the segment; gives what is left, marked as the last if `mark`.
    fn finish(&mut self, mark: bool) -> Result<Option<(Stamp, Payload)>, NodeError> {
        self.chunker.finish();
        let Some(mut h) = self.held.take() else { return Ok(None) };
        if h.bytes.is_empty() && !mark {
            return Ok(None);
        }
        let (stamp, payload) = h.take(h.bytes.len())?;
        Ok(Some((stamp.last(mark), payload)))
    }
}

impl Held {
    fn take(&mut self, bytes: usize) -> Result<(Stamp, Payload), NodeError> {
        let rest = self.bytes.split_off(bytes.min(self.bytes.len()));
        let taken = std::mem::replace(&mut self.bytes, rest);
        self.counted -= taken.len().min(self.counted);
        let payload = self.form.payload(taken)?;
        let len = match &payload {
            Payload::Audio(a) => a.len(),
            _ => self.len,
        };
        let stamp = self.stamp.child(self.pts, len);
        self.pts += len;
        self.len = (self.len - len).max(MediaTime::ZERO);
        Ok((stamp, payload))
    }
}

impl Node for Chunking {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Payload>("in")?;
        let mut out = cx.output("out")?;
        loop {
            match input.next().await {
                Event::Data(stamp, payload) => {
                    for (stamp, payload) in self.push(stamp, payload, cx.clock().now())? {
                        if out.send(&stamp, payload).await == Sent::Gone {
                            return Ok(());
                        }
                    }
                }
                Event::Fence(_) => {
                    self.chunker.clear();
                    self.held = None;
                }
                Event::End(Terminal::End) => {
                    if let Some((stamp, payload)) = self.finish(false)? {
                        out.send(&stamp, payload).await;
                    }
                    return Ok(());
                }
                Event::End(Terminal::Error(e)) => return Err(e.into()),
            }
        }
    }
}

impl Make for Chunk {
    const NAME: &'static str = "util.chunk";
    type Config = ChunkOptions;
    fn schema() -> Schema {
        let any = omni_flow::Kind::of(Medium::Any);
        Schema::new("Joins frames of audio, tokens or tensor rows into chunks by a chunk policy")
            .input(Port::new("in", any.clone(), "audio, tokens or a tensor"))
            .output(Port::new("out", any, "the same in chunks").like("in").segments())
            .option(Opt::new("size", "integer", "25", "frames of a full chunk"))
            .option(Opt::maybe("initial", "integer", "frames of the first chunk; 0: as `size`; default: by load"))
            .option(Opt::maybe("ramp", "list", "frames of the first chunks, at least two entries; replaces `initial`"))
            .option(Opt::new("adaptive", "yes/no", "false", "chunks grow as the listener's headroom allows"))
            .option(Opt::new("min", "integer", "2", "adaptive: smallest chunk"))
            .option(Opt::new("margin", "duration", "50ms", "adaptive: playing time that stays in hand"))
            .option(Opt::new("divisor", "integer", "15", "adaptive: growth is ms per frame through this"))
            .option(Opt::new("delta-min", "integer", "2", "adaptive: least growth per chunk"))
            .option(Opt::maybe("factor", "number", "doubling: chunk i has size x factor^i frames"))
            .option(Opt::maybe("max", "integer", "doubling: largest chunk, default 4 x size"))
            .option(Opt::maybe(
                "rtf",
                "number",
                "time to make a frame through its playing time: what `check` judges by",
            ))
            .option(Opt::maybe("frame", "duration", "playing time of a frame; audio: default 20ms, else 80ms"))
            .option(Opt::new("tokens-per-frame", "integer", "1", "tokens that make a frame"))
            .example("chunks: { use: util.chunk, size: 25, initial: 4, in: talker }")
    }
    fn refine(config: &Self::Config, _: &mut Schema) -> Result<(), OptionError> {
        config.config().policy().map_err(|e| option_error(&e, ""))?;
        if !(1..=4096).contains(&config.tokens_per_frame) {
            return Err(OptionError::new("tokens-per-frame", "is outside 1 to 4096", "write for instance 1"));
        }
        if let Some(d) = config.frame {
            crate::audio::check_frame("frame", d.0)?;
        }
        Ok(())
    }
    fn chunks(config: &Self::Config, cx: &BuildCx) -> Result<ChunkNotes, OptionError> {
        if cx.chunk.is_some() {
            let words = "the policy of `util.chunk` stands in its own options";
            return Err(OptionError::new("chunk", words, "write its keys beside `use`"));
        }
        let (policy, warnings) = config.config().policy().map_err(|e| option_error(&e, ""))?;
        let ports = vec![("out".to_owned(), in_words(&policy, config.rtf))];
        Ok(ChunkNotes { ports, warnings: warnings.iter().map(|w| w.to_string().replace("chunk.", "")).collect() })
    }
    fn build(config: &Self::Config, cx: &BuildCx) -> Result<Body, BuildError> {
        let options = config.clone();
        let policy = options.policy().map_err(BuildError::from_error)?;
        let (streams, slots) = (Streams::default(), cx.slots);
        Ok(Body::node(move || Chunking {
            options: options.clone(),
            policy: policy.clone(),
            streams: streams.clone(),
            slots,
            chunker: Chunker::new(policy.clone(), StreamStart::default()),
            held: None,
        }))
    }
}
