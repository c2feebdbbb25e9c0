//! A client's audio on its way in: base64 to samples of one rate (Realtime protocol, input).
//!
//! One [`Input`] belongs to one session. Appends are pieces of one stream: a byte that is no whole sample waits for the
//! next one, and the converter of rates runs on, so that the samples do not depend on the cuts. Another format ends one
//! stream and begins the next; both keep their exact lengths. The samples are finite and within full scale.

use base64::{Engine, engine::general_purpose::STANDARD};
use omni_flow_media::{
    pcm::FrameSplitter,
    resample::{Quality, Resampler},
};

use super::audio::{self, AudioError, rms};
use crate::realtime::config::format::AudioFormat;

/// What one append was.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Appended {
    /// Its bytes before base64.
    pub bytes: usize,
    /// Its samples, at its own rate.
    pub samples: usize,
    /// Its rate, in samples per second; 0 if there were no bytes.
    pub rate: u32,
    /// Its level, full scale 1.0.
    pub rms: f32,
}

impl Appended {
    /// Its length.
    pub fn duration(&self) -> std::time::Duration {
        let nanos = (self.samples as u128 * 1_000_000_000).checked_div(u128::from(self.rate)).unwrap_or(0);
        std::time::Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[derive(Debug)]
struct Stream {
    format: AudioFormat,
    splitter: FrameSplitter,
    resampler: Resampler,
}

/// The input of one session.
#[derive(Debug)]
pub struct Input {
    rate: u32,
    stream: Option<Stream>,
    dropped: u64,
    repaired: u64,
}

impl Input {
    /// An input that gives so many samples per second.
    pub fn new(rate: u32) -> Self {
        Self { rate, stream: None, dropped: 0, repaired: 0 }
    }

    /// Takes the audio of one append and adds to `out` the samples that it completes. An append of no bytes changes
    /// nothing, whatever its format.
    ///
    /// # Errors
    /// [`AudioError`]; nothing has changed.
    pub fn push(&mut self, format: AudioFormat, audio: &str, out: &mut Vec<f32>) -> Result<Appended, AudioError> {
        let bytes = STANDARD.decode(audio)?;
        if bytes.is_empty() {
            return Ok(Appended::default());
        }
        let coding = audio::samples(format.encoding);
        if self.stream.as_ref().is_none_or(|s| s.format != format) {
            audio::check(format)?;
            let resampler = Resampler::new(format.rate_hz, self.rate, 1, Quality::default())?;
            self.finish(out);
            let splitter = FrameSplitter::new(coding.bytes());
            self.stream = Some(Stream { format, splitter, resampler });
        }
        let mut appended = Appended { bytes: bytes.len(), rate: format.rate_hz, ..Appended::default() };
        if let Some(stream) = &mut self.stream {
            let (mut whole, mut samples) = (Vec::with_capacity(bytes.len() + 4), Vec::new());
            stream.splitter.push(&bytes, &mut whole);
            self.repaired += coding.decode(&whole, &mut samples).nan as u64;
            for sample in samples.iter_mut().filter(|s| s.abs() > 1.0) {
                *sample = sample.clamp(-1.0, 1.0);
                self.repaired += 1;
            }
            (appended.samples, appended.rms) = (samples.len(), rms(&samples));
            let start = out.len();
            stream.resampler.push(&samples, out);
            within(&mut out[start..]);
        }
        Ok(appended)
    }

    /// Ends the stream, as at the commit of an item: adds what the converter still holds, so that the length is exact,
    /// and drops and counts the bytes of a cut sample.
    pub fn finish(&mut self, out: &mut Vec<f32>) {
        if let Some(mut stream) = self.stream.take() {
            self.dropped += stream.splitter.clear() as u64;
            let start = out.len();
            stream.resampler.flush(out);
            within(&mut out[start..]);
        }
    }

    /// Forgets the stream, as at a clear: nothing of it is heard later.
    pub fn clear(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            self.dropped += stream.splitter.clear() as u64;
        }
    }

    /// Bytes of cut samples that were dropped at the end of a stream.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped
    }

    /// Samples that were no numbers, or beyond full scale.
    pub fn repaired(&self) -> u64 {
        self.repaired
    }
}

/// A filter may ring a little beyond full scale.
fn within(samples: &mut [f32]) {
    samples.iter_mut().for_each(|s| *s = s.clamp(-1.0, 1.0));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::realtime::config::format::Encoding;

    fn format(encoding: Encoding, rate_hz: u32) -> AudioFormat {
        AudioFormat { encoding, rate_hz }
    }

    fn encode(encoding: Encoding, samples: &[f32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        audio::samples(encoding).encode(samples, &mut bytes);
        bytes
    }

    fn sine(hz: f64, rate: u32, samples: usize, amplitude: f64) -> Vec<f32> {
        let step = std::f64::consts::TAU * hz / f64::from(rate);
        (0..samples).map(|i| (amplitude * (i as f64 * step).sin()) as f32).collect()
    }

    /// All samples of a stream that comes in pieces of the given sizes, the last size for ever.
    fn whole(format: AudioFormat, bytes: &[u8], sizes: &[usize]) -> Vec<f32> {
        let (mut input, mut out, mut rest, mut index) = (Input::new(16_000), Vec::new(), bytes, 0);
        while !rest.is_empty() {
            let size = sizes[index.min(sizes.len() - 1)].clamp(1, rest.len());
            input.push(format, &STANDARD.encode(&rest[..size]), &mut out).unwrap();
            (rest, index) = (&rest[size..], index + 1);
        }
        input.finish(&mut out);
        out
    }

    /// The level of one frequency in dB of full scale, by projection on a sine and a cosine.
    fn level(samples: &[f32], hz: f64, rate: f64) -> f64 {
        let (mut re, mut im) = (0.0, 0.0);
        for (i, sample) in samples.iter().enumerate() {
            let angle = std::f64::consts::TAU * hz * i as f64 / rate;
            re += f64::from(*sample) * angle.cos();
            im += f64::from(*sample) * angle.sin();
        }
        20.0 * (2.0 * re.hypot(im) / samples.len() as f64).log10()
    }

    #[test]
    fn a_telephone_sine_arrives_at_its_frequency_and_level() {
        for encoding in [Encoding::Ulaw, Encoding::Alaw] {
            for hz in [300.0, 440.0, 1000.0, 3000.0] {
                let bytes = encode(encoding, &sine(hz, 8_000, 16_000, 0.5));
                let out = whole(format(encoding, 8_000), &bytes, &[160]);
                assert_eq!(out.len(), 32_000);
                let middle = &out[8_000..24_000];
                let got = level(middle, hz, 16_000.0);
                assert!((got - 20.0 * 0.5f64.log10()).abs() < 1.0, "{encoding:?} {hz} Hz: {got} dB");
                for other in [hz * 0.9, hz * 1.1, 8_000.0 - hz] {
                    assert!(level(middle, other, 16_000.0) < got - 30.0, "{encoding:?} {hz} Hz: image at {other}");
                }
            }
        }
    }

    #[test]
    fn a_tone_keeps_its_pitch_and_length_at_every_rate() {
        for rate in [8_000, 16_000, 22_050, 24_000, 44_100, 48_000] {
            let bytes = encode(Encoding::Pcm16, &sine(440.0, rate, rate as usize, 0.5));
            let out = whole(format(Encoding::Pcm16, rate), &bytes, &[641]);
            assert_eq!(out.len(), 16_000, "{rate}");
            let crossings = out.windows(2).filter(|w| (w[0] < 0.0) != (w[1] < 0.0)).count();
            assert!((878..=882).contains(&crossings), "{rate}: {crossings}");
        }
    }

    #[test]
    fn there_is_no_click_where_two_appends_meet() {
        let bytes = encode(Encoding::Pcm16, &sine(440.0, 24_000, 24_000, 0.5));
        let out = whole(format(Encoding::Pcm16, 24_000), &bytes, &[480]);
        // The second difference of a sine is amplitude·step²; a click is far above that.
        let step = std::f32::consts::TAU * 440.0 / 16_000.0;
        let largest = out[200..15_800].windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()).fold(0.0, f32::max);
        assert!(largest < 0.5 * step * step * 1.1, "{largest}");
    }

    #[test]
    fn an_override_of_one_append_keeps_all_lengths() {
        let (mut input, mut out) = (Input::new(16_000), Vec::new());
        let second = sine(440.0, 16_000, 16_000, 0.1);
        for encoding in [Encoding::Pcm16, Encoding::PcmF32, Encoding::Pcm16] {
            let audio = STANDARD.encode(encode(encoding, &second));
            let appended = input.push(format(encoding, 16_000), &audio, &mut out).unwrap();
            assert_eq!(appended.duration(), std::time::Duration::from_secs(1));
            assert!((appended.rms - 0.0707).abs() < 1e-3);
        }
        assert_eq!(out.len(), 48_000);
        let telephone = STANDARD.encode(encode(Encoding::Ulaw, &[0.25; 801]));
        input.push(format(Encoding::Ulaw, 8_000), &telephone, &mut out).unwrap();
        input.push(format(Encoding::Pcm16, 24_000), &STANDARD.encode([0; 4801]), &mut out).unwrap();
        input.finish(&mut out);
        assert_eq!((out.len(), input.dropped_bytes()), (48_000 + 1602 + 1600, 1));
    }

    #[test]
    fn what_is_not_base64_changes_nothing() {
        let pcm = format(Encoding::Pcm16, 16_000);
        let (mut input, mut out) = (Input::new(16_000), Vec::new());
        input.push(pcm, &STANDARD.encode([1, 0, 2]), &mut out).unwrap();
        for bad in ["%%", "AAA", "AAA=\n", "AB==", "AA-_"] {
            let error = input.push(format(Encoding::Alaw, 8_000), bad, &mut out).unwrap_err();
            assert!(matches!(error, AudioError::Base64(_)), "{bad}");
        }
        assert_eq!(input.push(format(Encoding::Alaw, 8_000), "", &mut out).unwrap(), Appended::default());
        input.push(pcm, &STANDARD.encode([0]), &mut out).unwrap();
        assert_eq!((out.as_slice(), input.dropped_bytes()), (&[1.0 / 32768.0, 2.0 / 32768.0][..], 0));
    }

    #[test]
    fn a_rate_that_is_none_changes_nothing() {
        let (mut input, mut out) = (Input::new(16_000), Vec::new());
        input.push(format(Encoding::Pcm16, 16_000), &STANDARD.encode([1, 0, 2]), &mut out).unwrap();
        for rate in [0, 1, 7_999, 48_001, u32::MAX] {
            let error = input.push(format(Encoding::Alaw, rate), &STANDARD.encode([0; 80]), &mut out).unwrap_err();
            assert_eq!(error, AudioError::Rate(rate));
        }
        input.push(format(Encoding::Pcm16, 16_000), &STANDARD.encode([0]), &mut out).unwrap();
        assert_eq!((out.as_slice(), input.dropped_bytes()), (&[1.0 / 32768.0, 2.0 / 32768.0][..], 0));
        let no_rate = Input::new(0).push(format(Encoding::Pcm16, 16_000), &STANDARD.encode([0; 2]), &mut out);
        assert!(matches!(no_rate, Err(AudioError::Resample(_))));
    }

    #[test]
    fn a_cleared_stream_is_not_heard_later() {
        let telephone = format(Encoding::Ulaw, 8_000);
        let (mut input, mut out) = (Input::new(16_000), Vec::new());
        input.push(telephone, &STANDARD.encode(encode(Encoding::Ulaw, &[0.9; 800])), &mut out).unwrap();
        input.clear();
        out.clear();
        input.push(telephone, &STANDARD.encode([0xFF; 800]), &mut out).unwrap();
        input.finish(&mut out);
        assert!(out.len() == 1600 && out.iter().all(|s| *s == 0.0));
    }

    #[test]
    fn floats_that_are_no_samples_are_repaired_and_counted() {
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -2.0, 1.0, -1.0, 0.5];
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let (mut input, mut out) = (Input::new(16_000), Vec::new());
        input.push(format(Encoding::PcmF32, 16_000), &STANDARD.encode(bytes), &mut out).unwrap();
        assert_eq!(out, [0.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.5]);
        assert_eq!(input.repaired(), 5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn samples_do_not_depend_on_the_cuts(
            bytes in prop::collection::vec(any::<u8>(), 0..4000),
            sizes in prop::collection::vec(1usize..500, 1..20),
            encoding in prop_oneof![Just(Encoding::Pcm16), Just(Encoding::PcmF32), Just(Encoding::Ulaw), Just(Encoding::Alaw)],
            rate in prop_oneof![Just(8_000u32), Just(16_000), Just(24_000), Just(44_100), Just(48_000)],
        ) {
            let format = format(encoding, rate);
            let once = whole(format, &bytes, &[usize::MAX]);
            prop_assert_eq!(&whole(format, &bytes, &sizes), &once);
            let samples = (bytes.len() / audio::samples(encoding).bytes()) as u64;
            prop_assert_eq!(once.len() as u64, omni_flow_media::resample::output_len(samples, rate, 16_000));
            prop_assert!(once.iter().all(|s| s.abs() <= 1.0));
        }

        #[test]
        fn no_text_breaks_it(audio in ".{0,40}") {
            let mut out = Vec::new();
            let _ = Input::new(16_000).push(format(Encoding::PcmF32, 48_000), &audio, &mut out);
        }
    }
}
