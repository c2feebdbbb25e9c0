//! `file.out`: writes audio to a WAV or Ogg Opus file while it is made.
//!
//! What the file held stays until the first audio comes. From then on it is valid at any moment, and complete when the
//! stream ends, well or not. A full disk or a path that cannot be written is an error that names it, the latter at once. `{n}` in the path is the number of the session's writer, from 1; without it, two
//! sessions at once are refused. With `gaps: silence`, time without audio is written as silence, up to 60 s at a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, In, Make, MediaTime, Node, NodeError, Opt, OptionError, Pcm, Port, Schema,
    Stamp, Terminal,
};
use omni_flow_media::pcm::SampleFormat;
use serde::Deserialize;
use thiserror::Error;

use super::located;
use super::sink::{Container, Sink, probe};
use crate::audio::{any_audio, jumps};

/// The node type.
pub struct FileOut;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FileOutConfig {
    path: String,
    #[serde(default)]
    format: Format,
    #[serde(default = "i16_name")]
    encoding: String,
    #[serde(default = "bits")]
    bitrate: u32,
    #[serde(default)]
    gaps: Gaps,
}
fn i16_name() -> String {
    "i16".into()
}
fn bits() -> u32 {
    32_000
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Format {
    #[default]
    Auto,
    Wav,
    Opus,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Gaps {
    #[default]
    Join,
    Silence,
}

/// What a session's writer refuses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum OutError {
    #[error("`{0}` is being written by another session: put `{{n}}` into its path")]
    Busy(String),
    #[error(
        "`{path}` holds audio of {was:?} (Hz, channels) and cannot go on with {now:?}: put `audio.resample` before it"
    )]
    Changed { path: String, was: (u32, u16), now: (u32, u16) },
}

/// Longest gap that is written as silence.
const MOST_SILENCE: MediaTime = MediaTime::from_millis(60_000);

impl FileOutConfig {
    fn container(&self) -> Option<Container> {
        let ends = |e: &[&str]| {
            let has = self.path.rsplit_once('.').map(|(_, x)| x.to_ascii_lowercase());
            has.is_some_and(|x| e.contains(&x.as_str()))
        };
        let format = match self.format {
            Format::Auto if ends(&["wav", "wave"]) || self.path == "-" => Format::Wav,
            Format::Auto if ends(&["opus", "ogg", "oga"]) => Format::Opus,
            f => f,
        };
        match format {
            Format::Auto => None,
            Format::Opus => Some(Container::Opus(self.bitrate)),
            Format::Wav => SampleFormat::ALL.into_iter().find(|f| f.name() == self.encoding).map(Container::Wav),
        }
    }
}

struct Writing {
    path: PathBuf,
    container: Container,
    gaps: Gaps,
    number: u32,
    busy: Option<Arc<AtomicBool>>,
    /// Whether this one set `busy`.
    owns: bool,
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(busy) = self.busy.as_ref().filter(|_| self.owns) {
            busy.store(false, Ordering::Release);
        }
    }
}

impl Writing {
    async fn create(&self, cx: &Ctx, format: (u32, u16)) -> Result<Sink, NodeError> {
        let (path, container, number) = (self.path.clone(), self.container, self.number);
        let make = move || Sink::create(&path, container, format.0, format.1, number);
        Ok(cx.offload(&cx.arrival(), make).await??)
    }
    /// Samples to write for this chunk, silence before it included.
    fn samples(&self, stamp: &Stamp, audio: &Pcm, expected: MediaTime) -> Vec<f32> {
        let gap = stamp.pts - expected;
        let mut samples = Vec::new();
        if self.gaps == Gaps::Silence && gap > MediaTime::ZERO && jumps(expected, stamp.pts) {
            let frames = gap.min(MOST_SILENCE).to_samples(audio.rate()) as usize;
            samples.resize(frames * usize::from(audio.channels()), 0.0);
        }
        samples.extend_from_slice(&audio.f32());
        samples
    }
}

impl Node for Writing {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        if let Some(busy) = &self.busy {
            if busy.swap(true, Ordering::AcqRel) {
                return Err(OutError::Busy(self.path.display().to_string()).into());
            }
            self.owns = true;
        }
        let mut input: In<Pcm> = cx.input("in")?;
        let path = self.path.clone();
        cx.offload(&cx.arrival(), move || probe(&path)).await??;
        let mut sink = None;
        let mut expected = None;
        loop {
            match input.next().await {
                // The end of an answer in which nothing was spoken.
                Event::Data(_, audio) if audio.is_empty() => {}
                Event::Data(stamp, audio) => {
                    let now = (audio.rate(), audio.channels());
                    let mut s = match sink.take() {
                        Some(s) => s,
                        None => self.create(&cx, now).await?,
                    };
                    if s.format() != now {
                        let path = self.path.display().to_string();
                        return Err(OutError::Changed { path, was: s.format(), now }.into());
                    }
                    let samples = self.samples(&stamp, &audio, expected.unwrap_or(stamp.pts));
                    expected = Some(stamp.pts + audio.len());
                    let (s, done) = cx
                        .offload(&stamp, move || {
                            let done = s.write(&samples);
                            (s, done)
                        })
                        .await?;
                    done?;
                    sink = Some(s);
                }
                Event::Fence(_) => {}
                Event::End(end) => {
                    let known = input.kind().rate.zip(input.kind().channels);
                    if let (None, Terminal::End, Some(format)) = (&sink, &end, known) {
                        // All went well, and there was nothing to hear.
                        sink = Some(self.create(&cx, format).await?);
                    }
                    match sink.take() {
                        Some(s) => cx.offload(&cx.arrival(), move || s.finish()).await??,
                        None => {
                            let path = self.path.display().to_string();
                            tracing::warn!(node = cx.path(), path, "no audio came: nothing was written");
                        }
                    }
                    return match end {
                        Terminal::End => Ok(()),
                        Terminal::Error(e) => Err(e.into()),
                    };
                }
            }
        }
    }
}

impl Make for FileOut {
    const NAME: &'static str = "file.out";
    type Config = FileOutConfig;
    fn schema() -> Schema {
        Schema::new("Writes audio to a WAV or Ogg Opus file while it is made")
            .input(Port::new("in", any_audio(), "audio of one rate"))
            .option(Opt::required(
                "path",
                "text",
                "the file, relative to the graph file; `{n}`: writer's number; `-`: stdout",
            ))
            .option(Opt::new("format", "auto|wav|opus", "auto", "auto: by the extension (.wav, .opus, .ogg)"))
            .option(Opt::new("encoding", "i16|u8|i24|i32|f32|f64|mulaw|alaw", "i16", "samples of a WAV file"))
            .option(Opt::new("bitrate", "integer", "32000", "bits per second of Opus, 6000 to 510000"))
            .option(Opt::new("gaps", "join|silence", "join", "time without audio: left out, or written as silence"))
            .example("answer: { use: file.out, path: answer.wav, in: voice }")
    }
    fn refine(config: &Self::Config, _: &mut Schema) -> Result<(), OptionError> {
        if config.path.is_empty() || config.path.contains('\0') {
            let words = if config.path.is_empty() { "is empty" } else { "holds a NUL character" };
            return Err(OptionError::new("path", words, "name a file, for instance `answer.wav`"));
        }
        if !SampleFormat::ALL.iter().any(|f| f.name() == config.encoding) {
            let words = format!("is `{}`", config.encoding);
            return Err(OptionError::new("encoding", words, "use one of i16, u8, i24, i32, f32, f64, mulaw, alaw"));
        }
        if !(6_000..=510_000).contains(&config.bitrate) {
            let words = format!("is {}, outside 6000 to 510000", config.bitrate);
            return Err(OptionError::new("bitrate", words, "write for instance `bitrate: 32000`"));
        }
        if config.container().is_none() {
            let words = match std::path::Path::new(&config.path).extension() {
                Some(e) => format!("`{}`: no audio is written as .{}", config.path, e.display()),
                None => format!("`{}` has no extension that says what to write", config.path),
            };
            let hint = "end it in .wav or .wave (WAV), or .ogg, .opus or .oga (Ogg Opus), or add `format: wav`";
            return Err(OptionError::new("path", words, hint));
        }
        Ok(())
    }
    fn build(config: &Self::Config, cx: &BuildCx) -> Result<Body, BuildError> {
        let path = located(&cx.folder, &config.path);
        let shown = path.display().to_string();
        if path.is_dir() {
            return Err(BuildError::new(format!("`{shown}` is a folder: name a file in it")));
        }
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty() && !p.is_dir()) {
            let folder = folder.display();
            return Err(BuildError::new(format!(
                "cannot write `{shown}`: there is no folder `{folder}`; make it first"
            )));
        }
        let container = config.container().ok_or_else(|| BuildError::new("no format"))?;
        let gaps = config.gaps;
        let count = AtomicU64::new(0);
        let busy = (!shown.contains("{n}")).then(|| Arc::new(AtomicBool::new(false)));
        Ok(Body::node(move || {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            let path = PathBuf::from(shown.replace("{n}", &number.to_string()));
            Writing { path, container, gaps, number: number as u32, busy: busy.clone(), owns: false }
        }))
    }
}
