//! A gate against the agent's own voice coming back through the microphone.
//!
//! It compares the energy of a window with the loudest window sent shortly before: an echo is weaker than what was sent,
//! a speaker close to the microphone is not. It knows nothing of phases or filters and is no echo canceller. Use it on
//! onsets only: `if !turn.is_open() && !gate.admits(at, window) { 0.0 } else { p }`.

use super::{RATE, WINDOW};
use std::collections::VecDeque;

/// How long sent audio can come back, samples (500 ms); ours.
const HORIZON: u64 = RATE as u64 / 2;
/// A window must have this share of the sent energy to pass: −6 dB; ours.
const SHARE: f64 = 0.251_188_643_150_958;

/// Remembers the energy of the audio sent within the last 500 ms.
#[derive(Clone, Debug, Default)]
pub struct EchoGate {
    /// End position and energy (mean square) of the pieces sent, in order.
    sent: VecDeque<(u64, f64)>,
}

impl EchoGate {
    /// Takes note that `audio` (16 kHz) was sent and plays from position `at` of the microphone's clock. Positions must
    /// not go back; values that are no finite number count as zero.
    pub fn sent(&mut self, at: u64, audio: &[f32]) {
        for (k, piece) in audio.chunks(WINDOW).enumerate() {
            let end = at.saturating_add((k * WINDOW + piece.len()) as u64);
            self.forget(end);
            self.sent.push_back((end, energy(piece)));
        }
    }
    /// Whether the microphone window at `at` may be a speaker: it is not much weaker than what was sent, or nothing was.
    pub fn admits(&mut self, at: u64, window: &[f32]) -> bool {
        self.forget(at);
        let until = at.saturating_add(window.len() as u64 + WINDOW as u64);
        let loudest = self.sent.iter().filter(|s| s.0 <= until).fold(0.0f64, |most, s| most.max(s.1));
        let heard = energy(window);
        loudest == 0.0 || heard >= loudest * SHARE
    }
    /// Forgets what was sent, at a fence after which nothing of it plays.
    pub fn clear(&mut self) {
        self.sent.clear();
    }

    fn forget(&mut self, now: u64) {
        while self.sent.front().is_some_and(|s| s.0.saturating_add(HORIZON) < now) {
            self.sent.pop_front();
        }
        // Pieces shorter than a window, or many at one position, must not pile up either.
        while self.sent.len() >= 2048 {
            self.sent.pop_front();
        }
    }
}

fn energy(audio: &[f32]) -> f64 {
    let sum: f64 = audio.iter().map(|s| f64::from(*s)).filter(|s| s.is_finite()).map(|s| s * s).sum();
    sum / audio.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::{TurnConfig, TurnEvent, TurnMachine};
    use super::*;

    /// Noise whose level swings slowly around `mean` by `swing`.
    fn noise(seed: u64, n: usize, mean: f32, swing: f32) -> Vec<f32> {
        let mut x = seed | 1;
        let mut next = |i: usize| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let level = mean + swing * (i as f32 / 3_000.0).sin();
            level * ((x >> 40) as f32 / (1 << 23) as f32 - 1.0)
        };
        (0..n).map(&mut next).collect()
    }
    /// Starts of speech when everything that is not silence sounds like speech to the detector.
    fn starts(mic: &[f32], sent: Option<&[f32]>) -> Vec<u64> {
        let (mut gate, mut out) = (EchoGate::default(), Vec::new());
        let mut turn = TurnMachine::new(TurnConfig::default().rules().expect("valid settings"));
        for (k, window) in mic.chunks_exact(WINDOW).enumerate() {
            let at = (k * WINDOW) as u64;
            if let Some(sent) = sent {
                gate.sent(at, &sent[k * WINDOW..(k + 1) * WINDOW]);
            }
            let speech = energy(window) > 1e-6 && (turn.is_open() || gate.admits(at, window));
            turn.push(window, |_| if speech { 0.9 } else { 0.0 }, &mut out);
        }
        let start = |e: &TurnEvent| matches!(e, TurnEvent::SpeechStarted { .. });
        let at = |e: &TurnEvent| if let TurnEvent::SpeechStarted { speech, .. } = e { *speech } else { 0 };
        out.iter().filter(|e| start(e)).map(at).collect()
    }

    #[test]
    fn f20_an_echo_does_not_start_a_turn_and_a_speaker_does() {
        let sent = noise(7, 160 * WINDOW, 0.3, 0.2);
        // −12 dB, 120 ms later.
        let echo: Vec<f32> = (0..sent.len()).map(|i| if i < 1_920 { 0.0 } else { sent[i - 1_920] * 0.251 }).collect();
        assert_eq!(starts(&echo, Some(&sent)), [0; 0]);
        assert_eq!(starts(&echo, None).len(), 1, "without the gate the agent hears itself");
        let mut both = echo.clone();
        // 0 dB: as much energy as the sent audio has on average.
        let burst = noise(1_234_567, sent.len(), (0.3f32 * 0.3 + 0.2 * 0.2 / 2.0).sqrt(), 0.0);
        for i in 100 * WINDOW..110 * WINDOW {
            both[i] += burst[i];
        }
        let started = starts(&both, Some(&sent));
        assert_eq!(started.len(), 1);
        assert!((100 * WINDOW as u64..103 * WINDOW as u64).contains(&started[0]), "{started:?}");
    }
    #[test]
    fn what_was_sent_long_ago_does_not_count_and_memory_is_bounded() {
        let mut gate = EchoGate::default();
        gate.sent(0, &[0.9; WINDOW]);
        assert!(!gate.admits(4_000, &[0.1; WINDOW]));
        assert!(gate.admits(4_000, &[0.9; WINDOW]));
        assert!(gate.admits(20_000, &[0.1; WINDOW]));
        for _ in 0..10_000 {
            gate.sent(5, &[f32::NAN, 0.1]);
        }
        assert!(gate.sent.len() <= 2048);
        gate.clear();
        assert!(gate.admits(5, &[0.0; WINDOW]) && gate.admits(5, &[]));
    }
}
