//! Several streams added on one time line.
//!
//! Each input has positions of its own (samples on the common time line); a block is given out once every open input
//! has reached its end, or the deadline has passed since the first one had. What is missing then is silence, and what
//! comes later for that stretch is dropped and counted; nobody waits for that input again until it gives audio. An input may run ahead by the skew bound, no further.

use omni_flow::Mono;
use std::collections::VecDeque;
use std::time::Duration;
use thiserror::Error;

/// Most inputs of one mixer.
const MOST_INPUTS: usize = 64;

/// Settings of a mixer. Mono, one rate for all inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct MixerConfig {
    /// The linear gain of each input; their number is the number of inputs, 1 to 64.
    pub gains: Vec<f32>,
    /// Samples of a block given out.
    pub block: usize,
    /// How long a block waits for a late input after the first one has it. Default 60 ms, ours.
    pub deadline: Duration,
    /// How far an input may run ahead of what was given out, samples; at least one block.
    pub skew: usize,
}

impl MixerConfig {
    /// `inputs` inputs at unity gain and `rate` Hz, with blocks of 20 ms and a skew of 500 ms (the span of an edge).
    pub fn new(inputs: usize, rate: u32) -> Self {
        let ms = |n: usize| (rate as usize * n / 1000).max(1);
        let gains = vec![1.0; inputs.min(MOST_INPUTS + 1)];
        Self { gains, block: ms(20), deadline: Duration::from_millis(60), skew: ms(500) }
    }
}

/// What a mixer refuses; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MixError {
    /// The settings cannot work.
    #[error(
        "a mixer needs 1 to 64 inputs with finite gains, a block of at least one sample and a skew of at least a block"
    )]
    BadConfig,
    /// There is no such input.
    #[error("there is no input {0}")]
    NoInput(usize),
    /// The input runs too far ahead of the others; take blocks, or wait.
    #[error("input {input} may hold audio up to sample {until} only: wait for the other inputs")]
    Ahead {
        /// The input.
        input: usize,
        /// First position that does not fit.
        until: u64,
    },
    /// Positions of one input go back.
    #[error("input {input} goes back from sample {expected} to {got}")]
    Back {
        /// The input.
        input: usize,
        /// End of what it gave before.
        expected: u64,
        /// First position given now.
        got: u64,
    },
}

/// A block of the sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed {
    /// Position of its first sample.
    pub position: u64,
    /// The sum, limited to −1 … 1. The last block of all may be short.
    pub audio: Vec<f32>,
    /// Open inputs that were late and count as silence for at least part of the block.
    pub late: usize,
}

#[derive(Clone, Debug)]
struct Input {
    gain: f32,
    /// Samples from the mixer's position on; gaps are filled with zeros.
    held: VecDeque<f32>,
    /// End of what the input gave.
    end: u64,
    open: bool,
    /// A deadline passed without it; not waited for until it gives audio that is not late.
    absent: bool,
}

/// Adds streams. Holds at most the skew per input.
#[derive(Clone, Debug)]
pub struct Mixer {
    inputs: Vec<Input>,
    block: usize,
    deadline: Duration,
    skew: u64,
    position: u64,
    /// When the first input had the next block.
    waiting: Option<Mono>,
    late_samples: u64,
    limited: u64,
    not_numbers: u64,
}

impl Mixer {
    /// A mixer at position zero with all inputs open.
    ///
    /// # Errors
    /// [`MixError::BadConfig`].
    pub fn new(config: &MixerConfig) -> Result<Self, MixError> {
        let MixerConfig { gains, block, deadline, skew } = config;
        let inputs_ok = (1..=MOST_INPUTS).contains(&gains.len()) && gains.iter().all(|g| g.is_finite());
        if !inputs_ok || *block == 0 || skew < block {
            return Err(MixError::BadConfig);
        }
        let input = |&gain: &f32| Input { gain, held: VecDeque::new(), end: 0, open: true, absent: false };
        Ok(Self {
            inputs: gains.iter().map(input).collect(),
            block: *block,
            deadline: *deadline,
            skew: *skew as u64,
            position: 0,
            waiting: None,
            late_samples: 0,
            limited: 0,
            not_numbers: 0,
        })
    }
    /// Position of the next block.
    pub const fn position(&self) -> u64 {
        self.position
    }
    /// Samples that came after their block had been given out, and were dropped.
    pub const fn late_samples(&self) -> u64 {
        self.late_samples
    }
    /// Values of the sum that were limited to full scale.
    pub const fn limited(&self) -> u64 {
        self.limited
    }
    /// Input values that were no finite number and counted as zero.
    pub const fn not_numbers(&self) -> u64 {
        self.not_numbers
    }
    /// Takes audio of one input that begins at `position` (samples on the common time line). A gap to what it gave
    /// before is silence; what lies before the mixer's position is dropped and counted. An input that was ended is
    /// open again. Empty audio changes nothing.
    ///
    /// # Errors
    /// [`MixError::NoInput`], [`MixError::Back`], or [`MixError::Ahead`] if it does not fit as a whole.
    pub fn push(&mut self, input: usize, position: u64, audio: &[f32], now: Mono) -> Result<(), MixError> {
        let until = self.position.saturating_add(self.skew);
        let at = self.position;
        let i = self.inputs.get_mut(input).ok_or(MixError::NoInput(input))?;
        if audio.is_empty() {
            return Ok(());
        }
        if position < i.end {
            return Err(MixError::Back { input, expected: i.end, got: position });
        }
        let end = position.saturating_add(audio.len() as u64);
        if end > until {
            return Err(MixError::Ahead { input, until });
        }
        let late = at.saturating_sub(position).min(audio.len() as u64);
        self.late_samples += late;
        let start = position.saturating_sub(at) as usize;
        if end > at {
            i.held.resize(start, 0.0);
            i.absent = false;
        }
        let bad = &mut self.not_numbers;
        i.held.extend(audio[late as usize..].iter().map(|&s| {
            *bad += u64::from(!s.is_finite());
            if s.is_finite() { s } else { 0.0 }
        }));
        i.end = end;
        i.open = true;
        self.wait(now);
        Ok(())
    }
    /// Ends one input: it is silence from here on and nobody waits for it.
    ///
    /// # Errors
    /// [`MixError::NoInput`].
    pub fn end(&mut self, input: usize) -> Result<(), MixError> {
        self.inputs.get_mut(input).ok_or(MixError::NoInput(input))?.open = false;
        Ok(())
    }
    /// Drops all audio held, at a fence; the position moves to the end of what was given.
    pub fn clear(&mut self) {
        let end = self.inputs.iter().map(|i| i.end).max().unwrap_or(0);
        self.position = self.position.max(end);
        self.inputs.iter_mut().for_each(|i| i.held.clear());
        self.waiting = None;
    }
    /// Drops the audio held of one input, at a fence of that input alone; the others and the position stay.
    ///
    /// # Errors
    /// [`MixError::NoInput`].
    pub fn clear_input(&mut self, input: usize) -> Result<(), MixError> {
        self.inputs.get_mut(input).ok_or(MixError::NoInput(input))?.held.clear();
        if self.longest() < self.block {
            self.waiting = None;
        }
        Ok(())
    }
    /// The next block, if it is complete or its deadline has passed; call until `None`. When all inputs have ended, the
    /// rest is given out, the last block short.
    pub fn poll(&mut self, now: Mono) -> Option<Mixed> {
        let longest = self.longest();
        let block = self.block;
        let lacks = move |i: &Input| i.open && i.held.len() < block;
        let late = self.inputs.iter().filter(|i| lacks(i)).count();
        let awaited = self.inputs.iter().any(|i| lacks(i) && !i.absent);
        let over = self.inputs.iter().all(|i| !i.open);
        let passed = self.waiting.is_some_and(|since| now.since(since) >= self.deadline);
        let ready = if over { longest > 0 } else { longest >= self.block && (!awaited || passed) };
        if !ready {
            return None;
        }
        let position = self.position;
        let mut sum = vec![0.0f64; self.block.min(longest)];
        for i in &mut self.inputs {
            i.absent |= lacks(i);
            let n = sum.len().min(i.held.len());
            let gain = f64::from(i.gain);
            sum.iter_mut().zip(i.held.drain(..n)).for_each(|(sum, s)| *sum += f64::from(s) * gain);
        }
        self.limited += sum.iter().filter(|s| s.abs() > 1.0).count() as u64;
        let audio: Vec<f32> = sum.iter().map(|s| s.clamp(-1.0, 1.0) as f32).collect();
        self.position += audio.len() as u64;
        self.waiting = None;
        self.wait(now);
        Some(Mixed { position, audio, late })
    }
    /// When to poll next if nothing is pushed before; `None` if no block waits.
    pub fn next_due(&self) -> Option<Mono> {
        self.waiting.map(|since| since.plus(self.deadline))
    }

    fn longest(&self) -> usize {
        self.inputs.iter().map(|i| i.held.len()).max().unwrap_or(0)
    }
    fn wait(&mut self, now: Mono) {
        if self.longest() >= self.block {
            self.waiting.get_or_insert(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn at(ms: u64) -> Mono {
        Mono(ms * 1_000_000)
    }
    fn mixer(inputs: usize) -> Mixer {
        let config = MixerConfig { block: 4, skew: 12, ..MixerConfig::new(inputs, 1000) };
        Mixer::new(&config).expect("valid settings")
    }

    #[test]
    fn inputs_are_added_by_position() {
        let mut m = mixer(2);
        m.push(0, 0, &[0.1; 6], at(0)).unwrap();
        assert_eq!(m.poll(at(0)), None);
        m.push(1, 2, &[0.2; 4], at(1)).unwrap();
        let block = m.poll(at(1)).expect("both have it");
        assert_eq!((block.position, block.late), (0, 0));
        assert_eq!(block.audio, [0.1, 0.1, 0.3, 0.3].map(|v: f64| (v * 10.0).round() as f32 / 10.0));
        assert_eq!(m.poll(at(1)), None);
        m.end(0).unwrap();
        m.end(1).unwrap();
        assert_eq!(m.poll(at(1)).map(|b| (b.position, b.audio.len())), Some((4, 2)));
        assert_eq!(m.poll(at(1)), None);
    }
    #[test]
    fn a_late_input_is_silence_after_the_deadline() {
        let mut m = mixer(2);
        m.push(0, 0, &[0.5; 8], at(10)).unwrap();
        assert_eq!(m.next_due(), Some(at(70)));
        assert_eq!(m.poll(at(69)), None);
        assert_eq!(m.poll(at(70)).map(|b| (b.late, b.audio)), Some((1, vec![0.5; 4])));
        assert_eq!(m.poll(at(70)).map(|b| (b.position, b.late)), Some((4, 1)), "nobody waits for it again");
        m.push(1, 0, &[0.25; 6], at(80)).unwrap();
        assert_eq!(m.late_samples(), 6);
        m.push(0, 8, &[0.5; 8], at(80)).unwrap();
        m.push(1, 6, &[0.25; 4], at(80)).unwrap();
        assert_eq!(m.late_samples(), 8);
        assert_eq!(m.poll(at(80)), None, "now it is back and waited for");
        m.push(1, 10, &[0.25; 2], at(81)).unwrap();
        assert_eq!(m.poll(at(81)).map(|b| (b.position, b.late, b.audio)), Some((8, 0, vec![0.75; 4])));
    }
    #[test]
    fn an_input_that_is_late_altogether_is_dropped_and_counted() {
        let mut m = mixer(2);
        m.push(0, 0, &[0.5; 12], at(0)).unwrap();
        m.push(1, 0, &[0.1], at(0)).unwrap();
        assert!(m.poll(at(60)).is_some());
        m.push(1, 4, &[0.1], at(61)).unwrap();
        m.end(0).unwrap();
        while m.poll(at(200)).is_some() {}
        assert_eq!(m.position(), 12);
        m.push(1, 5, &[0.1; 3], at(201)).unwrap();
        assert_eq!((m.late_samples(), m.poll(at(300))), (3, None));
    }
    #[test]
    fn the_skew_is_bounded_and_positions_do_not_go_back() {
        let mut m = mixer(2);
        assert_eq!(m.push(0, 0, &[0.0; 13], at(0)), Err(MixError::Ahead { input: 0, until: 12 }));
        assert_eq!(m.push(0, u64::MAX, &[0.0; 13], at(0)), Err(MixError::Ahead { input: 0, until: 12 }));
        m.push(0, 3, &[0.0; 5], at(0)).unwrap();
        assert_eq!(m.push(0, 7, &[0.0], at(0)), Err(MixError::Back { input: 0, expected: 8, got: 7 }));
        assert_eq!(m.push(2, 0, &[0.0], at(0)), Err(MixError::NoInput(2)));
        m.push(0, 0, &[], at(0)).unwrap();
        m.clear();
        assert_eq!((m.position(), m.next_due(), m.poll(at(99))), (8, None, None));
    }
    #[test]
    fn the_sum_is_limited_and_what_is_no_number_is_zero() {
        let mut m = Mixer::new(&MixerConfig { gains: vec![2.0, -1.0], block: 4, skew: 4, ..MixerConfig::new(2, 1000) })
            .unwrap();
        m.push(0, 0, &[1.0, f32::NAN, f32::INFINITY, 0.25], at(0)).unwrap();
        m.push(1, 0, &[0.0, 0.5, 2.0, f32::NEG_INFINITY], at(0)).unwrap();
        assert_eq!(m.poll(at(0)).map(|b| b.audio), Some(vec![1.0, -0.5, -1.0, 0.5]));
        assert_eq!((m.limited(), m.not_numbers()), (2, 3));
    }
    #[test]
    fn settings_that_cannot_work_are_refused() {
        let good = MixerConfig::new(2, 16_000);
        let bad = [
            MixerConfig::new(0, 16_000),
            MixerConfig::new(65, 16_000),
            MixerConfig { gains: vec![f32::NAN], ..good.clone() },
            MixerConfig { block: 0, ..good.clone() },
            MixerConfig { skew: good.block - 1, ..good.clone() },
        ];
        bad.iter().for_each(|c| assert_eq!(Mixer::new(c).err(), Some(MixError::BadConfig)));
        assert!(Mixer::new(&good).is_ok());
    }
    proptest! {
        #[test]
        fn the_sum_is_that_of_the_whole_signals(
            pushes in proptest::collection::vec((0usize..3, 0u64..4, 1usize..6), 0..80),
        ) {
            let (mut m, mut want, mut got) = (mixer(3), Vec::<f32>::new(), Vec::new());
            let mut ends = [0u64; 3];
            for (input, gap, n) in pushes {
                let start = ends[input] + gap;
                // Small multiples of a power of two add without rounding.
                let audio: Vec<f32> = (0..n).map(|k| ((start as usize + k + input) % 16) as f32 / 64.0).collect();
                let fits = start + n as u64 <= m.position() + 12;
                prop_assert_eq!(m.push(input, start, &audio, at(0)).is_ok(), fits);
                if fits {
                    ends[input] = start + n as u64;
                    want.resize(want.len().max(ends[input] as usize), 0.0);
                    want[start as usize..].iter_mut().zip(&audio).for_each(|(w, a)| *w += a);
                }
                got.extend(std::iter::from_fn(|| m.poll(at(0))));
            }
            (0..3).for_each(|i| m.end(i).unwrap());
            got.extend(std::iter::from_fn(|| m.poll(at(0))));
            let joined: Vec<f32> = got.iter().flat_map(|b| b.audio.clone()).collect();
            prop_assert_eq!(joined, want);
            prop_assert!(got.iter().all(|b| b.late == 0));
            prop_assert_eq!(m.late_samples(), 0);
        }
    }
}
