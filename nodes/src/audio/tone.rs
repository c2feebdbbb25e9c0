//! `audio.tone`: a source of a sine, white noise or silence.
//!
//! Sample n is computed from n alone, so the wave never drifts. Paced, frame n leaves at its time on the clock, and a lag
//! is made up without a burst; unpaced, as fast as the consumers take it. Noise is the same for the same seed.

use std::f64::consts::TAU;

use omni_flow::units::Dur;
use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Make, MediaTime, Node, NodeError, Opt, OptionError, Port, Schema, Sent,
};
use omni_flow_media::levels::amplitude;
use serde::Deserialize;

use super::{check_channels, check_db, check_frame, check_rate, f32_audio, pcm, samples_in};
use crate::playout::Pace;

/// The node type.
pub struct Tone;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ToneConfig {
    wave: Wave,
    freq: f64,
    level: f64,
    duration: Option<Dur>,
    rate: u32,
    channels: u16,
    frame: Dur,
    pace: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Wave {
    #[default]
    Sine,
    Noise,
    Silence,
}

impl Default for ToneConfig {
    fn default() -> Self {
        Self {
            wave: Wave::Sine,
            freq: 440.0,
            level: -20.0,
            duration: None,
            rate: 16_000,
            channels: 1,
            frame: Dur(std::time::Duration::from_millis(20)),
            pace: true,
        }
    }
}

impl ToneConfig {
    /// Samples `from .. from + frames` of the wave, the same in all channels.
    fn samples(&self, seed: u64, from: u64, frames: usize) -> Vec<f32> {
        let peak = amplitude(self.level as f32);
        let one = |n: u64| match self.wave {
            // The whole turns are taken off in integers as far as they go, so that no hour is heard in the pitch.
            Wave::Sine => {
                let turns = (n % u64::from(self.rate)) as f64 * self.freq / f64::from(self.rate)
                    + (n / u64::from(self.rate)) as f64 * self.freq.fract();
                peak * (TAU * turns.fract()).sin() as f32
            }
            Wave::Noise => peak * noise(seed, n),
            Wave::Silence => 0.0,
        };
        let channels = usize::from(self.channels);
        (from..from + frames as u64).flat_map(|n| std::iter::repeat_n(one(n), channels)).collect()
    }
}

/// White noise in -1 .. 1: the SplitMix64 finaliser (Steele, Lea, Flood 2014) of the sample's number.
fn noise(seed: u64, n: u64) -> f32 {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 40) as f32 / (1u32 << 23) as f32 - 1.0
}

struct Playing(ToneConfig);

impl Node for Playing {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let c = self.0;
        let mut out = cx.output("out")?;
        let frame = samples_in(c.frame.0, c.rate);
        let total = c.duration.map(|d| MediaTime::from_duration(d.0).to_samples(c.rate));
        let mut pace = Pace::new(c.rate, frame as u32, cx.clock().now());
        let mut at = 0;
        while total.is_none_or(|t| at < t) && !cx.is_closing() {
            let n = total.map_or(frame, |t| (t - at).min(frame as u64) as usize);
            if c.pace {
                let next = pace.next(cx.clock().now());
                tokio::select! {
                    biased;
                    () = cx.closing() => break,
                    () = cx.clock().sleep_until(next) => {}
                }
                pace.sent(n as u64, cx.clock().now());
            }
            let audio = pcm(c.rate, c.channels, c.samples(cx.seed(), at, n))?;
            let stamp = cx.arrival().child(MediaTime::from_samples(at, c.rate), audio.len());
            if out.send(&stamp, audio).await == Sent::Gone {
                return Ok(());
            }
            at += n as u64;
        }
        Ok(())
    }
}

impl Make for Tone {
    const NAME: &'static str = "audio.tone";
    type Config = ToneConfig;
    fn schema() -> Schema {
        Schema::new("Plays a sine, white noise or silence")
            .output(Port::new("out", f32_audio(None, None), "the sound"))
            .option(Opt::new("wave", "sine|noise|silence", "sine", "what to play"))
            .option(Opt::new("freq", "number", "440", "frequency of the sine in Hz, up to half the rate"))
            .option(Opt::new("level", "number", "-20", "peak in dB of full scale, -120 to 0"))
            .option(Opt::maybe("duration", "duration", "how long; default: until nobody listens"))
            .option(Opt::new("rate", "integer", "16000", "sample rate in Hz"))
            .option(Opt::new("channels", "integer", "1", "channels, all alike"))
            .option(Opt::new("frame", "duration", "20ms", "length of a chunk"))
            .option(Opt::new("pace", "yes/no", "true", "true: in time by the clock; false: as fast as it is taken"))
            .example("tone: { use: audio.tone, freq: 440, duration: 2s }")
    }
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        check_rate(config.rate)?;
        check_channels(config.channels)?;
        check_db("level", config.level)?;
        check_frame("frame", config.frame.0)?;
        if config.level > 0.0 {
            return Err(OptionError::new("level", "is above full scale", "write 0 or less, for instance `-20`"));
        }
        let half = f64::from(config.rate) / 2.0;
        if !(config.freq > 0.0 && config.freq <= half) {
            let words = format!("is {} Hz, outside 0 to half the rate ({half} Hz)", config.freq);
            return Err(OptionError::new("freq", words, "lower it, or raise `rate`"));
        }
        schema.outputs[0].kind = f32_audio(Some(config.rate), Some(config.channels));
        schema.outputs[0].longest = MediaTime::from_duration(config.frame.0);
        Ok(())
    }
    fn build(config: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.clone();
        Ok(Body::node(move || Playing(config.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_do_not_depend_on_the_cut_and_stay_in_level() {
        for wave in [Wave::Sine, Wave::Noise, Wave::Silence] {
            let c = ToneConfig { wave, level: -6.0, freq: 440.5, ..ToneConfig::default() };
            let whole = c.samples(7, 0, 1_000);
            let mut cut = c.samples(7, 0, 333);
            cut.extend(c.samples(7, 333, 667));
            assert_eq!(whole, cut);
            assert!(whole.iter().all(|s| s.abs() <= amplitude(-6.0) * 1.000_01));
        }
        let c = ToneConfig::default();
        let (early, late) = (c.samples(0, 0, 100), c.samples(0, 16_000 * 86_400, 100));
        assert!(early.iter().zip(&late).all(|(a, b)| (a - b).abs() < 1e-6), "the same phase a day later");
    }
}
