//! `audio.gain`: makes audio louder or softer, saturating at full scale.
//!
//! A change of gain, by a signal on `control`, is ramped so that it makes no click. Samples that are not numbers become
//! 0. Gives `f32` of the input's rate and channels.

use omni_flow::units::Dur;
use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, Kind, Make, Medium, Node, NodeError, Opt, OptionError, Port, Schema, Sent,
    Signal, Terminal,
};
use omni_flow_kernels as kernels;
use omni_flow_media::levels::amplitude;
use serde::Deserialize;

use super::{any_audio, check_db, f32_audio, pcm, samples_in};
use crate::util::select::{Either, either};

/// The node type.
pub struct Gain;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GainConfig {
    #[serde(default)]
    db: f64,
    #[serde(default = "ramp")]
    ramp: Dur,
}
fn ramp() -> Dur {
    Dur(std::time::Duration::from_millis(10))
}

/// The gain of one stream: where it is, where it goes, and in how many frames.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Level {
    now: f32,
    target: f32,
    /// The part of a whole ramp that is left, 1 at its start.
    left: f32,
    from: f32,
}

impl Level {
    fn new(factor: f32) -> Self {
        Self { now: factor, target: factor, left: 0.0, from: factor }
    }
    fn set(&mut self, factor: f32) {
        *self = Self { now: self.now, target: factor, left: 1.0, from: self.now };
    }
    /// Applies the gain to interleaved frames; a whole ramp takes `ramp` frames.
    fn apply(&mut self, x: &mut [f32], channels: usize, ramp: usize) -> kernels::Tally {
        let mut tally = kernels::Tally::default();
        let mut rest = x;
        if self.left > 0.0 {
            let frames = ((self.left * ramp as f32).ceil() as usize).min(rest.len() / channels.max(1));
            let (head, later) = rest.split_at_mut(frames * channels);
            let step = 1.0 / ramp.max(1) as f32;
            for frame in head.chunks_exact_mut(channels) {
                self.left = (self.left - step).max(0.0);
                self.now = self.target + (self.from - self.target) * self.left;
                tally += kernels::gain(frame, self.now);
            }
            rest = later;
        }
        if self.left <= 0.0 {
            self.now = self.target;
        }
        tally + kernels::gain(rest, self.now)
    }
}

struct Amplifier {
    level: Level,
    ramp: Dur,
}

impl Node for Amplifier {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<omni_flow::Pcm>("in")?;
        let mut control = cx.optional_input::<Signal>("control");
        let mut out = cx.output("out")?;
        loop {
            match either(&mut control, &mut input).await? {
                Either::Control(Signal::Named { name, data }) if &*name == "gain" => match data.trim().parse::<f32>() {
                    Ok(db) if (-120.0..=60.0).contains(&db) => self.level.set(factor(f64::from(db))),
                    _ => tracing::warn!(node = cx.path(), data = &*data, "a gain that is not -120 to 60 dB"),
                },
                Either::Control(_) => {}
                Either::Media(Event::Data(stamp, audio)) => {
                    let (rate, channels) = (audio.rate(), audio.channels());
                    let mut samples = audio.f32().into_owned();
                    self.level.apply(&mut samples, usize::from(channels), samples_in(self.ramp.0, rate));
                    if out.send(&stamp, pcm(rate, channels, samples)?).await == Sent::Gone {
                        return Ok(());
                    }
                }
                Either::Media(Event::Fence(_)) => {}
                Either::Media(Event::End(Terminal::End)) => return Ok(()),
                Either::Media(Event::End(Terminal::Error(e))) => return Err(e.into()),
            }
        }
    }
}

fn factor(db: f64) -> f32 {
    amplitude(db as f32)
}

impl Make for Gain {
    const NAME: &'static str = "audio.gain";
    type Config = GainConfig;
    fn schema() -> Schema {
        Schema::new("Makes audio louder or softer, without clicks")
            .input(Port::new("in", any_audio(), "audio of any format"))
            .input(
                Port::new("control", Kind::of(Medium::Signal), "a signal `gain` whose data is a number of dB")
                    .optional(),
            )
            .output(Port::new("out", f32_audio(None, None), "the same, louder or softer").like("in"))
            .option(Opt::new("db", "number", "0", "gain in dB, -120 to 60"))
            .option(Opt::new("ramp", "duration", "10ms", "how long a change of gain takes, up to 10s"))
            .example("softer: { use: audio.gain, db: -6, in: voice }")
    }
    fn refine(config: &Self::Config, _: &mut Schema) -> Result<(), OptionError> {
        check_db("db", config.db)?;
        if config.ramp.0 > std::time::Duration::from_secs(10) {
            return Err(OptionError::new("ramp", "is longer than 10s", "write for instance `10ms`"));
        }
        Ok(())
    }
    fn build(config: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.clone();
        Ok(Body::node(move || Amplifier { level: Level::new(factor(config.db)), ramp: config.ramp }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_ramp_over_chunks_and_frames_stay_together() {
        let mut level = Level::new(1.0);
        level.set(0.0);
        let mut all = Vec::new();
        for _ in 0..5 {
            let mut x = [0.8f32; 8];
            level.apply(&mut x, 2, 10);
            all.extend(x);
        }
        assert!(all.windows(2).all(|w| w[1] <= w[0] + 1e-6 && w[0] - w[1] < 0.081), "{all:?}");
        assert!(all.chunks(2).all(|f| f[0] == f[1]));
        assert_eq!(all[38..], [0.0, 0.0]);
    }
    #[test]
    fn too_loud_saturates_and_what_is_no_number_is_silent() {
        let mut x = [0.9, -0.9, f32::NAN, 0.1];
        let tally = Level::new(2.0).apply(&mut x, 1, 1);
        assert_eq!(x, [1.0, -1.0, 0.0, 0.2]);
        assert_eq!((tally.clipped, tally.nan), (2, 1));
    }
}
