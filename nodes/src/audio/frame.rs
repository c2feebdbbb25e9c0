//! `audio.frame`: frames of exactly so many samples out of chunks of any size.
//!
//! The frames do not depend on how the input was cut. A segment's rest is filled, given short or dropped at its end; a
//! fence, a change of format or a jump of the time line begins a new segment. Samples are given as `f32`.

use omni_flow::units::Dur;
use omni_flow::{
    Body, BuildCx, BuildError, Emit, Make, MediaTime, Opt, OptionError, Pcm, Port, Schema, Stamp, Step, StepError,
};
use serde::Deserialize;

use super::{any_audio, check_frame, f32_audio, jumps, pcm, samples_in};
use crate::frame::{Frame, Framer, Tail};

/// The node type.
pub struct Frames;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FramesConfig {
    length: Option<Dur>,
    samples: Option<usize>,
    #[serde(default)]
    tail: TailRule,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TailRule {
    #[default]
    Pad,
    Short,
    Drop,
}

struct Framing {
    config: FramesConfig,
    /// Rate, channels and end of the segment in work.
    open: Option<(u32, u16, MediaTime, Framer)>,
}

impl Framing {
    fn finish(&mut self, stamp: &Stamp, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        let Some((rate, channels, _, mut framer)) = self.open.take() else { return Ok(()) };
        let tail = match self.config.tail {
            TailRule::Pad => Tail::Pad,
            TailRule::Short => Tail::Short,
            TailRule::Drop => Tail::Drop,
        };
        let mut rest = Vec::new();
        framer.finish(tail, |f| rest.push(taken(&f)));
        give(rest, rate, channels, stamp, out)
    }
}

type Taken = (MediaTime, Vec<f32>);

fn taken(f: &Frame<'_>) -> Taken {
    (f.pts, f.audio.to_vec())
}

fn give(frames: Vec<Taken>, rate: u32, channels: u16, stamp: &Stamp, out: &mut Emit<Pcm>) -> Result<(), StepError> {
    for (pts, samples) in frames {
        let audio = pcm(rate, channels, samples)?;
        out.put(stamp, pts, audio.len(), audio);
    }
    Ok(())
}

impl Step for Framing {
    type In = Pcm;
    type Out = Pcm;
    fn step(&mut self, stamp: &Stamp, input: Pcm, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        let (rate, channels) = (input.rate(), input.channels());
        if self.open.as_ref().is_some_and(|o| (o.0, o.1) != (rate, channels) || jumps(o.2, stamp.pts)) {
            self.finish(stamp, out)?;
        }
        if self.open.is_none() {
            let length = self.config.length.unwrap_or(Dur(std::time::Duration::from_millis(20)));
            let samples = self.config.samples.unwrap_or_else(|| samples_in(length.0, rate));
            let mut framer = Framer::new(samples, usize::from(channels), rate)?;
            framer.restart(stamp.pts);
            self.open = Some((rate, channels, stamp.pts, framer));
        }
        if let Some((.., end, framer)) = &mut self.open {
            *end = stamp.pts + input.len();
            let mut frames = Vec::new();
            framer.push(&input.f32(), |f| frames.push(taken(&f)));
            give(frames, rate, channels, stamp, out)?;
        }
        if stamp.last {
            self.finish(stamp, out)?;
        }
        Ok(())
    }
    fn fence(&mut self) {
        self.open = None;
    }
    fn end(&mut self, stamp: &Stamp, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        self.finish(stamp, out)
    }
}

impl Make for Frames {
    const NAME: &'static str = "audio.frame";
    type Config = FramesConfig;
    fn schema() -> Schema {
        Schema::new("Cuts audio into frames of exactly one length")
            .input(Port::new("in", any_audio(), "audio in chunks of any size"))
            .output(Port::new("out", f32_audio(None, None), "frames").like("in"))
            .option(Opt::new("length", "duration", "20ms", "length of a frame, 1ms to 1s"))
            .option(Opt::maybe("samples", "integer", "samples per channel of a frame, 1 to 192000; replaces `length`"))
            .option(Opt::new("tail", "pad|short|drop", "pad", "what becomes of the rest at the end of a segment"))
            .example("frames: { use: audio.frame, length: 20ms, in: mic }")
    }
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        match (config.length, config.samples) {
            (Some(_), Some(_)) => {
                Err(OptionError::new("samples", "is given together with `length`", "keep one of the two"))
            }
            (Some(d), None) => {
                schema.outputs[0].longest = MediaTime::from_duration(d.0);
                check_frame("length", d.0)
            }
            (None, Some(n)) if !(1..=192_000).contains(&n) => {
                Err(OptionError::new("samples", format!("is {n}, outside 1 to 192000"), "write for instance 512"))
            }
            _ => Ok(()),
        }
    }
    fn build(config: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.clone();
        Ok(Body::step(move || Framing { config: config.clone(), open: None }))
    }
}
