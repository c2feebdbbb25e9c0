//! What of the samples goes into which window: nothing where there is no sound, cuts at quiet places.

use std::ops::Range;

/// Below this level (RMS of a 20 ms frame, -60 dBFS) there is nothing to hear.
const AUDIBLE: f32 = 0.001;
const FRAME: usize = 320;
/// Where a long utterance may be cut: within the last five seconds of the window.
const SEARCH: usize = 80_000;

/// Finite samples in -1..1.
pub(crate) fn gather(pcm: &[f32]) -> Vec<f32> {
    pcm.iter().map(|v| if v.is_finite() { v.clamp(-1., 1.) } else { 0. }).collect()
}

/// The next window of at most `limit` samples from `at` on; `at` moves behind it. Windows without sound are passed
/// over, sound shorter than 100 ms as well. `None` at the end.
pub(crate) fn next_window(pcm: &[f32], at: &mut usize, limit: usize) -> Option<Range<usize>> {
    while *at < pcm.len() {
        let start = *at;
        let end = if pcm.len() - start <= limit { pcm.len() } else { quietest(pcm, start, start + limit) };
        *at = end;
        let audible = pcm[start..end].chunks(FRAME).filter(|f| rms(f) > AUDIBLE).count();
        if audible >= 5 {
            return Some(start..end);
        }
    }
    None
}

/// The middle of the quietest 200 ms before `end`.
fn quietest(pcm: &[f32], start: usize, end: usize) -> usize {
    let from = end.saturating_sub(SEARCH).max(start + FRAME * 10);
    let span = FRAME * 10;
    let mut best = (f32::MAX, end);
    let mut at = from;
    while at + span <= end {
        let level = rms(&pcm[at..at + span]);
        if level <= best.0 {
            best = (level, at + span / 2);
        }
        at += FRAME;
    }
    best.1
}

fn rms(samples: &[f32]) -> f32 {
    (samples.iter().map(|v| v * v).sum::<f32>() / samples.len().max(1) as f32).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn silence_gives_no_window() {
        for n in [0, 1, 16_000, 1_000_000] {
            assert_eq!(next_window(&vec![0.; n], &mut 0, 480_000), None);
        }
    }

    #[test]
    fn cuts_in_the_pause() {
        let mut pcm = vec![0.2f32; 700_000];
        pcm[440_000..446_400].fill(0.);
        let mut at = 0;
        let first = next_window(&pcm, &mut at, 480_000).unwrap();
        assert!((440_000..446_400).contains(&first.end), "{first:?}");
        assert_eq!(next_window(&pcm, &mut at, 480_000).unwrap(), first.end..700_000);
        assert_eq!(next_window(&pcm, &mut at, 480_000), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn covers_all_that_sounds(n in 0usize..400_000, limit in 100_000usize..480_000) {
            let pcm = vec![0.5f32; n];
            let (mut at, mut covered) = (0, 0);
            while let Some(w) = next_window(&pcm, &mut at, limit) {
                prop_assert_eq!(w.start, covered);
                prop_assert!(w.len() <= limit);
                covered = w.end;
            }
            prop_assert!(n - covered < FRAME * 5);
        }
    }
}
