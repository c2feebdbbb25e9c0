//! Audio in whole units for the model, and silence to let it go on (Realtime protocol, input units and continuation).

/// Cuts a stream of samples into units of one length. A part of a unit starts no step of the model: it waits for the
/// rest, or for a commit.
#[derive(Debug, Clone)]
pub struct Units {
    unit: Option<usize>,
    part: Vec<f32>,
    whole: u64,
}

impl Units {
    /// Units of `period_ms` at `rate` samples per second, one sample at least. Without a period each piece is a unit.
    pub fn new(period_ms: Option<u32>, rate: u32) -> Self {
        let samples = |ms: u32| (u64::from(ms) * u64::from(rate) / 1000).max(1) as usize;
        Self { unit: period_ms.filter(|ms| *ms > 0).map(samples), part: Vec::new(), whole: 0 }
    }

    /// Samples of one unit, if they have one length.
    pub fn unit(&self) -> Option<usize> {
        self.unit
    }

    /// Whether no part of a unit waits.
    pub fn is_empty(&self) -> bool {
        self.part.is_empty()
    }

    /// Samples that wait for the rest of their unit.
    pub fn waiting(&self) -> usize {
        self.part.len()
    }

    /// Units given out so far.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Takes samples and gives each unit that they complete.
    pub fn push(&mut self, samples: &[f32], mut unit: impl FnMut(Vec<f32>)) {
        if samples.is_empty() {
            return;
        }
        let Some(len) = self.unit else {
            self.whole += 1;
            unit(samples.to_vec());
            return;
        };
        let mut rest = samples;
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(rest.len().min(len - self.part.len()));
            self.part.extend_from_slice(head);
            rest = tail;
            if self.part.len() == len {
                self.whole += 1;
                unit(std::mem::take(&mut self.part));
            }
        }
    }

    /// A commit: what waits is a unit as it is, if there is anything.
    pub fn flush(&mut self) -> Option<Vec<f32>> {
        if self.part.is_empty() {
            return None;
        }
        self.whole += 1;
        Some(std::mem::take(&mut self.part))
    }

    /// Forgets what waits and says how many samples that were.
    pub fn clear(&mut self) -> usize {
        std::mem::take(&mut self.part).len()
    }
}

/// How many units of silence an answer may still be fed without a sound of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    limit: u32,
    run: u32,
}

impl Silence {
    /// At most `limit` units in a row; 0 is none.
    pub fn new(limit: u32) -> Self {
        Self { limit, run: 0 }
    }

    /// Asks for one more. False: there were enough, the answer is to be closed as completed.
    pub fn take(&mut self) -> bool {
        let may = self.run < self.limit;
        self.run += u32::from(may);
        may
    }

    /// Another answer, or any input from the user: the count starts anew.
    pub fn reset(&mut self) {
        self.run = 0;
    }

    /// Units fed in a row.
    pub fn run(&self) -> u32 {
        self.run
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn push(units: &mut Units, samples: &[f32]) -> Vec<Vec<f32>> {
        let mut all = Vec::new();
        units.push(samples, |u| all.push(u));
        all
    }

    #[test]
    fn two_halves_are_one_step() {
        let mut units = Units::new(Some(1000), 16_000);
        assert!(push(&mut units, &[0.1; 8000]).is_empty());
        assert_eq!(units.waiting(), 8000);
        assert_eq!(push(&mut units, &[0.2; 8000]).len(), 1);
        assert_eq!((units.whole(), units.flush()), (1, None));
    }

    #[test]
    fn a_commit_gives_the_part_and_a_clear_forgets_it() {
        let mut units = Units::new(Some(80), 16_000);
        push(&mut units, &[0.5; 1281]);
        assert_eq!((units.flush(), units.whole()), (Some(vec![0.5]), 2));
        push(&mut units, &[0.5; 7]);
        assert_eq!((units.clear(), units.flush()), (7, None));
    }

    #[test]
    fn without_a_period_each_piece_is_a_unit() {
        for period in [None, Some(0)] {
            let mut units = Units::new(period, 16_000);
            assert_eq!(push(&mut units, &[0.5; 7]), [vec![0.5; 7]]);
            assert!(push(&mut units, &[]).is_empty() && units.is_empty());
        }
        assert_eq!(Units::new(Some(1), 1).unit(), Some(1));
    }

    #[test]
    fn silence_has_an_end_and_input_resets_it() {
        let mut silence = Silence::new(8);
        assert_eq!((0..50).filter(|_| silence.take()).count(), 8);
        silence.reset();
        assert!(silence.take());
        assert!(!Silence::new(0).take());
    }

    proptest! {
        #[test]
        fn units_joined_are_the_stream_whatever_the_cuts(
            pieces in prop::collection::vec(0usize..50, 0..30), period in 1u32..30,
        ) {
            let stream: Vec<f32> = (0..pieces.iter().sum::<usize>()).map(|i| i as f32).collect();
            let (mut units, mut all, mut at) = (Units::new(Some(period), 1000), Vec::new(), 0);
            for piece in pieces {
                all.extend(push(&mut units, &stream[at..at + piece]));
                at += piece;
                prop_assert!(units.waiting() < period as usize);
            }
            prop_assert!(all.iter().all(|u| u.len() == period as usize));
            prop_assert_eq!(all.len(), stream.len() / period as usize);
            all.extend(units.flush());
            prop_assert_eq!(all.concat(), stream);
        }
    }
}
