//! Log-mel spectrogram as Whisper takes it.
//!
//! 16 kHz mono; Hann window of 400, hop 160, centred with reflection at both ends; power spectrum; triangular filters
//! on the Slaney mel scale with Slaney's area normalisation, 0 to 8000 Hz; `log10` from 1e-10 up, held within 8 of the
//! utterance's maximum, then `(x + 4) / 4`. Works on a whole utterance, since the last step needs its maximum. Error
//! against a plain DFT in f64: below 1e-4 where a bin is not at the floor.

use std::sync::Arc;

use realfft::{RealFftPlanner, RealToComplex, num_complex::Complex};

/// Sample rate in Hz.
pub const RATE: u32 = 16_000;
/// Window length in samples.
pub const N_FFT: usize = 400;
/// Samples from one frame to the next.
pub const HOP: usize = 160;

const BINS: usize = N_FFT / 2 + 1;
/// Power below which nothing is told apart.
const FLOOR: f32 = 1e-10;

/// Why a [`LogMel`] could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MelError {
    /// Filters would be empty.
    #[error("{n_mels} mel bins are outside 1..=128; Whisper models take 80 or 128")]
    Bins {
        /// Bins asked for.
        n_mels: usize,
    },
}

/// A spectrogram, `[n_mels, frames]`, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Mel {
    /// Rows.
    pub n_mels: usize,
    /// Columns, one per 10 ms.
    pub frames: usize,
    /// `n_mels · frames` values, each row contiguous.
    pub data: Vec<f32>,
}

/// The transform, with its tables and scratch memory; one per worker.
pub struct LogMel {
    filters: Vec<Filter>,
    window: Vec<f32>,
    fft: Arc<dyn RealToComplex<f32>>,
    input: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    power: Vec<f32>,
}

impl std::fmt::Debug for LogMel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogMel").field("n_mels", &self.filters.len()).finish_non_exhaustive()
    }
}

/// The part of a filter that is not zero.
struct Filter {
    first: usize,
    weights: Vec<f32>,
}

impl LogMel {
    /// A transform to `n_mels` bins, 80 or 128 for Whisper.
    ///
    /// # Errors
    /// [`MelError::Bins`] for a number outside 1 to 128.
    pub fn new(n_mels: usize) -> Result<Self, MelError> {
        if !(1..=128).contains(&n_mels) {
            return Err(MelError::Bins { n_mels });
        }
        let fft = RealFftPlanner::<f32>::new().plan_fft_forward(N_FFT);
        Ok(Self {
            filters: slaney_filters(n_mels).iter().map(|row| Filter::new(row)).collect(),
            window: hann().iter().map(|&w| w as f32).collect(),
            input: fft.make_input_vec(),
            spectrum: fft.make_output_vec(),
            scratch: fft.make_scratch_vec(),
            power: vec![0.0; BINS],
            fft,
        })
    }

    /// Rows of the result.
    pub fn n_mels(&self) -> usize {
        self.filters.len()
    }

    /// The spectrogram of `samples` (16 kHz mono, full scale 1.0), taken as followed by zeros up to `length` samples, or
    /// cut there: `length / 160` frames. Whisper's window is `Some(480_000)`; `None` takes the samples as they are. Values
    /// that are not numbers count as 0.
    pub fn compute(&mut self, samples: &[f32], length: Option<usize>) -> Mel {
        let length = length.unwrap_or(samples.len());
        let samples = &samples[..samples.len().min(length)];
        let (n_mels, frames) = (self.filters.len(), length / HOP);
        let mut data = vec![FLOOR.log10(); n_mels * frames];
        let mut top = FLOOR.log10();
        for frame in 0..frames {
            // Frames in the padding are at the floor already.
            let first = (frame * HOP).saturating_sub(N_FFT / 2);
            let reflected = frame * HOP + N_FFT / 2 >= length;
            if first >= samples.len() && !reflected {
                continue;
            }
            self.spectrum_of(samples, frame, length);
            for (row, filter) in self.filters.iter().enumerate() {
                let power = &self.power[filter.first..][..filter.weights.len()];
                let energy: f32 = power.iter().zip(&filter.weights).map(|(p, w)| p * w).sum();
                let value = energy.max(FLOOR).log10();
                top = top.max(value);
                data[row * frames + frame] = value;
            }
        }
        for value in &mut data {
            *value = (value.max(top - 8.0) + 4.0) / 4.0;
        }
        Mel { n_mels, frames, data }
    }

    fn spectrum_of(&mut self, samples: &[f32], frame: usize, length: usize) {
        let start = (frame * HOP) as isize - (N_FFT / 2) as isize;
        for (n, (to, window)) in self.input.iter_mut().zip(&self.window).enumerate() {
            let at = reflect(start + n as isize, length);
            let sample = samples.get(at).copied().unwrap_or(0.0);
            *to = if sample.is_finite() { sample * window } else { 0.0 };
        }
        let done = self.fft.process_with_scratch(&mut self.input, &mut self.spectrum, &mut self.scratch);
        debug_assert!(done.is_ok(), "all buffers come from the plan");
        for (power, bin) in self.power.iter_mut().zip(&self.spectrum) {
            *power = bin.norm_sqr();
        }
    }
}

impl Filter {
    fn new(row: &[f64]) -> Self {
        let first = row.iter().position(|&w| w != 0.0).unwrap_or(0);
        let end = row.iter().rposition(|&w| w != 0.0).map_or(first, |last| last + 1);
        Self { first, weights: row[first..end].iter().map(|&w| w as f32).collect() }
    }
}

/// Index mirrored at both ends without repeating them; any distance.
fn reflect(at: isize, length: usize) -> usize {
    if length < 2 {
        return 0;
    }
    let period = 2 * (length as isize - 1);
    let at = at.rem_euclid(period);
    at.min(period - at) as usize
}

/// Periodic Hann window.
fn hann() -> Vec<f64> {
    (0..N_FFT).map(|n| 0.5 - 0.5 * (2.0 * std::f64::consts::PI * n as f64 / N_FFT as f64).cos()).collect()
}

/// Filters on Slaney's scale (Auditory Toolbox, 1998): linear to 1000 Hz at 200/3 Hz per mel, then 27 steps per factor
/// 6.4; each filter has area 1 over Hz.
fn slaney_filters(n_mels: usize) -> Vec<Vec<f64>> {
    let step = 6.4f64.ln() / 27.0;
    let hz = |mel: f64| if mel < 15.0 { mel * 200.0 / 3.0 } else { 1000.0 * ((mel - 15.0) * step).exp() };
    let top = 15.0 + (f64::from(RATE) / 2.0 / 1000.0).ln() / step;
    let edges: Vec<f64> = (0..n_mels + 2).map(|n| hz(top * n as f64 / (n_mels + 1) as f64)).collect();
    edges
        .windows(3)
        .map(|edge| {
            let (low, centre, high) = (edge[0], edge[1], edge[2]);
            (0..BINS)
                .map(|bin| {
                    let f = bin as f64 * f64::from(RATE) / N_FFT as f64;
                    let rising = (f - low) / (centre - low);
                    let falling = (high - f) / (high - centre);
                    rising.min(falling).max(0.0) * 2.0 / (high - low)
                })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, with a plain DFT in f64.
    fn naive(samples: &[f32], n_mels: usize) -> Vec<f64> {
        let (filters, window, frames) = (slaney_filters(n_mels), hann(), samples.len() / HOP);
        let mut data = vec![0.0; n_mels * frames];
        for frame in 0..frames {
            let x: Vec<f64> = (0..N_FFT)
                .map(|n| {
                    let at = (frame * HOP + n) as isize - 200;
                    let last = samples.len() as isize - 1;
                    let at = if at < 0 {
                        -at
                    } else if at > last {
                        2 * last - at
                    } else {
                        at
                    };
                    f64::from(samples[at as usize]) * window[n]
                })
                .collect();
            let power: Vec<f64> = (0..BINS)
                .map(|k| {
                    let (mut re, mut im) = (0.0, 0.0);
                    for (n, x) in x.iter().enumerate() {
                        let angle = 2.0 * std::f64::consts::PI * (k * n % N_FFT) as f64 / N_FFT as f64;
                        re += x * angle.cos();
                        im -= x * angle.sin();
                    }
                    re * re + im * im
                })
                .collect();
            for row in 0..n_mels {
                let energy: f64 = filters[row].iter().zip(&power).map(|(w, p)| w * p).sum();
                data[row * frames + frame] = energy.max(1e-10).log10();
            }
        }
        let top = data.iter().copied().fold(f64::MIN, f64::max);
        data.iter().map(|v| (v.max(top - 8.0) + 4.0) / 4.0).collect()
    }

    fn sound(frames: usize) -> Vec<f32> {
        let mut state = 1u32;
        (0..frames)
            .map(|n| {
                state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                let noise = (state >> 8) as f32 / (1 << 24) as f32 - 0.5;
                0.4 * (n as f32 * 0.17).sin() * (n as f32 * 0.0011).cos() + 0.02 * noise
            })
            .collect()
    }

    #[test]
    fn equals_a_plain_dft() {
        for n_mels in [80, 128] {
            for length in [1_600, 4_321, 8_000] {
                let samples = sound(length);
                let mel = LogMel::new(n_mels).unwrap().compute(&samples, None);
                assert_eq!((mel.n_mels, mel.frames, mel.data.len()), (n_mels, length / HOP, n_mels * (length / HOP)));
                for (a, b) in mel.data.iter().zip(naive(&samples, n_mels)) {
                    assert!((f64::from(*a) - b).abs() < 1e-4, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn padding_equals_zeros() {
        let mut samples = sound(5_000);
        let mut log_mel = LogMel::new(80).unwrap();
        let padded = log_mel.compute(&samples, Some(48_000));
        samples.resize(48_000, 0.0);
        assert_eq!(padded, log_mel.compute(&samples, None));
        assert_eq!(padded.frames, 300);
        assert_eq!(log_mel.compute(&samples, Some(3_200)), log_mel.compute(&samples[..3_200], None));
    }

    #[test]
    fn known_filters_and_silence() {
        // The first filter of 80: triangle over 0, 37.2, 74.5 Hz, so only bin 1 (40 Hz) has weight. Value of librosa.
        let filters = slaney_filters(80);
        assert!((filters[0][1] - 0.024_862_59).abs() < 1e-6, "{}", filters[0][1]);
        assert_eq!(filters[0].iter().filter(|w| **w != 0.0).count(), 1);
        for filter in &filters {
            assert!(filter.iter().any(|w| *w != 0.0));
        }
        let mel = LogMel::new(80).unwrap().compute(&[0.0; 16_000], None);
        assert!(mel.data.iter().all(|v| *v == -1.5));
    }

    #[test]
    fn nothing_and_nonsense_are_survived() {
        let mut log_mel = LogMel::new(80).unwrap();
        assert_eq!(log_mel.compute(&[], None).frames, 0);
        assert_eq!(log_mel.compute(&[], Some(480_000)).frames, 3_000);
        assert_eq!(log_mel.compute(&[0.1], Some(320)).frames, 2);
        assert!(log_mel.compute(&[f32::NAN; 1_000], None).data.iter().all(|v| v.is_finite()));
        assert!(matches!(LogMel::new(0), Err(MelError::Bins { n_mels: 0 })));
        for length in 0..900 {
            assert_eq!(log_mel.compute(&sound(length), None).frames, length / HOP);
        }
    }
}
