//! The speech nodes in small graphs, from YAML, on paused time: what a detector would find is written on the windows.

mod barge_in;
mod commit;
mod confirm;
mod ends;
mod playout;
#[cfg(feature = "chat")]
mod turns;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use omni_flow::units::Dur;
use omni_flow::*;
use omni_flow_nodes::registry::registry;
use serde::Deserialize;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Longest that a test's world may run, in its own time.
const MOST: Duration = Duration::from_secs(600);

/// The graph `g` with the lanes `reply` and `guess`, a microphone and these nodes.
async fn graph(nodes: &str) -> Graph {
    let yaml = format!(
        "graph: g\nsession: {{ mode: duplex }}\nlanes: [reply, guess]\nnodes:\n  \
         mic: {{ use: session.in, audio: {{ rate: 16000 }} }}\n{nodes}"
    );
    let mut known = registry().unwrap();
    known.add::<Answer>().unwrap().add::<Hear>().unwrap();
    let file = GraphFile::parse("test.yaml", &yaml).unwrap_or_else(|d| panic!("{d}"));
    let plan = file.check(&known, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
    Engine::builder().clock(Clock::tokio()).inline().build().unwrap().start(plan).await.unwrap()
}

fn reply() -> Lane {
    Lane::new(1).unwrap()
}

/// What came out of an output, and when, ms since the test began.
#[derive(Clone, Debug)]
enum Out {
    Data(Stamp, Payload),
    Fence,
    End(Option<RunError>),
}
type Heard = Vec<(u64, Out)>;

fn listen(session: &mut Session, node: &str, begun: Instant) -> JoinHandle<Heard> {
    let mut output = session.output(node).unwrap();
    tokio::spawn(async move {
        let mut all = Vec::new();
        loop {
            let out = match output.next().await {
                Event::Data(stamp, p) => Out::Data(stamp, p),
                Event::Fence(_) => Out::Fence,
                Event::End(Terminal::End) => Out::End(None),
                Event::End(Terminal::Error(e)) => Out::End(Some(e)),
            };
            let over = matches!(out, Out::End(_));
            all.push((begun.elapsed().as_millis() as u64, out));
            if over {
                return all;
            }
        }
    })
}

/// Waits for what an output gave; it must have ended well.
async fn over(listener: JoinHandle<Heard>) -> Heard {
    let all = tokio::time::timeout(MOST, listener).await.expect("the output never ends").unwrap();
    assert!(matches!(all.last(), Some((_, Out::End(None)))), "{:?}", all.last());
    all
}

async fn finish(session: Session) {
    tokio::time::timeout(MOST, session.wait()).await.expect("the session never ends").unwrap();
}

/// Speaks at the pace of speech: so many windows of 32 ms with each probability.
async fn speak(mic: &mut Input, pattern: &[(f32, usize)]) {
    for &(p, windows) in pattern {
        for _ in 0..windows {
            tokio::time::sleep(Duration::from_millis(32)).await;
            mic.send(Pcm::mono(16_000, vec![0.1; 512]).with_voice(p)).await.unwrap();
        }
    }
}

fn texts(heard: &Heard) -> Vec<(u64, String)> {
    let text = |(at, o): &(u64, Out)| match o {
        Out::Data(_, Payload::Text(t)) => Some((*at, t.to_string())),
        _ => None,
    };
    heard.iter().filter_map(text).collect()
}

fn signals(heard: &Heard) -> Vec<(u64, Signal)> {
    let signal = |(at, o): &(u64, Out)| match o {
        Out::Data(_, Payload::Signal(s)) => Some((*at, s.clone())),
        _ => None,
    };
    heard.iter().filter_map(signal).collect()
}

/// A chunk of an answer: when it came, which answer it is of, its first sample there, samples, whether it is the last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    at: u64,
    answer: u32,
    first: u32,
    samples: u32,
    last: bool,
}

/// The pieces of answers, each checked to be unbroken.
fn pieces(heard: &Heard) -> Vec<Piece> {
    let piece = |(at, o): &(u64, Out)| match o {
        Out::Data(stamp, Payload::Audio(a)) if a.frames() > 0 => {
            let x = a.f32();
            let (answer, first) = place(x[0]);
            assert!(x.iter().enumerate().all(|(i, s)| place(*s) == (answer, first + i as u32)), "broken at {at} ms");
            Some(Piece { at: *at, answer, first, samples: x.len() as u32, last: stamp.last })
        }
        _ => None,
    };
    heard.iter().filter_map(piece).collect()
}

/// Samples per second of the answers.
const RATE: u32 = 8_000;

/// A sample that says of which answer it is, and where in it: exact in an `f32` up to 16 s.
fn sample(answer: u32, at: u32) -> f32 {
    answer as f32 + at as f32 / 131_072.0
}
fn place(sample: f32) -> (u32, u32) {
    (sample.floor() as u32, (sample.fract() * 131_072.0) as u32)
}

/// Answers each utterance with so much audio, made at once, in pieces of 100 ms. Answers are numbered from 1.
struct Answer {
    length: u32,
    given: u32,
}
#[derive(Deserialize)]
struct AnswerConfig {
    length: Dur,
}
impl Step for Answer {
    type In = Pcm;
    type Out = Pcm;
    fn step(&mut self, stamp: &Stamp, _: Pcm, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        self.given += 1;
        let mut at = 0;
        while at < self.length {
            let n = (RATE / 10).min(self.length - at);
            let audio: Vec<f32> = (at..at + n).map(|i| sample(self.given, i)).collect();
            let (pts, len) = (MediaTime::from_samples(at.into(), RATE), MediaTime::from_samples(n.into(), RATE));
            at += n;
            out.push(stamp.child(pts, len).last(at == self.length), Pcm::mono(RATE, audio));
        }
        Ok(())
    }
}
impl Make for Answer {
    const NAME: &'static str = "test.answer";
    type Config = AnswerConfig;
    fn schema() -> Schema {
        Schema::new("answers")
            .input(Port::new("in", Kind::mono(16_000), "utterances"))
            .output(Port::new("audio", Kind::mono(RATE), "answers"))
            .option(Opt::required("length", "duration", "of an answer"))
            .example("x: { use: test.answer, length: 1s, in: y }")
    }
    fn build(c: &AnswerConfig, _: &BuildCx) -> Result<Body, BuildError> {
        let length = (c.length.0.as_millis() as u32) * RATE / 1_000;
        Ok(Body::step(move || Answer { length, given: 0 }))
    }
}

/// Recognises each utterance in so much time, one after the other; the text is its place, in ms. The first `deaf` give
/// nothing.
struct Hear {
    delay: Duration,
    deaf: usize,
}
#[derive(Deserialize)]
struct HearConfig {
    delay: Dur,
    #[serde(default)]
    deaf: usize,
}
impl Node for Hear {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Pcm>("in")?;
        let mut out = cx.output::<Arc<str>>("text")?;
        let clock = cx.clock().clone();
        let mut queue: VecDeque<(Stamp, Mono)> = VecDeque::new();
        let mut ended = false;
        while !ended || !queue.is_empty() {
            let due = queue.front().map(|q| q.1);
            tokio::select! {
                biased;
                event = input.next(), if !ended => match event {
                    Event::Data(stamp, _) => {
                        let free = queue.back().map_or(clock.now(), |q| q.1);
                        queue.push_back((stamp, free.plus(self.delay)));
                    }
                    Event::Fence(_) => queue.clear(),
                    Event::End(_) => ended = true,
                },
                () = clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {
                    let Some((stamp, _)) = queue.pop_front() else { continue };
                    if self.deaf > 0 {
                        self.deaf -= 1;
                        continue;
                    }
                    let ms = |t: MediaTime| t.to_duration().as_millis();
                    let text = format!("{}-{}", ms(stamp.pts), ms(stamp.pts + stamp.len));
                    out.send(&stamp.child(stamp.pts, stamp.len).last(true), text.into()).await;
                }
            }
        }
        Ok(())
    }
}
impl Make for Hear {
    const NAME: &'static str = "test.hear";
    type Config = HearConfig;
    fn schema() -> Schema {
        Schema::new("recognises")
            .input(Port::new("in", Kind::mono(16_000), "utterances"))
            .output(Port::new("text", Kind::of(Medium::Text), "transcripts"))
            .option(Opt::required("delay", "duration", "time that it takes"))
            .option(Opt::new("deaf", "integer", "0", "utterances that give nothing"))
            .example("x: { use: test.hear, delay: 1s, in: y }")
    }
    fn build(c: &HearConfig, _: &BuildCx) -> Result<Body, BuildError> {
        let (delay, deaf) = (c.delay.0, c.deaf);
        Ok(Body::node(move || Hear { delay, deaf }))
    }
}

#[test]
fn samples_say_where_they_are() {
    for (answer, at) in [(1, 0), (3, 1), (7, 31_999), (40, 131_071)] {
        assert_eq!(place(sample(answer, at)), (answer, at));
    }
}

#[test]
fn only_a_guess_is_speculative() {
    let yaml = |kind: &str, more: &str| {
        format!(
            "graph: g\nsession: {{ mode: turn }}\nlanes: [guess]\nnodes:\n  \
             mic: {{ use: session.in, audio: {{ rate: 16000 }} }}\n  \
             x: {{ use: {kind}, in: mic, speculate-after: 96ms{more} }}\n  o: {{ use: session.out, in: x.utterance }}\n"
        )
    };
    let check = |text: &str| {
        let file = GraphFile::parse("test.yaml", text).unwrap();
        file.check(&registry().unwrap(), &CheckCx::default()).map(drop).map_err(|d| d.to_string())
    };
    check(&yaml("speech.guess", ", lane: guess, fences: guess")).unwrap();
    let e = check(&yaml("speech.turn", "")).unwrap_err();
    assert!(e.contains("speculate-after") && e.contains("speech.turn"), "{e}");
}
