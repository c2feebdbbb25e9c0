//! Log-mel features as Whisper was trained on: 25 ms Hann windows every 10 ms, Slaney filters, 8 decades of range.

use realfft::{RealFftPlanner, RealToComplex};
use std::sync::Arc;

const FFT: usize = 400;
const HOP: usize = 160;
const BINS: usize = FFT / 2 + 1;

/// A plan for one number of bands.
pub(crate) struct LogMel {
    fft: Arc<dyn RealToComplex<f32>>,
    window: Vec<f32>,
    /// Per band: first bin and weights.
    filters: Vec<(usize, Vec<f32>)>,
}

impl LogMel {
    pub fn new(bands: usize) -> Self {
        let window = (0..FFT).map(|i| {
            let phase = std::f64::consts::TAU * i as f64 / FFT as f64;
            (0.5 - 0.5 * phase.cos()) as f32
        });
        Self {
            fft: RealFftPlanner::new().plan_fft_forward(FFT),
            window: window.collect(),
            filters: slaney_filters(bands),
        }
    }

    /// 16 kHz samples → `pcm.len() / 160` frames of `bands` values, frame by frame. Centred, mirrored at both ends.
    pub fn compute(&self, pcm: &[f32]) -> Vec<f32> {
        let (frames, bands) = (pcm.len() / HOP, self.filters.len());
        let mut out = Vec::with_capacity(frames * bands);
        let mut input = vec![0f32; FFT];
        let mut spectrum = self.fft.make_output_vec();
        let mut power = [0f32; BINS];
        let mut loudest = f32::MIN;
        for frame in 0..frames {
            let start = (frame * HOP) as isize - (FFT / 2) as isize;
            for (i, (x, w)) in input.iter_mut().zip(&self.window).enumerate() {
                *x = mirrored(pcm, start + i as isize) * w;
            }
            if self.fft.process(&mut input, &mut spectrum).is_err() {
                return Vec::new();
            }
            power.iter_mut().zip(&spectrum).for_each(|(p, c)| *p = c.norm_sqr());
            for (first, weights) in &self.filters {
                let energy: f32 = weights.iter().zip(&power[*first..]).map(|(w, p)| w * p).sum();
                let log = energy.max(1e-10).log10();
                loudest = loudest.max(log);
                out.push(log);
            }
        }
        out.iter_mut().for_each(|v| *v = (v.max(loudest - 8.) + 4.) / 4.);
        out
    }
}

fn mirrored(pcm: &[f32], at: isize) -> f32 {
    let last = pcm.len() as isize - 1;
    let at = if at < 0 { -at } else { at };
    let at = if at > last { 2 * last - at } else { at };
    usize::try_from(at).ok().and_then(|i| pcm.get(i)).copied().filter(|v| v.is_finite()).unwrap_or(0.)
}

/// Triangles of equal area on the Slaney mel scale (linear below 1 kHz, logarithmic above), 0 to 8 kHz.
fn slaney_filters(bands: usize) -> Vec<(usize, Vec<f32>)> {
    const LINEAR: f64 = 200. / 3.;
    let step = 6.4f64.ln() / 27.;
    let to_mel = |hz: f64| if hz < 1000. { hz / LINEAR } else { 15. + (hz / 1000.).ln() / step };
    let to_hz = |mel: f64| if mel < 15. { mel * LINEAR } else { 1000. * (step * (mel - 15.)).exp() };
    let top = to_mel(8000.);
    let edges: Vec<f64> = (0..bands + 2).map(|i| to_hz(top * i as f64 / (bands + 1) as f64)).collect();
    let triangle = |e: &[f64]| {
        let weight = |bin: usize| {
            let hz = bin as f64 * 16_000. / FFT as f64;
            let rise = (hz - e[0]) / (e[1] - e[0]);
            let fall = (e[2] - hz) / (e[2] - e[1]);
            (rise.min(fall).max(0.) * 2. / (e[2] - e[0])) as f32
        };
        let first = (0..BINS).find(|&b| weight(b) > 0.).unwrap_or(0);
        (first, (first..BINS).map(weight).take_while(|&w| w > 0.).collect())
    };
    edges.windows(3).map(triangle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_lights_its_band() {
        let pcm: Vec<f32> =
            (0..16_000).map(|i| (i as f32 * 1000. * std::f32::consts::TAU / 16_000.).sin() * 0.5).collect();
        let mel = LogMel::new(80).compute(&pcm);
        assert_eq!(mel.len(), 100 * 80);
        let frame = &mel[50 * 80..51 * 80];
        let band = (0..80).max_by(|&a, &b| frame[a].total_cmp(&frame[b])).unwrap();
        // 1 kHz is mel 15 of 45.25: band centre 15 / 45.25 * 81 - 1 = 25.9.
        assert!((25..=26).contains(&band), "{band}");
    }

    #[test]
    fn short_and_odd_input_is_fine() {
        let mel = LogMel::new(80);
        for n in [0, 1, 159, 160, 161, 401] {
            assert_eq!(mel.compute(&vec![0.1; n]).len(), n / 160 * 80);
        }
        assert!(mel.compute(&[f32::NAN; 800]).iter().all(|v| v.is_finite()));
    }
}
