//! When speech ended, when the answer began, and whether it went on without a gap. Pure: it is told the time.

use std::time::Duration;

use omni_flow::{Epochs, MediaTime, Mono, Stamp};
use omni_flow_media::levels;

/// A window is speech if it is louder than this part of the loudest one: the measure of the benchmarks.
const SPEECH_FLOOR_DB: f32 = -26.0206;
/// Chunks whose inputs arrived further apart than this answer different things, if no fence tells them apart.
const APART: Duration = Duration::from_millis(500);
/// A listener who waits longer than this hears a gap.
const UNDERRUN: Duration = Duration::from_millis(100);

/// The clock of a recording as it is fed: which moment each sample was heard at, and how loud each 10 ms were.
#[derive(Debug)]
pub struct Ear {
    /// Samples per second, all channels together, and samples of a window.
    rate: u64,
    window: usize,
    /// RMS of each whole window, dBFS.
    loud: Vec<f32>,
    open: Vec<f32>,
    /// End of each chunk in samples, and when it was fed.
    fed: Vec<(u64, Mono)>,
    samples: u64,
}

impl Ear {
    /// An ear for audio of `rate` Hz with `channels` channels.
    pub fn new(rate: u32, channels: u16) -> Self {
        let all = u64::from(rate) * u64::from(channels.max(1));
        let window = (rate / 100).max(1) as usize * usize::from(channels.max(1));
        Self { rate: all.max(1), window, loud: Vec::new(), open: Vec::new(), fed: Vec::new(), samples: 0 }
    }
    /// A chunk was fed at `now`: the moment at which its last sample had been heard.
    pub fn chunk(&mut self, samples: &[f32], now: Mono) {
        self.samples += samples.len() as u64;
        self.fed.push((self.samples, now));
        self.open.extend_from_slice(samples);
        let whole = self.open.len() / self.window * self.window;
        for w in self.open[..whole].chunks(self.window) {
            self.loud.push(levels::measure(w).rms);
        }
        self.open.drain(..whole);
    }
    /// When the speech ended that was over when what was fed at `origin` had been heard; `None` if there was none.
    pub fn speech_end(&self, origin: Mono) -> Option<Mono> {
        let floor = self.floor()?;
        let heard = self.fed.partition_point(|(_, at)| *at <= origin);
        let until = self.fed.get(heard.checked_sub(1)?)?.0;
        let windows = (until as usize / self.window).min(self.loud.len());
        let last = self.loud[..windows].iter().rposition(|l| *l > floor)?;
        Some(self.heard_at(((last + 1) * self.window) as u64))
    }
    /// True if something in it is loud enough to be speech.
    pub fn heard_anything(&self) -> bool {
        self.floor().is_some()
    }
    /// Length of what was fed.
    pub fn fed(&self) -> Duration {
        Duration::from_secs_f64(self.samples as f64 / self.rate as f64)
    }

    fn floor(&self) -> Option<f32> {
        let loudest = self.loud.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        (loudest > f32::NEG_INFINITY).then_some(loudest + SPEECH_FLOOR_DB)
    }
    /// When the sample before `position` was heard: so long before its chunk was fed as the chunk went on after it.
    fn heard_at(&self, position: u64) -> Mono {
        let i = self.fed.partition_point(|(end, _)| *end < position).min(self.fed.len().saturating_sub(1));
        let Some((end, at)) = self.fed.get(i) else { return Mono::ZERO };
        let after = (end - position.min(*end)) * 1_000_000_000 / self.rate;
        Mono(at.0.saturating_sub(after))
    }
}

/// One answer as it came out of one output.
#[derive(Clone, Debug)]
pub struct Answer {
    /// When the input that it answers arrived.
    pub origin: Mono,
    /// When its first chunk came out.
    pub first: Mono,
    /// Length of its audio.
    pub audio: MediaTime,
    /// Gaps of more than 100 ms that a listener heard, and the longest.
    pub underruns: u32,
    pub longest_gap: Duration,
    /// True if a fence ended it.
    pub interrupted: bool,
    epochs: Epochs,
    latest: Mono,
    dry: Mono,
}

/// The answers of one output.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    all: Vec<Answer>,
    fenced: bool,
}

impl Answers {
    /// A chunk came out at `now`, with `len` of audio (zero for text).
    pub fn chunk(&mut self, stamp: &Stamp, len: MediaTime, now: Mono) {
        let fenced = std::mem::take(&mut self.fenced);
        let goes_on = |a: &Answer| !fenced && a.epochs == stamp.epochs && stamp.origin.since(a.latest) <= APART;
        let play = len.to_duration();
        match self.all.last_mut().filter(|a| goes_on(a)) {
            Some(a) => {
                let gap = now.since(a.dry);
                if gap > UNDERRUN && len > MediaTime::ZERO {
                    a.underruns += 1;
                    a.longest_gap = a.longest_gap.max(gap);
                }
                a.audio += len;
                a.latest = stamp.origin;
                a.dry = Mono(a.dry.0.max(now.0)).plus(play);
            }
            None => self.all.push(Answer {
                origin: stamp.origin,
                first: now,
                audio: len,
                underruns: 0,
                longest_gap: Duration::ZERO,
                interrupted: false,
                epochs: stamp.epochs,
                latest: stamp.origin,
                dry: now.plus(play),
            }),
        }
    }
    /// The output was fenced: what was being answered is over.
    pub fn fence(&mut self, now: Mono) {
        if let Some(a) = self.all.last_mut() {
            a.interrupted |= a.dry.0 > now.0;
        }
        self.fenced = true;
    }
    /// All, in order.
    pub fn all(&self) -> &[Answer] {
        &self.all
    }
    /// Audio of all of them.
    pub fn audio(&self) -> MediaTime {
        self.all.iter().fold(MediaTime::ZERO, |sum, a| sum + a.audio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Mono {
        Mono(n * 1_000_000)
    }
    /// Feeds `clip` (16 kHz) in chunks of 20 ms from 0 on, each as its last sample is heard.
    fn fed(clip: &[f32]) -> Ear {
        let mut ear = Ear::new(16_000, 1);
        for (i, c) in clip.chunks(320).enumerate() {
            ear.chunk(c, ms(20 * (i as u64 + 1)));
        }
        ear
    }
    fn clip(parts: &[(usize, f32)]) -> Vec<f32> {
        parts.iter().flat_map(|(n, a)| (0..*n).map(move |i| a * (i as f32 * 0.3).sin())).collect()
    }

    #[test]
    fn speech_ends_where_the_benchmarks_say() {
        let c = clip(&[(3200, 0.0), (4960, 0.5), (8000, 0.01)]);
        let ear = fed(&c);
        let bounds = levels::speech_bounds(&c, 16_000).unwrap();
        assert_eq!(ear.speech_end(ms(10_000)), Some(ms(bounds.end as u64 / 16)));
    }
    #[test]
    fn an_answer_belongs_to_the_speech_before_it() {
        // Speech from 0 to 1 s and from 2 to 3 s.
        let ear = fed(&clip(&[(16_000, 0.5), (16_000, 0.0), (16_000, 0.4), (8000, 0.0)]));
        assert_eq!(ear.speech_end(ms(1500)), Some(ms(1000)));
        assert_eq!(ear.speech_end(ms(3300)), Some(ms(3000)));
        assert_eq!(ear.speech_end(ms(5)), None, "nothing had been heard");
        assert_eq!(fed(&[0.0; 16_000]).speech_end(ms(900)), None);
        assert!(!fed(&[0.0; 16_000]).heard_anything());
    }
    #[test]
    fn a_late_chunk_moves_the_clock_with_it() {
        let mut ear = Ear::new(16_000, 1);
        let c = clip(&[(320, 0.5)]);
        ear.chunk(&c, ms(20));
        ear.chunk(&[c[..160].to_vec(), vec![0.0; 160]].concat(), ms(540));
        assert_eq!(ear.speech_end(ms(600)), Some(ms(530)));
    }
    #[test]
    fn gaps_and_answers_are_told_apart() {
        let at = |origin| Stamp { origin: ms(origin), ..Stamp::default() };
        let len = MediaTime::from_millis(200);
        let mut a = Answers::default();
        a.chunk(&at(1000), len, ms(1100));
        a.chunk(&at(1000), len, ms(1390));
        a.chunk(&at(1000), len, ms(1700));
        // 90 ms late is no underrun; 110 ms after 1390 + 200 is one.
        assert_eq!((a.all().len(), a.all()[0].underruns), (1, 1));
        assert_eq!(a.all()[0].longest_gap, Duration::from_millis(110));
        a.fence(ms(1800));
        assert!(a.all()[0].interrupted);
        a.chunk(&at(1000), len, ms(1900));
        a.chunk(&at(1600), len, ms(2000));
        assert_eq!(a.all().len(), 3, "a fence, and an input half a second later");
        assert_eq!(a.audio(), MediaTime::from_millis(1000));
    }
    #[test]
    fn what_passes_through_is_one_answer() {
        let mut a = Answers::default();
        for i in 0..100 {
            let s = Stamp { origin: ms(20 * i), ..Stamp::default() };
            a.chunk(&s, MediaTime::from_millis(20), ms(20 * i + 1));
        }
        assert_eq!((a.all().len(), a.all()[0].underruns), (1, 0));
    }
}
