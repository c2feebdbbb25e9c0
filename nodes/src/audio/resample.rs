//! `audio.resample`: audio of any rate and channel count, brought to one.
//!
//! Exact length per segment, delay removed, history discarded at a fence, a new state when the input's format changes or
//! its time line jumps. It does not follow clocks.

use omni_flow::{
    Body, BuildCx, BuildError, Emit, Make, MediaTime, Opt, OptionError, Pcm, Port, Schema, Stamp, Step, StepError,
};
use omni_flow_media::resample::{Quality, Resampler};
use serde::Deserialize;

use super::convert::{Converted, Converter};
use super::{any_audio, check_channels, check_rate, f32_audio, pcm};

/// The node type.
pub struct Resample;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ResampleConfig {
    rate: u32,
    channels: Option<u16>,
    #[serde(default)]
    quality: Filter,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Filter {
    Fast,
    #[default]
    Good,
    Best,
}

impl From<Filter> for Quality {
    fn from(f: Filter) -> Self {
        match f {
            Filter::Fast => Self::Fast,
            Filter::Good => Self::Good,
            Filter::Best => Self::Best,
        }
    }
}

struct Converting {
    rate: u32,
    channels: Option<u16>,
    converter: Converter,
    made: Vec<Converted>,
}

impl Converting {
    fn emit(&mut self, stamp: &Stamp, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        let count = self.made.len();
        for (i, c) in self.made.drain(..).enumerate() {
            let audio = pcm(self.rate, c.channels, c.samples)?;
            let last = stamp.last && i + 1 == count;
            out.push(stamp.child(c.pts, audio.len()).last(last).over(last && stamp.over), audio);
        }
        Ok(())
    }
}

impl Step for Converting {
    type In = Pcm;
    type Out = Pcm;
    fn step(&mut self, stamp: &Stamp, input: Pcm, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        self.converter.push(stamp.pts, &input, &mut self.made)?;
        if stamp.last {
            self.converter.end(&mut self.made);
        }
        if stamp.last && self.made.is_empty() {
            // Nothing is held, and the segment ends all the same.
            let channels = self.channels.unwrap_or(input.channels());
            out.push(
                stamp.child(stamp.pts, MediaTime::ZERO).last(true).over(stamp.over),
                pcm(self.rate, channels, Vec::new())?,
            );
        }
        self.emit(stamp, out)
    }
    fn fence(&mut self) {
        self.converter.clear();
    }
    fn end(&mut self, stamp: &Stamp, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        self.converter.end(&mut self.made);
        self.emit(stamp, out)
    }
}

impl Make for Resample {
    const NAME: &'static str = "audio.resample";
    type Config = ResampleConfig;
    fn schema() -> Schema {
        Schema::new("Converts audio to another sample rate, and to fewer or more channels")
            .input(Port::new("in", any_audio(), "audio of any rate"))
            .output(Port::new("out", f32_audio(None, None), "the same at `rate`").like("in"))
            .option(Opt::required("rate", "integer", "output rate in Hz, 1000 to 768000"))
            .option(Opt::maybe("channels", "integer", "output channels: 1 is the mean of all; default: as they come"))
            .option(Opt::new("quality", "fast|good|best", "good", "filter length: 32, 64 or 192 taps"))
            .example("mic16k: { use: audio.resample, rate: 16000, channels: 1, in: mic }")
    }
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        check_rate(config.rate)?;
        if let Some(n) = config.channels {
            check_channels(n)?;
        }
        schema.outputs[0].kind = f32_audio(Some(config.rate), config.channels);
        Ok(())
    }
    fn build(config: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        let c = config.clone();
        // The filter of the most usual input is made here, not at the first chunk.
        let _ = Resampler::new(48_000, c.rate, 1, c.quality.into());
        Ok(Body::step(move || Converting {
            rate: c.rate,
            channels: c.channels,
            converter: Converter::new(Some(c.rate), c.channels, c.quality.into()),
            made: Vec::new(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_segment_passes_whatever_is_held() {
        let mut step = Converting {
            rate: 16_000,
            channels: Some(1),
            converter: Converter::new(Some(16_000), Some(1), Quality::Good),
            made: Vec::new(),
        };
        let mut give = |samples: usize, last: bool| {
            let mut out = Emit::default();
            let pcm = pcm(24_000, 1, vec![0.0; samples]).unwrap();
            step.step(&Stamp::default().last(last), pcm, &mut out).unwrap();
            let all: Vec<(usize, bool)> = out.drain().map(|(s, p)| (p.frames(), s.last)).collect();
            (all.iter().map(|a| a.0).sum::<usize>(), all.last().is_some_and(|a| a.1))
        };
        let first = give(2_400, false);
        let rest = give(0, true);
        assert_eq!((first.0 + rest.0, first.1, rest.1), (1_600, false, true));
        assert_eq!(give(0, true), (0, true), "nothing is held");
    }
}
