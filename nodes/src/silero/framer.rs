//! Cuts chunks of any size into windows of 512 samples; leftovers belong to the stream.

/// Samples of a window at 16 kHz: 32 ms.
pub const WINDOW: usize = 512;

/// Re-cuts one stream. The windows do not depend on how the input was cut.
#[derive(Debug, Clone, Default)]
pub struct Framer {
    left: Vec<f32>,
    taken: u64,
}

impl Framer {
    /// Takes a chunk and calls `window(start, samples)` for each full window; `start` is its position in the stream,
    /// in samples.
    ///
    /// # Errors
    /// The first error of `window`; the windows before it are used up, it and what follows are kept.
    pub fn push<E>(
        &mut self,
        mut chunk: &[f32],
        mut window: impl FnMut(u64, &[f32; WINDOW]) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let need = WINDOW - self.left.len().min(WINDOW);
            let (head, tail) = chunk.split_at(need.min(chunk.len()));
            self.left.extend_from_slice(head);
            chunk = tail;
            let Some(full) = self.left.first_chunk::<WINDOW>() else { return Ok(()) };
            let result = window(self.taken, full);
            if result.is_err() {
                self.left.extend_from_slice(chunk);
                return result;
            }
            self.left.drain(..WINDOW);
            self.taken += WINDOW as u64;
        }
    }

    /// Ends the stream: the leftover, filled with zeros, is the last window. The framer starts anew afterwards.
    ///
    /// # Errors
    /// That of `window`.
    pub fn finish<E>(&mut self, window: impl FnOnce(u64, &[f32; WINDOW]) -> Result<(), E>) -> Result<(), E> {
        let (left, start) = (std::mem::take(&mut self.left), self.taken);
        self.taken = 0;
        if left.is_empty() {
            return Ok(());
        }
        let mut full = [0.; WINDOW];
        full.iter_mut().zip(&left).for_each(|(f, l)| *f = *l);
        window(start, &full)
    }

    /// Forgets the leftover and the position.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Samples that wait for their window to fill.
    pub fn pending(&self) -> usize {
        self.left.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn cut(signal: &[f32], sizes: &[usize]) -> Vec<(u64, Vec<f32>)> {
        let (mut framer, mut out, mut rest) = (Framer::default(), Vec::new(), signal);
        let mut sizes = sizes.iter().cycle();
        let mut keep = |start: u64, w: &[f32; WINDOW]| {
            out.push((start, w.to_vec()));
            Ok::<_, Infallible>(())
        };
        while !rest.is_empty() {
            let n = (*sizes.next().unwrap()).clamp(1, rest.len());
            framer.push(&rest[..n], &mut keep).unwrap();
            assert!(framer.pending() < WINDOW);
            rest = &rest[n..];
        }
        framer.finish(&mut keep).unwrap();
        out
    }

    #[test]
    fn any_chunk_size_gives_the_same_windows() {
        let signal: Vec<f32> = (0..48_000).map(|i| i as f32).collect();
        let expected = cut(&signal, &[WINDOW]);
        assert_eq!(expected.len(), 94);
        for size in [1, 160, 320, 441, 512, 720, 20_805, 48_000] {
            assert_eq!(cut(&signal, &[size]), expected, "chunks of {size}");
        }
    }

    #[test]
    fn only_the_last_window_is_filled() {
        let windows = cut(&[1.; WINDOW + 100], &[160]);
        assert_eq!(windows.len(), 2);
        assert!(windows[1].1[..100].iter().all(|&v| v == 1.) && windows[1].1[100..].iter().all(|&v| v == 0.));
        assert_eq!(windows[1].0, 512);
    }

    #[test]
    fn an_error_keeps_what_was_not_used() {
        let mut framer = Framer::default();
        assert!(framer.push(&[2.; 1500], |start, _| if start == 512 { Err(()) } else { Ok(()) }).is_err());
        assert_eq!(framer.pending(), 1500 - 512);
        let mut starts = Vec::new();
        framer
            .push(&[], |s, _| {
                starts.push(s);
                Ok::<_, ()>(())
            })
            .unwrap();
        assert_eq!(starts, [512]);
    }

    proptest! {
        #[test]
        fn matches_a_plain_split(n in 0usize..4000, sizes in proptest::collection::vec(1usize..900, 1..8)) {
            let signal: Vec<f32> = (0..n).map(|i| i as f32 + 1.).collect();
            let got = cut(&signal, &sizes);
            let mut expected: Vec<(u64, Vec<f32>)> = Vec::new();
            for (i, w) in signal.chunks(WINDOW).enumerate() {
                let mut w = w.to_vec();
                w.resize(WINDOW, 0.);
                expected.push(((i * WINDOW) as u64, w));
            }
            prop_assert_eq!(got, expected);
        }
    }
}
