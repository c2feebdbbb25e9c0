//! `speech.vad`: audio in, the same audio out in windows of 512 samples, each with the probability that it is speech.
//!
//! The last chunk of a segment (a client's commit) cuts the window short: what is held goes out as the segment's last, or
//! an empty one if nothing is, and the detector begins anew behind it.

use std::convert::Infallible;

use omni_flow::{
    Body, BuildCx, BuildError, Emit, Kind, Make, MediaTime, Opt, OptionError, Pcm, Port, Schema, Stamp, Step, StepError,
};
use serde::Deserialize;

use crate::catalogue::Task;
use crate::models::{fetch, look, onnx};
use crate::silero::{Framer, SileroModel, VoiceActivity, WINDOW};

const RATE: u32 = 16_000;

/// The node type `speech.vad`.
pub struct SpeechVad;

/// Options of `speech.vad`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct VadConfig {
    #[serde(default = "default_model")]
    model: String,
}
fn default_model() -> String {
    "silero-vad".to_owned()
}

impl Make for SpeechVad {
    const NAME: &'static str = "speech.vad";
    type Config = VadConfig;
    fn schema() -> Schema {
        Schema::new("Voice activity detection with Silero: cuts audio into windows of 32 ms and says which are speech")
            .input(Port::new("in", Kind::mono(RATE), "audio in chunks of any size"))
            .output(Port::new("out", Kind::mono(RATE), "windows of 512 samples with their speech probability"))
            .option(Opt::new(
                "model",
                "text",
                "silero-vad",
                "name in the catalogue or path of a Silero v5 or v6 ONNX file",
            ))
            .example("vad: { use: speech.vad, in: mic }")
    }
    fn look(config: &VadConfig, cx: &BuildCx) -> Result<(), OptionError> {
        look(Task::VoiceActivity, "model", &config.model, cx)
    }
    fn build(config: &VadConfig, cx: &BuildCx) -> Result<Body, BuildError> {
        let files = fetch(Task::VoiceActivity, &config.model, cx)?;
        let file = onnx(&files)?;
        let model = SileroModel::load(file).map_err(BuildError::from_error)?;
        Ok(Body::step(move || Vad::new(model.stream())))
    }
}

/// The step over any detector.
pub(crate) struct Vad<V> {
    detector: V,
    framer: Framer,
    /// Media position of the stream's first sample, and samples since then.
    start: Option<MediaTime>,
    given: u64,
}

impl<V: VoiceActivity> Vad<V> {
    pub(crate) fn new(detector: V) -> Self {
        Self { detector, framer: Framer::default(), start: None, given: 0 }
    }
    /// Gives a window; it is the last of its segment if `stamp` is.
    fn window(
        &mut self,
        stamp: &Stamp,
        window: &[f32; WINDOW],
        valid: usize,
        out: &mut Emit<Pcm>,
    ) -> Result<(), StepError> {
        let p = self.detector.probability(window)?;
        let audio = Pcm::mono(RATE, window[..valid].to_vec()).with_voice(p);
        out.push(stamp.child(self.position(), audio.len()).last(stamp.last), audio);
        self.given += valid as u64;
        Ok(())
    }
    /// Where the next window begins.
    fn position(&self) -> MediaTime {
        self.start.unwrap_or_default() + MediaTime::from_samples(self.given, RATE)
    }
    /// Gives what is held of a window, if anything is.
    fn rest(&mut self, stamp: &Stamp, out: &mut Emit<Pcm>) -> Result<bool, StepError> {
        let valid = self.framer.pending();
        let mut last = None;
        let Ok(()) = self.framer.finish::<Infallible>(|_, w| {
            last = Some(*w);
            Ok(())
        });
        last.map_or(Ok(false), |w| self.window(stamp, &w, valid, out).map(|()| true))
    }
}

impl<V: VoiceActivity + 'static> Step for Vad<V> {
    type In = Pcm;
    type Out = Pcm;
    fn step(&mut self, stamp: &Stamp, input: Pcm, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        self.start.get_or_insert(stamp.pts);
        let mut windows: Vec<[f32; WINDOW]> = Vec::new();
        let Ok(()) = self.framer.push::<Infallible>(&input.f32(), |_, w| {
            windows.push(*w);
            Ok(())
        });
        let open = stamp.last(false);
        windows.iter().try_for_each(|w| self.window(&open, w, WINDOW, out))?;
        if stamp.last {
            if !self.rest(stamp, out)? {
                out.push(stamp.child(self.position(), MediaTime::ZERO).last(true), Pcm::mono(RATE, Vec::new()));
            }
            self.detector.reset();
        }
        Ok(())
    }
    fn fence(&mut self) {
        self.detector.reset();
        self.framer.reset();
        (self.start, self.given) = (None, 0);
    }
    fn end(&mut self, stamp: &Stamp, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        self.rest(&stamp.last(false), out).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::silero::SileroError;

    /// Its probability is the number of windows since its reset.
    #[derive(Default)]
    struct Counting(u32);
    impl VoiceActivity for Counting {
        fn probability(&mut self, _: &[f32; WINDOW]) -> Result<f32, SileroError> {
            self.0 += 1;
            Ok(self.0 as f32)
        }
        fn reset(&mut self) {
            self.0 = 0;
        }
    }
    /// Position, samples, probability and end of what comes out for a chunk of `n` samples at sample `at`.
    fn step(vad: &mut Vad<Counting>, at: u64, n: usize, last: bool) -> Vec<(u64, usize, Option<f32>, bool)> {
        let mut out = Emit::default();
        let stamp = Stamp { pts: MediaTime::from_samples(at, RATE), ..Stamp::default() }.last(last);
        vad.step(&stamp, Pcm::mono(RATE, vec![0.0; n]), &mut out).unwrap();
        out.drain().map(|(s, p)| (s.pts.to_samples(RATE), p.frames(), p.voice(), s.last)).collect()
    }

    #[test]
    fn a_commit_cuts_the_window_short_and_detection_begins_anew() {
        let mut vad = Vad::new(Counting::default());
        assert_eq!(step(&mut vad, 0, 600, false), [(0, 512, Some(1.0), false)]);
        assert_eq!(step(&mut vad, 600, 500, true), [(512, 512, Some(2.0), false), (1_024, 76, Some(3.0), true)]);
        // Nothing is held: the commit goes on alone, and positions go on.
        assert_eq!(step(&mut vad, 1_100, 0, true), [(1_100, 0, None, true)]);
        assert_eq!(step(&mut vad, 1_100, 512, true), [(1_100, 512, Some(1.0), false), (1_612, 0, None, true)]);
        assert_eq!(step(&mut vad, 1_612, 0, false), []);
        let mut out = Emit::default();
        step(&mut vad, 1_612, 10, false);
        vad.end(&Stamp::default().last(true), &mut out).unwrap();
        let rest: Vec<_> = out.drain().map(|(s, p)| (s.pts.to_samples(RATE), p.frames(), s.last)).collect();
        assert_eq!(rest, [(1_612, 10, false)], "the end of the stream is no commit");
    }
}
