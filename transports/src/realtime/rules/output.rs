//! An answer's audio on its way out: samples to base64 in the client's format (Realtime protocol, output formats).
//!
//! One [`Output`] belongs to one response; its length is exact to the sample. No piece is longer than a socket frame may
//! be for the strictest client.

use base64::{Engine, engine::general_purpose::STANDARD};
use omni_flow_media::resample::{Quality, Resampler};

use super::audio::{self, AudioError};
use crate::realtime::config::format::{AudioFormat, G711_RATE};

/// Most bytes of one piece before base64: 240,000 characters, below 256 KiB with the event around it.
pub const MAX_PIECE: usize = 180_000;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The samples, as base64.
    pub audio: String,
    /// How many they are, at the output's rate.
    pub samples: u64,
}

/// The output of one response.
#[derive(Debug)]
pub struct Output {
    format: AudioFormat,
    resampler: Resampler,
    samples: u64,
}

impl Output {
    /// From a graph that gives `rate` samples per second to a client's format. G.711 is always 8 kHz, whatever rate the
    /// format names.
    ///
    /// # Errors
    /// [`AudioError`]: a rate that no output may have, or two that cannot be converted.
    pub fn new(rate: u32, format: AudioFormat) -> Result<Self, AudioError> {
        let to = if format.encoding.is_g711() { G711_RATE } else { format.rate_hz };
        let format = AudioFormat { rate_hz: to, ..format };
        audio::check(format)?;
        Ok(Self { format, resampler: Resampler::new(rate, to, 1, Quality::default())?, samples: 0 })
    }

    /// The format of the pieces; its rate is the `sample_rate_hz` of each delta.
    pub fn format(&self) -> AudioFormat {
        self.format
    }

    /// Samples given out so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Takes samples of the graph and gives the pieces that they complete, often one, sometimes none.
    pub fn push(&mut self, samples: &[f32]) -> Vec<Piece> {
        let mut out = Vec::new();
        // What is no number would spread over a whole filter.
        let clean: Vec<f32> = samples.iter().map(|s| if s.is_nan() { 0.0 } else { s.clamp(-1.0, 1.0) }).collect();
        self.resampler.push(&clean, &mut out);
        self.pieces(&out)
    }

    /// Ends the answer and gives what the converter still holds.
    pub fn finish(&mut self) -> Vec<Piece> {
        let mut out = Vec::new();
        self.resampler.flush(&mut out);
        self.pieces(&out)
    }

    fn pieces(&mut self, samples: &[f32]) -> Vec<Piece> {
        self.samples = self.samples.saturating_add(samples.len() as u64);
        let format = audio::samples(self.format.encoding);
        let piece = |part: &[f32]| {
            let mut bytes = Vec::with_capacity(part.len() * format.bytes());
            format.encode(part, &mut bytes);
            Piece { audio: STANDARD.encode(bytes), samples: part.len() as u64 }
        };
        samples.chunks(MAX_PIECE / format.bytes()).map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::realtime::config::format::Encoding;

    fn output(rate: u32, encoding: Encoding, rate_hz: u32) -> Output {
        Output::new(rate, AudioFormat { encoding, rate_hz }).unwrap()
    }

    fn bytes(pieces: &[Piece]) -> Vec<u8> {
        pieces.iter().flat_map(|p| STANDARD.decode(&p.audio).unwrap()).collect()
    }

    #[test]
    fn equal_rates_pass_the_samples_through_at_once() {
        let mut output = output(24_000, Encoding::Pcm16, 24_000);
        let pieces = output.push(&[0.0, 0.5, -0.5, 2.0, f32::NAN]);
        assert_eq!(bytes(&pieces), [0, 0, 0, 64, 0, 192, 255, 127, 0, 0]);
        assert_eq!((pieces[0].samples, output.samples(), output.finish()), (5, 5, vec![]));
        assert!(output.push(&[]).is_empty());
    }

    #[test]
    fn telephone_output_is_8_khz_whatever_was_asked() {
        for (encoding, silence) in [(Encoding::Ulaw, 0xFF), (Encoding::Alaw, 0xD5)] {
            let mut output = output(22_050, encoding, 24_000);
            assert_eq!(output.format().rate_hz, 8_000);
            let mut pieces = output.push(&[0.0; 22_050]);
            pieces.extend(output.finish());
            assert_eq!(bytes(&pieces), vec![silence; 8_000]);
        }
    }

    #[test]
    fn a_long_piece_is_cut_between_samples() {
        let mut output = output(24_000, Encoding::Pcm16, 24_000);
        let pieces = output.push(&[0.1; 200_001]);
        assert_eq!(pieces.iter().map(|p| p.samples).sum::<u64>(), 200_001);
        assert!(pieces.len() == 3 && pieces.iter().all(|p| p.audio.len() < 250_000));
    }

    #[test]
    fn a_rate_that_is_none_is_refused() {
        assert!(matches!(Output::new(0, AudioFormat::pcm16(24_000)), Err(AudioError::Resample(_))));
        for rate in [0, 7_999, 48_001, u32::MAX] {
            assert!(matches!(Output::new(24_000, AudioFormat::pcm16(rate)), Err(AudioError::Rate(r)) if r == rate));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn bytes_do_not_depend_on_the_cuts_and_lengths_are_exact(
            samples in prop::collection::vec(-1.2f32..1.2, 0..3000),
            sizes in prop::collection::vec(1usize..400, 1..20),
            encoding in prop_oneof![Just(Encoding::Pcm16), Just(Encoding::Ulaw), Just(Encoding::Alaw)],
            rate in prop_oneof![Just(16_000u32), Just(22_050), Just(24_000)],
        ) {
            let mut once = output(rate, encoding, 24_000);
            let mut want = once.push(&samples);
            want.extend(once.finish());
            let (mut cut, mut got, mut rest, mut index) = (output(rate, encoding, 24_000), Vec::new(), &samples[..], 0);
            while !rest.is_empty() {
                let size = sizes[index % sizes.len()].min(rest.len());
                got.extend(cut.push(&rest[..size]));
                (rest, index) = (&rest[size..], index + 1);
            }
            got.extend(cut.finish());
            prop_assert_eq!(bytes(&got), bytes(&want));
            let due = omni_flow_media::resample::output_len(samples.len() as u64, rate, cut.format().rate_hz);
            prop_assert_eq!(cut.samples(), due);
        }
    }
}
