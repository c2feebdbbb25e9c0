//! Interleaved audio of one rate and channel count as that of another, as a stream.

use super::{Quality, ResampleError, Resampler};

/// A converter. The channels are mixed first: to one by the mean, from one by repetition, else over one.
pub struct Convert {
    channels: (usize, usize),
    resampler: Resampler,
    mixed: Vec<f32>,
}

impl Convert {
    /// From `from` (rate in Hz, channels) to `to`.
    ///
    /// # Errors
    /// A rate or channel count out of range.
    pub fn new(from: (u32, usize), to: (u32, usize)) -> Result<Self, ResampleError> {
        let resampler = Resampler::new(from.0, to.0, to.1, Quality::Good)?;
        Ok(Self { channels: (from.1.max(1), to.1), resampler, mixed: Vec::new() })
    }
    /// Converts whole frames; what is ready is appended to `out`.
    pub fn push(&mut self, frames: &[f32], out: &mut Vec<f32>) {
        let (from, to) = self.channels;
        if from == to {
            self.resampler.push(frames, out);
            return;
        }
        self.mixed.clear();
        for frame in frames.chunks_exact(from) {
            let mean = frame.iter().sum::<f32>() / from as f32;
            self.mixed.extend(std::iter::repeat_n(mean, to));
        }
        self.resampler.push(&self.mixed, out);
    }
    /// Appends what is held at the end of the stream.
    pub fn flush(&mut self, out: &mut Vec<f32>) {
        self.resampler.flush(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stereo_becomes_its_mean_and_the_length_is_exact() {
        let mut c = Convert::new((44_100, 2), (16_000, 1)).unwrap();
        let mut out = Vec::new();
        let input: Vec<f32> = [0.5, -0.1].repeat(44_100);
        for piece in input.chunks(314) {
            c.push(piece, &mut out);
        }
        c.flush(&mut out);
        assert_eq!(out.len(), 16_000);
        assert!(out[1000..15_000].iter().all(|s| (s - 0.2).abs() < 1e-3));
    }
    #[test]
    fn mono_is_repeated() {
        let mut c = Convert::new((8000, 1), (8000, 2)).unwrap();
        let mut out = Vec::new();
        c.push(&[0.25, -0.5], &mut out);
        assert_eq!(out, [0.25, 0.25, -0.5, -0.5]);
    }
}
