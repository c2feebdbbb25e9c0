//! The scripted partner in a graph, in virtual time, as a server drives it.

use std::time::Duration;

use omni_flow::*;
use omni_flow_nodes::registry::registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

const MOST: Duration = Duration::from_secs(600);

async fn graph(options: &str) -> Graph {
    let yaml = format!(
        "graph: g\nsession: {{ mode: duplex }}\nlanes: [reply]\nnodes:\n  \
         mic: {{ use: session.in, audio: {{ rate: 16000 }} }}\n  \
         ask: {{ use: session.in, kind: signal }}\n  \
         partner: {{ use: scripted_duplex, lane: reply, in: {{ audio: mic, ask: ask }}{options} }}\n  \
         speaker: {{ use: session.out, lane: reply, in: partner }}\n  \
         said: {{ use: session.out, lane: reply, in: partner.text }}\n  \
         events: {{ use: session.out, lane: reply, in: partner.events }}\n"
    );
    let file = GraphFile::parse("test.yaml", &yaml).unwrap_or_else(|d| panic!("{d}"));
    let cx = CheckCx { fences: vec!["reply".into()], ..CheckCx::default() };
    let plan = file.check(&registry().unwrap(), &cx).unwrap_or_else(|d| panic!("{d}")).0;
    Engine::builder().clock(Clock::tokio()).inline().build().unwrap().start(plan).await.unwrap()
}

/// Where it stands, and what it is.
#[derive(Clone, Debug)]
enum Came {
    Audio { at: u64, from: u64, samples: Vec<f32>, last: bool },
    Text { at: u64, text: String, last: bool },
    Event { at: u64, name: String, data: Value },
}

struct Talk {
    session: Session,
    mic: Input,
    ask: Input,
    listeners: Vec<JoinHandle<Vec<Came>>>,
    begun: Instant,
}

impl Talk {
    async fn begin(options: &str) -> Self {
        let mut session = graph(options).await.open().unwrap();
        let (mic, ask) = (session.input("mic").unwrap(), session.input("ask").unwrap());
        Self { session, mic, ask, listeners: Vec::new(), begun: Instant::now() }
    }
    /// Takes what comes out from now on.
    fn listen(&mut self) {
        for node in ["speaker", "said", "events"] {
            let mut out = self.session.output(node).unwrap();
            let begun = self.begun;
            self.listeners.push(tokio::spawn(async move {
                let mut all = Vec::new();
                loop {
                    let event = out.next().await;
                    let at = begun.elapsed().as_millis() as u64;
                    match event {
                        Event::Data(s, Payload::Audio(a)) => {
                            let from = s.pts.to_samples(a.rate());
                            all.push(Came::Audio { at, from, samples: a.f32().to_vec(), last: s.last });
                        }
                        Event::Data(s, Payload::Text(t)) => {
                            all.push(Came::Text { at, text: t.to_string(), last: s.last });
                        }
                        Event::Data(_, Payload::Signal(Signal::Named { name, data })) => {
                            let data = serde_json::from_str(&data).unwrap();
                            all.push(Came::Event { at, name: name.to_string(), data });
                        }
                        Event::Data(_, other) => panic!("{other:?}"),
                        Event::Fence(_) => {}
                        Event::End(Terminal::End) => return all,
                        Event::End(Terminal::Error(e)) => panic!("{e}"),
                    }
                }
            }));
        }
    }
    /// Audio of so many ms, all of one value.
    async fn say(&mut self, ms: usize, value: f32) {
        self.mic.send(Pcm::mono(16_000, vec![value; ms * 16])).await.unwrap();
    }
    async fn commit(&mut self) {
        self.mic.send_last(Pcm::mono(16_000, Vec::new())).await.unwrap();
    }
    async fn tell(&mut self, name: &str, data: Value) {
        self.ask.send(Signal::named(name, &data).unwrap()).await.unwrap();
    }
    async fn ask(&mut self) {
        self.tell("answer.begin", json!({})).await;
    }
    async fn pause(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    fn cancel(&self) {
        self.session.fence(Lane::new(1).unwrap());
    }
    /// Ends all; gives what came, audio, text and events each in order.
    async fn end(self) -> Vec<Came> {
        self.mic.end();
        self.ask.end();
        let mut all = Vec::new();
        for l in self.listeners {
            all.extend(tokio::time::timeout(MOST, l).await.expect("an output never ends").unwrap());
        }
        tokio::time::timeout(MOST, self.session.wait()).await.expect("the session never ends").unwrap();
        all
    }
}

fn audio(all: &[Came]) -> Vec<(u64, u64, usize, bool)> {
    let one = |c: &Came| match c {
        Came::Audio { at, from, samples, last } => Some((*at, *from, samples.len(), *last)),
        _ => None,
    };
    all.iter().filter_map(one).collect()
}
fn samples(all: &[Came]) -> Vec<f32> {
    let one = |c: &Came| if let Came::Audio { samples, .. } = c { samples.clone() } else { Vec::new() };
    all.iter().flat_map(one).collect()
}
fn texts(all: &[Came]) -> Vec<String> {
    all.iter().filter_map(|c| if let Came::Text { text, .. } = c { Some(text.clone()) } else { None }).collect()
}
fn events(all: &[Came]) -> Vec<String> {
    let name = |c: &Came| if let Came::Event { name, .. } = c { Some(name.clone()) } else { None };
    all.iter().filter_map(name).collect()
}
fn data(all: &[Came], of: &str) -> Vec<(u64, Value)> {
    let one = |c: &Came| match c {
        Came::Event { at, name, data } if name == of => Some((*at, data.clone())),
        _ => None,
    };
    all.iter().filter_map(one).collect()
}

#[tokio::test(start_paused = true)]
async fn it_answers_what_was_committed_when_it_is_asked() {
    let mut t = Talk::begin("").await;
    t.listen();
    t.say(1_500, 0.1).await;
    t.commit().await;
    t.pause(1_000).await;
    t.ask().await;
    t.pause(1_000).await;
    let got = t.end().await;
    assert_eq!(audio(&got), [(1_000, 0, 24_000, false), (1_000, 24_000, 24_000, false), (1_000, 48_000, 24_000, true)]);
    assert_eq!(texts(&got), ["hel", "lo w", "orld"]);
    assert!(matches!(
        &got.iter().rfind(|c| matches!(c, Came::Text { .. })),
        Some(Came::Text { last: true, at: 1_000, .. })
    ));
    assert_eq!(events(&got), ["unit", "answer.started", "answer.done"]);
    assert_eq!(data(&got, "unit")[0].1, json!({ "units": 1, "steps": 1, "samples": 24_000 }));
    let started = json!({
        "turn": 0, "chunks": 3, "rate": 24_000, "text": true, "text_mode": "delta", "audio_mode": "delta",
    });
    assert_eq!(data(&got, "answer.started")[0].1, started);
    assert_eq!(data(&got, "answer.done")[0].1, json!({ "turn": 0, "chunks": 3 }));
}

#[tokio::test(start_paused = true)]
async fn half_a_unit_is_no_step_and_two_halves_are_one() {
    let mut t = Talk::begin(", answers: [{ text: \"{steps} {samples}\", chunks: 1 }]").await;
    t.listen();
    t.say(500, 0.1).await;
    t.ask().await;
    t.pause(500).await;
    t.say(500, 0.1).await;
    t.commit().await;
    t.ask().await;
    t.pause(1).await;
    let got = t.end().await;
    assert_eq!(texts(&got), ["0 8000", "1 16000"]);
    assert_eq!(events(&got).iter().filter(|e| *e == "unit").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_comes_after_all_audio_that_was_sent_before_it() {
    // More chunks than a task takes at a time, and the question behind them at once.
    let mut t = Talk::begin(", answers: [{ echo: true, chunk_ms: 60, text: null }]").await;
    t.listen();
    for k in 0..3 {
        for i in 0..200 {
            t.mic.send(Pcm::mono(16_000, vec![(k * 200 + i) as f32; 16])).await.unwrap();
        }
        t.commit().await;
        t.tell("answer.begin", json!({ "turn": k })).await;
    }
    t.pause(1_000).await;
    let got = t.end().await;
    let want: Vec<f32> = (0..600).flat_map(|k| [k as f32; 16]).collect();
    assert_eq!(samples(&got), want);
    assert_eq!(audio(&got).iter().filter(|a| a.3).count(), 3);
    assert!(texts(&got).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_fence_ends_the_answer_and_the_next_one_is_whole() {
    let mut t = Talk::begin(", answers: [{ chunks: 10, chunk_ms: 200, step_ms: 100 }]").await;
    t.listen();
    t.ask().await;
    t.pause(350).await;
    t.cancel();
    t.ask().await;
    t.pause(5_000).await;
    let got = t.end().await;
    let audio = audio(&got);
    let (old, new) = audio.split_at(3);
    assert_eq!(old.iter().map(|a| a.0).collect::<Vec<_>>(), [100, 200, 300]);
    assert_eq!(new.iter().map(|a| a.0).collect::<Vec<_>>(), (1..=10).map(|k| 350 + k * 100).collect::<Vec<_>>());
    assert_eq!((new[0].1, new[9].3), (0, true));
    assert_eq!(events(&got), ["answer.started", "answer.started", "answer.done"]);
}

#[tokio::test(start_paused = true)]
async fn what_it_goes_on_with_after_a_cancel_is_never_heard() {
    let mut t = Talk::begin(", answers: [{ chunks: 100, step_ms: 100, after_cancel_ms: 2000 }]").await;
    t.listen();
    t.ask().await;
    t.pause(350).await;
    t.cancel();
    // It is busy with what nobody wants any more.
    t.ask().await;
    t.pause(1_900).await;
    let stale: u64 = t.session.stats().edges.iter().map(|e| e.counts.stale).sum();
    assert!(stale >= 18, "{stale} chunks of the old answer died");
    t.pause(1_000).await;
    t.cancel();
    t.pause(3_000).await;
    let got = t.end().await;
    let at: Vec<u64> = audio(&got).iter().map(|a| a.0).collect();
    let mut want = vec![100, 200, 300];
    want.extend((1..).map(|k| 2_350 + k * 100).take_while(|at| *at < 3_250));
    assert_eq!(at, want);
}

#[tokio::test(start_paused = true)]
async fn it_hears_while_nobody_takes_what_it_says() {
    let mut t = Talk::begin(", answers: [{ chunks: 50, text: \"{units}\" }, { chunks: 1, text: \"{units}\" }]").await;
    t.ask().await;
    for _ in 0..60 {
        tokio::time::timeout(MOST, t.say(1_000, 0.1)).await.expect("the microphone is held up");
    }
    t.cancel();
    t.listen();
    t.ask().await;
    t.pause(10).await;
    let got = t.end().await;
    assert_eq!(texts(&got), ["60"]);
    assert_eq!(audio(&got).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_listens_and_fails_where_the_script_says() {
    let script =
        ", answers: [{ listen: true }, { fail_at: 1 }, { chunks: 1, text: \"{turn} {voice} {instructions}\" }]";
    let mut t = Talk::begin(script).await;
    t.listen();
    for _ in 0..2 {
        t.ask().await;
    }
    t.tell("answer.begin", json!({ "voice": "joe", "instructions": "be kind" })).await;
    t.ask.send(Signal::Named { name: "answer.begin".into(), data: "wrong".into() }).await.unwrap();
    t.pause(10).await;
    let got = t.end().await;
    assert_eq!(events(&got), ["listen", "answer.started", "failed", "answer.started", "answer.done"]);
    assert_eq!(data(&got, "failed")[0].1, json!({ "turn": 1, "chunk": 1 }));
    assert_eq!(audio(&got).iter().map(|a| a.3).collect::<Vec<_>>(), [false, true]);
    assert_eq!(texts(&got), ["hel", "2 joe be kind"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_decides_answers_a_commit_and_asks_for_units() {
    let script = ", level: model_native_duplex, unit-ms: 100, answers: [{ chunks: 1, chunk_ms: 80, silence_units: 3 }]";
    let mut t = Talk::begin(script).await;
    t.listen();
    t.say(350, 0.1).await;
    t.commit().await;
    for _ in 0..4 {
        t.pause(100).await;
        // Half a unit; the next half is the end of one.
        t.say(50, 0.0).await;
    }
    t.pause(100).await;
    t.tell("answer.end", json!({})).await;
    t.pause(100).await;
    let got = t.end().await;
    assert_eq!(
        audio(&got),
        [(0, 0, 1_920, false), (100, 1_920, 1_920, false), (300, 3_840, 1_920, false), (500, 5_760, 0, true)]
    );
    assert_eq!(data(&got, "unit.needed").iter().map(|e| e.0).collect::<Vec<_>>(), [0, 100, 300]);
    assert_eq!(data(&got, "answer.done")[0].1, json!({ "turn": 0, "chunks": 4 }));
    assert_eq!(texts(&got).concat(), "hello wo");
}

#[tokio::test(start_paused = true)]
async fn where_nobody_asks_the_end_of_the_input_is_answered() {
    let mut t = Talk::begin("").await;
    t.listen();
    t.say(300, 0.1).await;
    t.pause(100).await;
    let got = t.end().await;
    assert_eq!(audio(&got).len(), 3);
    // A client that asked is not answered behind its back.
    let mut t = Talk::begin("").await;
    t.listen();
    t.ask().await;
    t.pause(100).await;
    t.say(300, 0.1).await;
    t.pause(100).await;
    assert_eq!(audio(&t.end().await).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_same_questions_have_the_same_answers_in_every_session() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut t = Talk::begin(", answers: [{ chunks: 5, chunk_ms: 130, text: \"{samples}\" }]").await;
        t.listen();
        t.say(700, 0.3).await;
        t.commit().await;
        t.ask().await;
        t.pause(100).await;
        let got = t.end().await;
        runs.push((samples(&got), texts(&got)));
    }
    assert_eq!(runs[0], runs[1]);
    assert_eq!(runs[0].0.len(), 5 * 130 * 24);
}

#[test]
fn scripts_that_make_no_sense_are_refused() {
    let check = |options: &str| {
        let yaml = format!(
            "graph: g\nnodes:\n  mic: {{ use: session.in, audio: {{ rate: 16000 }} }}\n  \
             p: {{ use: scripted.duplex, in: mic{options} }}\n  o: {{ use: session.out, in: p }}\nsession: {{ mode: duplex }}\n"
        );
        let file = GraphFile::parse("t.yaml", &yaml).unwrap();
        file.check(&registry().unwrap(), &CheckCx::default()).map(|p| p.0).map_err(|d| d.to_string())
    };
    let all = ", level: model_native_duplex, unit_ms: 80, capabilities: { tools: true, barge_in: false }, answers: \
               [{ chunks: 2, chunk-ms: 80, text: [a, null], text_mode: cumulative, audio_mode: cumulative, step_ms: 5, \
               fail_at: 1, after_cancel_ms: 9, silence_units: 2, after_units: 4 }, { listen: true, text: ~ }]";
    assert_eq!(check(all).unwrap().edges.last().unwrap().kind.rate, Some(24_000));
    let echo = |o: &str| check(o).unwrap().edges.iter().filter_map(|e| e.kind.rate).collect::<Vec<_>>();
    assert_eq!(echo(", answers: [{ echo: true }]"), [16_000, 16_000]);
    assert_eq!(echo(", answers: [{ echo: true }, {}]"), [16_000]);
    for (options, words) in [
        (", answers: []", "no entry"),
        (", answers: [{ chunk: 3 }]", "chunk"),
        (", answers: [{ chunk_ms: 0 }]", "1 to 60000"),
        (", answers: [{ text: { a: b } }]", "text"),
        (", unit-ms: 0", "1 to 60000"),
        (", level: magic", "level"),
        (", answers: [{ audio_mode: cumulative, chunks: 1000 }]", "at most 600000"),
    ] {
        let e = check(options).unwrap_err();
        assert!(e.contains(words), "{options}: {e}");
    }
}
