//! A person in the conversation: clips, what is heard when, and the pace of speech.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use omni_flow::{Event, In, Input, Payload, Pcm, Session, Signal};
use omni_flow_media::file;
use omni_flow_media::levels::speech_bounds;
use omni_flow_media::resample::{Quality, Resampler};

const RATE: u32 = 16_000;
const FRAME: usize = 320;
const TICK: Duration = Duration::from_millis(20);

/// Something to say, at 16 kHz.
pub struct Clip {
    pub samples: Vec<f32>,
    /// Where its speech ends.
    pub end: Duration,
}

/// The three clips of the comparison: two whole files, and the second utterance of a third.
pub fn clips(folder: &Path) -> Vec<Clip> {
    let read = |name: &str| {
        let d = file::decode(folder.join(name), 1 << 26).unwrap_or_else(|e| panic!("{e}"));
        let mono: Vec<f32> =
            d.samples.chunks_exact(d.channels).map(|f| f.iter().sum::<f32>() / d.channels as f32).collect();
        let mut r = Resampler::new(d.rate, RATE, 1, Quality::default()).expect("usual rates");
        let mut out = Vec::new();
        r.push(&mono, &mut out);
        r.flush(&mut out);
        out
    };
    let third = read("07_two_utterances_with_silence_24k.wav");
    let at = |s: f64| (s * f64::from(RATE)) as usize;
    let all =
        [read("01_librivox0880_16k.wav"), read("03_librivox0890_44k1_stereo.wav"), third[at(4.99)..at(8.28)].to_vec()];
    all.into_iter()
        .map(|samples| {
            let end = speech_bounds(&samples, RATE).expect("speech").end;
            Clip { end: Duration::from_secs_f64(end as f64 / f64::from(RATE)), samples }
        })
        .collect()
}

/// What came out of a session.
#[derive(Debug, Clone)]
pub enum What {
    TurnEnded,
    Heard(String),
    Word(String),
    Clause(String),
    /// Seconds of audio; true for the answer's last chunk.
    Audio(f64, bool),
}

/// What came out of a session, with its time and the turn during which it came.
#[derive(Default)]
pub struct Log {
    turn: AtomicI64,
    events: Mutex<Vec<(Instant, i64, What)>>,
}

impl Log {
    fn add(&self, what: What) {
        let turn = self.turn.load(Ordering::Relaxed);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), turn, what));
    }
    /// The events of a turn.
    pub fn of(&self, turn: i64) -> Vec<(Instant, What)> {
        let all = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|e| e.1 == turn).map(|(at, _, what)| (*at, what.clone())).collect()
    }
    /// When the answer of `turn` will have been played, once its last chunk is there.
    fn played_at(&self, turn: i64) -> Option<Instant> {
        let mut end: Option<Instant> = None;
        let mut whole = false;
        for (at, what) in self.of(turn) {
            if let What::Audio(seconds, last) = what {
                end = Some(end.map_or(at, |e| e.max(at)) + Duration::from_secs_f64(seconds));
                whole = last;
            }
        }
        end.filter(|_| whole)
    }
}

/// Writes down everything that comes out of `session`.
pub fn listen(session: &mut Session, log: &Arc<Log>) {
    let mut take = |node: &str, read: fn(bool, Payload) -> Option<What>| {
        let mut output: In<Payload> = session.output(node).unwrap_or_else(|| panic!("no output {node}"));
        let log = log.clone();
        tokio::spawn(async move {
            loop {
                match output.next().await {
                    Event::Data(stamp, payload) => {
                        if let Some(what) = read(stamp.last, payload) {
                            log.add(what);
                        }
                    }
                    Event::Fence(_) => {}
                    Event::End(_) => return,
                }
            }
        });
    };
    take("turn-out", |_, p| matches!(p, Payload::Signal(Signal::TurnEnded { .. })).then_some(What::TurnEnded));
    take("heard-out", |_, p| text(p).map(What::Heard));
    take("said-out", |_, p| text(p).filter(|t| !t.is_empty()).map(What::Word));
    take("clause-out", |_, p| text(p).filter(|t| !t.trim().is_empty()).map(What::Clause));
    take("speaker", |last, p| match p {
        Payload::Audio(a) => Some(What::Audio(a.frames() as f64 / f64::from(a.rate()), last)),
        _ => None,
    });
}

fn text(p: Payload) -> Option<String> {
    match p {
        Payload::Text(t) => Some(t.to_string()),
        _ => None,
    }
}

/// When a clip was spoken.
pub struct Mark {
    pub turn: i64,
    pub clip: usize,
    /// When its speech ended.
    pub end: Instant,
}

/// One person.
pub struct User {
    pub mic: Input,
    pub log: Arc<Log>,
    pub clips: Arc<[Clip]>,
    pub turns: usize,
}

impl User {
    /// Speaks all turns, each when the answer to the last has been heard. The first, -1, only warms everything.
    pub async fn run(mut self, begin: Instant) -> Vec<Mark> {
        let mut at = begin;
        let mut marks = Vec::new();
        let silence = vec![0.0; FRAME];
        self.log.turn.store(-2, Ordering::Relaxed);
        for _ in 0..75 {
            self.put(&mut at, &silence).await;
        }
        for turn in -1..self.turns as i64 {
            self.log.turn.store(turn, Ordering::Relaxed);
            let index = turn.rem_euclid(self.clips.len() as i64) as usize;
            let clips = self.clips.clone();
            marks.push(Mark { turn, clip: index, end: at + clips[index].end });
            for frame in clips[index].samples.chunks_exact(FRAME) {
                self.put(&mut at, frame).await;
            }
            let spoken = Instant::now();
            loop {
                self.put(&mut at, &silence).await;
                let now = Instant::now();
                let heard = self.log.played_at(turn).is_some_and(|t| now > t + Duration::from_millis(800));
                if heard || now - spoken > Duration::from_secs(20) {
                    break;
                }
            }
        }
        marks
    }

    /// One frame, when its last sample has been spoken.
    async fn put(&mut self, at: &mut Instant, frame: &[f32]) {
        *at += TICK;
        tokio::time::sleep_until((*at).into()).await;
        let _ = self.mic.send(Pcm::mono(RATE, frame.to_vec())).await.expect("the right kind");
    }
}
