//! `audio.mix`: up to four streams of mono audio added, aligned by media time.
//!
//! A block waits for all inputs that are open, but no longer than `patience` after the first has it; what is missing is
//! silence and what comes too late is dropped and counted. A fence of one input drops what is held of that input only. An
//! input whose time goes back begins anew at the mix's present position.

use std::future::poll_fn;
use std::task::Poll;

use futures_util::future::{Either, select};
use omni_flow::units::Dur;
use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, In, Make, MediaTime, Mono, Node, NodeError, Opt, OptionError, Out, Pcm,
    Port, Schema, Sent, Stamp, Terminal,
};
use omni_flow_media::levels::amplitude;
use serde::Deserialize;

use super::{check_db, check_frame, check_rate, f32_audio, pcm, samples_in};
use crate::frame::{MixError, Mixer, MixerConfig};

const PORTS: [&str; 4] = ["a", "b", "c", "d"];

/// The node type.
pub struct Mix;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct MixConfig {
    rate: u32,
    frame: Dur,
    patience: Dur,
    gains: Vec<f64>,
}

impl Default for MixConfig {
    fn default() -> Self {
        let ms = |n| Dur(std::time::Duration::from_millis(n));
        Self { rate: 48_000, frame: ms(20), patience: ms(60), gains: Vec::new() }
    }
}

/// One input: its edge, the audio that does not fit yet, and how its time lies on the mix's.
#[derive(Default)]
struct Source {
    input: Option<In<Pcm>>,
    pending: Option<(u64, Vec<f32>)>,
    /// Mix position minus stream position.
    shift: i128,
    /// End of what was given, in stream positions.
    end: u64,
    begun: bool,
}

struct Mixing {
    config: MixConfig,
    mixer: Mixer,
    sources: [Source; 4],
    stamp: Stamp,
}

impl Node for Mixing {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut out = cx.output::<Pcm>("out")?;
        for (i, port) in PORTS.iter().enumerate() {
            self.sources[i].input = cx.optional_input(port);
            if self.sources[i].input.is_none() {
                self.mixer.end(i)?;
            }
        }
        self.stamp = cx.arrival();
        loop {
            self.retry(cx.clock().now())?;
            if self.drain(cx.clock().now(), &mut out).await? == Sent::Gone {
                return Ok(());
            }
            if self.sources.iter().all(|s| s.input.is_none() && s.pending.is_none()) {
                break;
            }
            let due = self.mixer.next_due();
            let clock = cx.clock().clone();
            let timer = async {
                match due {
                    Some(at) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let woken = {
                let next = next_of(&mut self.sources);
                futures_util::pin_mut!(timer, next);
                match select(next, timer).await {
                    Either::Left((got, _)) => Some(got),
                    Either::Right(_) => None,
                }
            };
            if let Some((i, event)) = woken {
                self.take(i, event, cx.clock().now())?;
            }
        }
        let (late, limited, bad) = (self.mixer.late_samples(), self.mixer.limited(), self.mixer.not_numbers());
        if late + limited + bad > 0 {
            tracing::info!(node = cx.path(), late, limited, not_numbers = bad, "samples that the mix had to repair");
        }
        Ok(())
    }
}

/// The next event of any input that has no audio waiting.
async fn next_of(sources: &mut [Source; 4]) -> (usize, Event<Pcm>) {
    poll_fn(|cx| {
        for (i, s) in sources.iter_mut().enumerate() {
            if s.pending.is_some() {
                continue;
            }
            if let Some(Poll::Ready(e)) = s.input.as_mut().map(|input| input.poll_next(cx)) {
                return Poll::Ready((i, e));
            }
        }
        Poll::Pending
    })
    .await
}

impl Mixing {
    fn take(&mut self, i: usize, event: Event<Pcm>, now: Mono) -> Result<(), NodeError> {
        let s = &mut self.sources[i];
        match event {
            Event::Data(stamp, audio) => {
                let at = stamp.pts.to_samples(self.config.rate);
                if s.begun && at < s.end {
                    s.shift = i128::from(self.mixer.position()) - i128::from(at);
                }
                (s.begun, s.end) = (true, at.saturating_add(audio.frames() as u64));
                s.pending = Some((at, audio.f32().into_owned()));
                self.stamp =
                    Stamp { epochs: self.stamp.epochs.join(&stamp.epochs), origin: stamp.origin, ..self.stamp };
                self.push(i, now)?;
            }
            Event::Fence(_) => {
                s.pending = None;
                self.mixer.clear_input(i)?;
            }
            Event::End(Terminal::End) => {
                s.input = None;
                self.mixer.end(i)?;
            }
            Event::End(Terminal::Error(e)) => return Err(e.into()),
        }
        Ok(())
    }
    fn retry(&mut self, now: Mono) -> Result<(), NodeError> {
        (0..PORTS.len()).try_for_each(|i| self.push(i, now))
    }
    /// Gives the mixer as much of the waiting audio as it takes.
    fn push(&mut self, i: usize, now: Mono) -> Result<(), NodeError> {
        let s = &mut self.sources[i];
        let Some((at, mut audio)) = s.pending.take() else { return Ok(()) };
        let to = (i128::from(at) + s.shift).clamp(0, i128::from(u64::MAX / 2)) as u64;
        match self.mixer.push(i, to, &audio, now) {
            Ok(()) => return Ok(()),
            Err(MixError::Ahead { until, .. }) if until > to => {
                let fits = (until - to) as usize;
                self.mixer.push(i, to, &audio[..fits], now)?;
                audio.drain(..fits);
                s.pending = Some((at + fits as u64, audio));
            }
            Err(MixError::Ahead { .. }) => s.pending = Some((at, audio)),
            // What was rebased overlaps what the mixer already has of this input.
            Err(MixError::Back { expected, got, .. }) => {
                s.shift += i128::from(expected) - i128::from(got);
                s.pending = Some((at, audio));
                return self.push(i, now);
            }
            Err(e) => return Err(e.into()),
        }
        Ok(())
    }
    async fn drain(&mut self, now: Mono, out: &mut Out<Pcm>) -> Result<Sent, NodeError> {
        while let Some(block) = self.mixer.poll(now) {
            let audio = pcm(self.config.rate, 1, block.audio)?;
            let pts = MediaTime::from_samples(block.position, self.config.rate);
            if out.send(&self.stamp.child(pts, audio.len()), audio).await == Sent::Gone {
                return Ok(Sent::Gone);
            }
            self.retry(now)?;
        }
        Ok(Sent::Queued)
    }
}

impl Make for Mix {
    const NAME: &'static str = "audio.mix";
    type Config = MixConfig;
    fn schema() -> Schema {
        let input = |name: &str| Port::new(name, f32_audio(None, Some(1)), "mono audio of `rate`").optional();
        Schema::new("Adds up to four streams of mono audio, aligned by their time")
            .input(input("a"))
            .input(input("b"))
            .input(input("c"))
            .input(input("d"))
            .output(Port::new("out", f32_audio(None, Some(1)), "the sum, limited to full scale"))
            .option(Opt::new("rate", "integer", "48000", "sample rate of all inputs in Hz"))
            .option(Opt::new("frame", "duration", "20ms", "length of a block given out"))
            .option(Opt::new("patience", "duration", "60ms", "how long a block waits for a late input, up to 10s"))
            .option(Opt::new("gains", "list", "[]", "gain of a, b, c and d in dB; left out: 0"))
            .example("sum: { use: audio.mix, rate: 24000, gains: [0, -12], in: { a: voice, b: music } }")
    }
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        check_rate(config.rate)?;
        check_frame("frame", config.frame.0)?;
        if config.patience.0 > std::time::Duration::from_secs(10) {
            return Err(OptionError::new("patience", "is longer than 10s", "write for instance `60ms`"));
        }
        if config.gains.len() > PORTS.len() {
            let words = format!("has {} entries", config.gains.len());
            return Err(OptionError::new("gains", words, "give at most four, for a, b, c and d"));
        }
        config.gains.iter().try_for_each(|db| check_db("gains", *db))?;
        for port in schema.inputs.iter_mut().chain(&mut schema.outputs) {
            port.kind.rate = Some(config.rate);
        }
        for port in &mut schema.inputs {
            port.kind.sample = None;
        }
        Ok(())
    }
    fn build(config: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.clone();
        let mut settings = MixerConfig::new(PORTS.len(), config.rate);
        settings.block = samples_in(config.frame.0, config.rate);
        settings.skew = settings.skew.max(settings.block * 2);
        settings.deadline = config.patience.0;
        for (gain, db) in settings.gains.iter_mut().zip(&config.gains) {
            *gain = amplitude(*db as f32);
        }
        Ok(Body::try_node(move || {
            let mixer = Mixer::new(&settings).map_err(BuildError::from_error)?;
            Ok(Mixing { config: config.clone(), mixer, sources: Default::default(), stamp: Stamp::default() })
        }))
    }
}
