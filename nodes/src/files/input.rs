//! `file.in`: an audio file as a source, at its own pace or as fast as it is taken.
//!
//! Reads WAV, what symphonia knows, and Ogg Opus; `-` is standard input. Paced, frame n leaves at its time on the clock
//! and a lag is made up without a burst. With `rate` or `channels` the audio is converted. Memory is bounded by a block.
//! Decoding runs on the compute pool; standard input is read by a thread of its own, which lives until its input ends.

use std::path::PathBuf;

use omni_flow::units::Dur;
use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Make, MediaTime, Node, NodeError, Opt, OptionError, Out, Pcm, Port, Schema, Sent,
};
use omni_flow_media::file::{AudioFile, AudioFileError, Input};
use omni_flow_media::resample::Quality;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::located;
use crate::audio::convert::{Converted, Converter};
use crate::audio::{check_channels, check_frame, check_rate, f32_audio, pcm, samples_in};
use crate::frame::{Framer, Tail};
use crate::playout::Pace;

/// The node type.
pub struct FileIn;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FileInConfig {
    path: String,
    #[serde(default = "yes")]
    pace: bool,
    #[serde(default = "twenty")]
    frame: Dur,
    rate: Option<u32>,
    channels: Option<u16>,
}
fn yes() -> bool {
    true
}
fn twenty() -> Dur {
    Dur(std::time::Duration::from_millis(20))
}

/// Where blocks come from.
enum Blocks {
    File(AudioFile),
    /// Blocks of standard input, read ahead by at most [`AHEAD`].
    Pipe(mpsc::Receiver<Result<Block, AudioFileError>>),
}

/// Interleaved audio at a rate with so many channels; how much was damaged, and how much is known to be missing, so far.
struct Block {
    rate: u32,
    channels: u16,
    samples: Vec<f32>,
    damage: u64,
    missing: Option<std::time::Duration>,
}

const AHEAD: usize = 4;

/// The next block; without samples at the end of the file.
fn block(file: &mut AudioFile) -> Result<Block, AudioFileError> {
    let mut samples = Vec::new();
    file.next(&mut samples)?;
    let spec = file.spec();
    let (rate, channels) = (spec.rate(), spec.layout().channels());
    Ok(Block { rate, channels, samples, damage: file.damage(), missing: file.missing() })
}

impl Blocks {
    async fn open(path: PathBuf, cx: &Ctx) -> Result<Self, NodeError> {
        if path.as_os_str() != "-" {
            return Ok(Self::File(cx.offload(&cx.arrival(), move || AudioFile::open(&path)).await??));
        }
        let (tx, rx) = mpsc::channel(AHEAD);
        let read = move || {
            let mut file = match AudioFile::new(Input::pipe(std::io::stdin()), "standard input") {
                Ok(f) => f,
                Err(e) => return drop(tx.blocking_send(Err(e))),
            };
            loop {
                let b = block(&mut file);
                let last = b.as_ref().map_or(true, |b| b.samples.is_empty());
                if tx.blocking_send(b).is_err() || last {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("file.in".into()).spawn(read)?;
        Ok(Self::Pipe(rx))
    }
    async fn next(self, cx: &Ctx) -> Result<(Self, Option<Block>), NodeError> {
        match self {
            Self::File(mut reader) => {
                let (reader, b) = cx
                    .offload(&cx.arrival(), move || {
                        let b = block(&mut reader);
                        (reader, b)
                    })
                    .await?;
                Ok((Self::File(reader), Some(b?)))
            }
            Self::Pipe(mut rx) => {
                let b = rx.recv().await.transpose()?;
                Ok((Self::Pipe(rx), b))
            }
        }
    }
}

/// Cuts converted audio into frames and sends each in its time.
struct Sender {
    config: FileInConfig,
    out: Out<Pcm>,
    line: Option<Line>,
}

struct Line {
    rate: u32,
    channels: u16,
    framer: Framer,
    pace: Pace,
}

impl Sender {
    async fn take(&mut self, cx: &Ctx, rate: u32, c: Converted) -> Result<Sent, NodeError> {
        if self.line.is_none() {
            let frame = samples_in(self.config.frame.0, rate);
            let framer = Framer::new(frame, usize::from(c.channels), rate)?;
            let pace = Pace::new(rate, frame as u32, cx.clock().now());
            self.line = Some(Line { rate, channels: c.channels, framer, pace });
        }
        let mut frames = Vec::new();
        if let Some(l) = &mut self.line {
            l.framer.push(&c.samples, |f| frames.push((f.pts, f.audio.to_vec())));
        }
        self.send(cx, frames).await
    }
    async fn end(&mut self, cx: &Ctx) -> Result<Sent, NodeError> {
        let mut frames = Vec::new();
        if let Some(l) = &mut self.line {
            l.framer.finish(Tail::Short, |f| frames.push((f.pts, f.audio.to_vec())));
        }
        self.send(cx, frames).await
    }
    async fn send(&mut self, cx: &Ctx, frames: Vec<(MediaTime, Vec<f32>)>) -> Result<Sent, NodeError> {
        let Some(l) = &mut self.line else { return Ok(Sent::Queued) };
        for (pts, samples) in frames {
            if cx.is_closing() {
                return Ok(Sent::Gone);
            }
            let audio = pcm(l.rate, l.channels, samples)?;
            if self.config.pace {
                let next = l.pace.next(cx.clock().now());
                tokio::select! {
                    biased;
                    () = cx.closing() => {}
                    () = cx.clock().sleep_until(next) => {}
                }
                l.pace.sent(audio.frames() as u64, cx.clock().now());
            }
            let stamp = cx.arrival().child(pts, audio.len());
            if self.out.send(&stamp, audio).await == Sent::Gone {
                return Ok(Sent::Gone);
            }
        }
        Ok(Sent::Queued)
    }
}

/// What is wrong with a file that could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum InError {
    #[error("`{path}` holds no audio: it ends after its header")]
    Empty { path: String },
}

struct Reading {
    config: FileInConfig,
    path: PathBuf,
}

impl Node for Reading {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let Self { config, path } = self;
        let mut converter = Converter::new(config.rate, config.channels, Quality::Good);
        let mut sender = Sender { out: cx.output("out")?, config, line: None };
        let mut blocks = Blocks::open(path.clone(), &cx).await?;
        let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
        let (mut at, mut damage, mut rate, mut told) = (0u64, 0, 0, false);
        loop {
            let (later, next) = tokio::select! {
                biased;
                () = cx.closing() => return Ok(()),
                next = blocks.next(&cx) => next?,
            };
            blocks = later;
            if let Some(b) = &next {
                damage = b.damage;
                if let Some(missing) = b.missing.filter(|_| !std::mem::replace(&mut told, b.missing.is_some())) {
                    let ms = missing.as_millis().max(1);
                    tracing::warn!(node = cx.path(), "`{name}` was cut short: {ms} ms less than its header states");
                }
            }
            let next = next.filter(|b| !b.samples.is_empty());
            let ended = next.is_none();
            let mut made = Vec::new();
            match next {
                Some(b) => {
                    let audio = pcm(b.rate, b.channels, b.samples)?;
                    let pts = MediaTime::from_samples(at, b.rate);
                    rate = sender.config.rate.unwrap_or(b.rate);
                    at += audio.frames() as u64;
                    converter.push(pts, &audio, &mut made)?;
                }
                None => converter.end(&mut made),
            }
            for c in made {
                if sender.take(&cx, rate, c).await? == Sent::Gone {
                    return Ok(());
                }
            }
            if ended {
                break;
            }
        }
        if at == 0 {
            return Err(InError::Empty { path: name }.into());
        }
        if damage > 0 {
            tracing::warn!(
                node = cx.path(),
                path = name,
                damage,
                "parts of the file could not be decoded and were left out"
            );
        }
        sender.end(&cx).await?;
        Ok(())
    }
}

impl Make for FileIn {
    const NAME: &'static str = "file.in";
    type Config = FileInConfig;
    fn schema() -> Schema {
        Schema::new("Plays an audio file (WAV, FLAC, MP3, Ogg and more), at its own pace")
            .output(Port::new("out", f32_audio(None, None), "its audio"))
            .option(Opt::required("path", "text", "the file, relative to the graph file; `-` is standard input"))
            .option(Opt::new("pace", "yes/no", "true", "true: in time by the clock; false: as fast as it is taken"))
            .option(Opt::new("frame", "duration", "20ms", "length of a chunk"))
            .option(Opt::maybe("rate", "integer", "convert to this rate in Hz; default: as in the file"))
            .option(Opt::maybe("channels", "integer", "convert to so many channels; default: as in the file"))
            .example("question: { use: file.in, path: question.wav, rate: 16000, channels: 1 }")
    }
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        if config.path.is_empty() {
            return Err(OptionError::new("path", "is empty", "name an audio file, or `-` for standard input"));
        }
        check_frame("frame", config.frame.0)?;
        config.rate.map_or(Ok(()), check_rate)?;
        config.channels.map_or(Ok(()), check_channels)?;
        schema.outputs[0].kind = f32_audio(config.rate, config.channels);
        schema.outputs[0].longest = MediaTime::from_duration(config.frame.0);
        Ok(())
    }
    fn look(config: &Self::Config, cx: &BuildCx) -> Result<(), OptionError> {
        let path = located(&cx.folder, &config.path);
        if path.as_os_str() == "-" || path.exists() {
            return Ok(());
        }
        let m = format!("there is no `{}`", path.display());
        Err(OptionError::new("path", m, "relative paths start at the folder of the graph file"))
    }
    fn build(config: &Self::Config, cx: &BuildCx) -> Result<Body, BuildError> {
        let (config, path) = (config.clone(), located(&cx.folder, &config.path));
        // A missing or foreign file stops the start, not the first session. A pipe would lose its first bytes.
        if path.metadata().map_or(path.as_os_str() != "-", |m| m.is_file()) {
            AudioFile::open(&path).map_err(BuildError::from_error)?;
        }
        Ok(Body::node(move || Reading { config: config.clone(), path: path.clone() }))
    }
}
