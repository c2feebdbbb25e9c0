//! Frames of exactly N samples out of chunks of any size.
//!
//! The frames do not depend on how the input was cut; the rest of a stream is kept until the next chunk or until
//! [`Framer::finish`]. Interleaved channels are kept together, also when a chunk ends between them.

use omni_flow::MediaTime;
use thiserror::Error;

/// What to do with a rest shorter than a frame at the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Fill it with zeros to a whole frame.
    Pad,
    /// Let it go as it is.
    Short,
    /// Drop it.
    Drop,
}

/// A frame that a framer cannot make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a frame needs at least one sample, one channel and a rate above zero, and at most 2^24 values")]
pub struct FramerError;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame<'a> {
    /// Time of its first sample: the start of the stream plus an exact count of samples.
    pub pts: MediaTime,
    /// Samples per channel before it since the stream's start.
    pub position: u64,
    /// The values, channels interleaved.
    pub audio: &'a [f32],
    /// Samples per channel that are real; the rest is filling.
    pub valid: usize,
}

/// Cuts one stream into frames.
#[derive(Clone, Debug)]
pub struct Framer {
    /// Values of a frame: samples times channels.
    values: usize,
    channels: usize,
    rate: u32,
    held: Vec<f32>,
    start: MediaTime,
    position: u64,
}

impl Framer {
    /// Frames of `samples` per channel, `channels` interleaved, at `rate` Hz; the stream starts at time zero.
    ///
    /// # Errors
    /// [`FramerError`] if one of them is zero or the frame is larger than 2^24 values.
    pub fn new(samples: usize, channels: usize, rate: u32) -> Result<Self, FramerError> {
        let values = samples.checked_mul(channels).filter(|&v| (1..=1 << 24).contains(&v)).ok_or(FramerError)?;
        if rate == 0 {
            return Err(FramerError);
        }
        Ok(Self { values, channels, rate, held: Vec::with_capacity(values), start: MediaTime::ZERO, position: 0 })
    }
    /// Values held that do not make a frame yet.
    pub fn held(&self) -> usize {
        self.held.len()
    }
    /// Time of the first sample of the next frame.
    pub fn pts(&self) -> MediaTime {
        self.start + MediaTime::from_samples(self.position, self.rate)
    }
    /// Takes interleaved values and gives each whole frame to `emit`, in order. Frames that lie whole in `audio` are not
    /// copied.
    pub fn push(&mut self, audio: &[f32], mut emit: impl FnMut(Frame<'_>)) {
        let mut rest = audio;
        if !self.held.is_empty() {
            let (head, later) = rest.split_at((self.values - self.held.len()).min(rest.len()));
            self.held.extend_from_slice(head);
            rest = later;
            if self.held.len() < self.values {
                return;
            }
            let frame = std::mem::take(&mut self.held);
            self.emit(&frame, &mut emit);
            self.held = frame;
            self.held.clear();
        }
        let mut frames = rest.chunks_exact(self.values);
        for frame in &mut frames {
            self.emit(frame, &mut emit);
        }
        self.held.extend_from_slice(frames.remainder());
    }
    /// Ends the stream: gives the rest to `emit` as `tail` says and starts anew, at time zero. Values of a sample whose
    /// other channels are missing are dropped; returns how many values were dropped.
    pub fn finish(&mut self, tail: Tail, emit: impl FnOnce(Frame<'_>)) -> usize {
        let whole = self.held.len() / self.channels * self.channels;
        let mut dropped = self.held.len() - whole;
        self.held.truncate(whole);
        let valid = whole / self.channels;
        if tail == Tail::Drop {
            dropped += whole;
        } else if valid > 0 {
            if tail == Tail::Pad {
                self.held.resize(self.values, 0.0);
            }
            emit(Frame { pts: self.pts(), position: self.position, audio: &self.held, valid });
        }
        self.restart(MediaTime::ZERO);
        dropped
    }
    /// Forgets what is held, at a fence or a jump; the next sample is at `start`. Returns how many values were dropped.
    pub fn restart(&mut self, start: MediaTime) -> usize {
        let dropped = self.held.len();
        self.held.clear();
        self.start = start;
        self.position = 0;
        dropped
    }

    fn emit(&mut self, audio: &[f32], emit: &mut impl FnMut(Frame<'_>)) {
        let valid = self.values / self.channels;
        emit(Frame { pts: self.pts(), position: self.position, audio, valid });
        self.position += valid as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Position, ticks, values and valid samples of each frame, and how many values were dropped.
    type Collected = (Vec<(u64, i64, Vec<f32>, usize)>, usize);

    fn collect(framer: &mut Framer, pieces: &[&[f32]], tail: Tail) -> Collected {
        let mut out = Vec::new();
        let mut take = |f: Frame<'_>| out.push((f.position, f.pts.ticks(), f.audio.to_vec(), f.valid));
        for piece in pieces {
            framer.push(piece, &mut take);
        }
        let dropped = framer.finish(tail, &mut take);
        (out, dropped)
    }

    #[test]
    fn the_tail_is_filled_short_or_dropped() {
        let mut f = Framer::new(4, 1, 8_000).unwrap();
        let audio = [1.0, 2.0, 3.0, 4.0, 5.0];
        let last = |(out, dropped): Collected| out.last().map(|f| (f.0, f.2.clone(), f.3, dropped));
        assert_eq!(last(collect(&mut f, &[&audio], Tail::Pad)), Some((4, vec![5.0, 0.0, 0.0, 0.0], 1, 0)));
        assert_eq!(last(collect(&mut f, &[&audio], Tail::Short)), Some((4, vec![5.0], 1, 0)));
        assert_eq!(last(collect(&mut f, &[&audio], Tail::Drop)), Some((0, audio[..4].to_vec(), 4, 1)));
        assert_eq!(collect(&mut f, &[&[], &[]], Tail::Pad), (vec![], 0));
    }
    #[test]
    fn channels_stay_together() {
        let mut f = Framer::new(2, 2, 48_000).unwrap();
        let (out, dropped) = collect(&mut f, &[&[1.0], &[-1.0, 2.0], &[-2.0, 3.0, -3.0, 4.0]], Tail::Short);
        assert_eq!(out.iter().map(|f| f.2.clone()).collect::<Vec<_>>(), [vec![1.0, -1.0, 2.0, -2.0], vec![3.0, -3.0]]);
        assert_eq!((out[1].3, dropped), (1, 1));
    }
    #[test]
    fn times_are_exact_and_restart_at_a_jump() {
        let mut f = Framer::new(441, 1, 22_050).unwrap();
        f.restart(MediaTime::from_millis(7));
        let mut last = MediaTime::ZERO;
        for _ in 0..10_000 {
            f.push(&[0.0; 441], |frame| last = frame.pts);
        }
        assert_eq!(last, MediaTime::from_millis(7 + 9_999 * 20));
        f.push(&[0.0; 5], |_| ());
        assert_eq!(f.restart(MediaTime::from_millis(-5)), 5);
        assert_eq!(f.pts(), MediaTime::from_millis(-5));
    }
    #[test]
    fn nonsense_is_refused() {
        for (n, c, r) in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (usize::MAX, 2, 1), (1 << 25, 1, 1)] {
            assert_eq!(Framer::new(n, c, r).err(), Some(FramerError));
        }
    }
    proptest! {
        #[test]
        fn frames_do_not_depend_on_the_cut(
            total in 0usize..3000, size in 1usize..200, channels in 1usize..4,
            cuts in proptest::collection::vec(0usize..500, 1..20),
        ) {
            let signal: Vec<f32> = (0..total).map(|i| i as f32).collect();
            let mut f = Framer::new(size, channels, 16_000).unwrap();
            let whole = collect(&mut f, &[&signal], Tail::Pad);
            let (mut pieces, mut rest) = (Vec::new(), &signal[..]);
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                pieces.push(now);
                rest = later;
            }
            pieces.push(rest);
            prop_assert_eq!(&collect(&mut f, &pieces, Tail::Pad), &whole);
            let joined: Vec<f32> = whole.0.iter().flat_map(|f| f.2[..f.3 * channels].to_vec()).collect();
            prop_assert_eq!(&joined[..], &signal[..total - whole.1]);
            prop_assert!(whole.0.iter().all(|f| f.2.len() == size * channels));
        }
    }
}
