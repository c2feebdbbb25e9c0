//! Streaming sample-rate conversion, one [`Resampler`] per stream.
//!
//! A polyphase FIR with exact integer positions: output `n` lies at input time `n·in/out`, whatever the length of the
//! stream, so nothing drifts. The output does not depend on how the input was cut, not even in the last bit, and is the
//! same with and without SIMD. The filter's delay is already removed: the impulse at input sample 0 comes out at output
//! sample 0, and [`Resampler::flush`] completes the stream to exactly `round(N·out/in)` frames. What remains is a wait
//! ([`Resampler::delay_ms`]): an output leaves when half a filter length of input after it has arrived.
//!
//! It does not follow clocks: the ratio of a stream is fixed. Another rate is another `Resampler`.

mod bank;
mod convert;
mod design;
mod dot;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bank::Bank;
pub use convert::Convert;
pub use design::Quality;

/// Highest sample rate accepted, in Hz.
pub const MAX_RATE: u32 = 768_000;
/// Most channels in one stream.
pub const MAX_CHANNELS: usize = 32;

/// Input frames that are taken into the history at a time; bounds the memory of one call apart from its output.
const BLOCK: usize = 4096;

/// Why a [`Resampler`] could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResampleError {
    /// A rate is zero or above [`MAX_RATE`].
    #[error("sample rate {rate} Hz is outside 1..={MAX_RATE}; use the rate that the stream really has")]
    Rate {
        /// The rate that was asked for, in Hz.
        rate: u32,
    },
    /// Zero channels, or more than [`MAX_CHANNELS`].
    #[error("{channels} channels are outside 1..={MAX_CHANNELS}")]
    Channels {
        /// The channel count that was asked for.
        channels: usize,
    },
    /// The reduced ratio needs too large a filter table (more than 32 MiB of coefficients).
    #[error("{in_rate} Hz to {out_rate} Hz needs a filter of {coefficients} coefficients; go through a common rate")]
    Ratio {
        /// Input rate in Hz.
        in_rate: u32,
        /// Output rate in Hz.
        out_rate: u32,
        /// Coefficients that the ratio would need.
        coefficients: u64,
    },
}

/// State of the conversion of one stream of interleaved `f32` frames.
///
/// Filter tables are shared between all resamplers of the same ratio and quality.
#[derive(Debug, Clone)]
pub struct Resampler {
    in_rate: u32,
    out_rate: u32,
    channels: usize,
    bank: Option<Arc<Bank>>,
    history: Vec<Vec<f32>>,
    position: Position,
    consumed: u64,
    produced: u64,
}

/// Where the next output lies: `base` is the index in `history` of the first sample under the filter.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    base: usize,
    phase: usize,
}

impl Resampler {
    /// A resampler for `channels` interleaved channels from `in_rate` to `out_rate` Hz.
    ///
    /// Equal rates make a passthrough without delay. The first one of a ratio computes the filter (below 1 ms for the
    /// usual rates, some ms for 44.1 kHz families).
    ///
    /// # Errors
    /// [`ResampleError`]: a rate or a number of channels out of range, or two rates whose ratio needs too long a filter.
    pub fn new(in_rate: u32, out_rate: u32, channels: usize, quality: Quality) -> Result<Self, ResampleError> {
        for rate in [in_rate, out_rate] {
            if rate == 0 || rate > MAX_RATE {
                return Err(ResampleError::Rate { rate });
            }
        }
        if channels == 0 || channels > MAX_CHANNELS {
            return Err(ResampleError::Channels { channels });
        }
        let bank = if in_rate == out_rate { None } else { Some(Bank::shared(in_rate, out_rate, quality)?) };
        let mut made = Self {
            in_rate,
            out_rate,
            channels,
            bank,
            history: vec![Vec::new(); channels],
            position: Position::default(),
            consumed: 0,
            produced: 0,
        };
        made.reset();
        Ok(made)
    }

    /// Appends to `out` all frames that `input` (interleaved) makes possible and returns how many frames those are.
    ///
    /// `input.len()` must be a multiple of the channel count; a rest that is no whole frame is ignored (and refused by a
    /// debug assertion), because byte and frame joins belong to the source of the stream.
    pub fn push(&mut self, input: &[f32], out: &mut Vec<f32>) -> usize {
        debug_assert_eq!(input.len() % self.channels, 0, "input must hold whole frames");
        let frames = input.len() / self.channels;
        let input = &input[..frames * self.channels];
        self.consumed += frames as u64;
        let Some(bank) = self.bank.clone() else {
            out.extend_from_slice(input);
            self.produced += frames as u64;
            return frames;
        };
        let mut made = 0;
        for block in input.chunks(BLOCK * self.channels) {
            self.append(block);
            made += self.run(&bank, u64::MAX, out);
        }
        made
    }

    /// Ends the stream: appends what is still held so that all calls together gave `round(N·out/in)` frames, returns the
    /// number of frames appended, and leaves the resampler as new.
    ///
    /// Rounded down, the last output can lie up to 1.5 output periods, less one input period, before the last input
    /// sample. That sample is then heard by its flank only: the output is what a longer stream of silence behind it would
    /// give, cut at the exact length.
    pub fn flush(&mut self, out: &mut Vec<f32>) -> usize {
        let mut made = 0;
        if let Some(bank) = self.bank.clone() {
            let due = output_len(self.consumed, self.in_rate, self.out_rate);
            let zeros = [0.0; 64];
            while self.produced < due {
                for channel in &mut self.history {
                    channel.extend_from_slice(&zeros);
                }
                made += self.run(&bank, due, out);
            }
        }
        self.reset();
        made
    }

    /// Discards all history, as at a fence: nothing that was pushed before influences anything that comes later.
    pub fn reset(&mut self) {
        let lead = self.bank.as_ref().map_or(0, |b| b.taps / 2 - 1);
        for channel in &mut self.history {
            channel.clear();
            channel.resize(lead, 0.0);
        }
        self.position = Position::default();
        self.consumed = 0;
        self.produced = 0;
    }

    /// Input rate in Hz.
    pub fn in_rate(&self) -> u32 {
        self.in_rate
    }

    /// Output rate in Hz.
    pub fn out_rate(&self) -> u32 {
        self.out_rate
    }

    /// Channels per frame.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Frames pushed since the stream's start.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Frames given out since the stream's start.
    pub fn produced(&self) -> u64 {
        self.produced
    }

    /// Delay added to a live stream in ms: half the filter's length (0 for equal rates).
    pub fn delay_ms(&self) -> f64 {
        let frames = self.bank.as_ref().map_or(0, |b| b.taps / 2);
        frames as f64 * 1000.0 / f64::from(self.in_rate)
    }

    /// Multiplications per output sample, that is filter taps per phase (0 for equal rates).
    pub fn taps(&self) -> usize {
        self.bank.as_ref().map_or(0, |b| b.taps)
    }

    fn append(&mut self, block: &[f32]) {
        if let [only] = &mut self.history[..] {
            only.extend_from_slice(block);
            return;
        }
        let channels = self.channels;
        for (index, channel) in self.history.iter_mut().enumerate() {
            channel.extend(block.iter().skip(index).step_by(channels));
        }
    }

    /// Makes every output whose samples are in the history, up to `limit` frames since the start, then drops what no
    /// later output needs.
    fn run(&mut self, bank: &Bank, limit: u64, out: &mut Vec<f32>) -> usize {
        let held = self.history[0].len();
        let possible = bank.possible(held, self.position.base, self.position.phase);
        let count = possible.min(usize::try_from(limit - self.produced).unwrap_or(usize::MAX));
        let start = out.len();
        out.resize(start + count * self.channels, 0.0);
        let mut end = self.position;
        for (index, channel) in self.history.iter().enumerate() {
            end = bank.convolve(channel, self.position, &mut out[start..], index, self.channels);
        }
        let drop = end.base.min(held);
        for channel in &mut self.history {
            channel.drain(..drop);
        }
        self.position = Position { base: end.base - drop, phase: end.phase };
        self.produced += count as u64;
        count
    }
}

/// Frames that a whole stream of `frames` input frames gives: `round(frames·out/in)`, halves up.
pub fn output_len(frames: u64, in_rate: u32, out_rate: u32) -> u64 {
    if in_rate == 0 {
        return 0;
    }
    let twice = 2 * u128::from(frames) * u128::from(out_rate) + u128::from(in_rate);
    (twice / (2 * u128::from(in_rate))) as u64
}

/// Converts a whole stream at once: interleaved in, `round(N·out/in)` interleaved frames out.
///
/// # Errors
/// As [`Resampler::new`].
pub fn resample(
    input: &[f32],
    in_rate: u32,
    out_rate: u32,
    channels: usize,
    quality: Quality,
) -> Result<Vec<f32>, ResampleError> {
    let mut resampler = Resampler::new(in_rate, out_rate, channels, quality)?;
    let due = output_len((input.len() / channels) as u64, in_rate, out_rate) as usize;
    let mut out = Vec::with_capacity(due * channels);
    resampler.push(input, &mut out);
    resampler.flush(&mut out);
    Ok(out)
}
