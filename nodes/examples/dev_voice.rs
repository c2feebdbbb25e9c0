use std::sync::Arc;
use std::time::{Duration, Instant};

use omni_flow::*;
use omni_flow_nodes::models::*;
use omni_flow_nodes::speech::*;
use omni_flow_nodes::text as st;

struct Sent(st::Sentences);
impl Step for Sent {
    type In = Arc<str>;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, x: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        for p in self.0.push(&x) {
            out.push(stamp.last(false), p.text.into());
        }
        if stamp.last {
            for p in self.0.finish() {
                out.push(*stamp, p.text.into());
            }
        }
        Ok(())
    }
    fn fence(&mut self) {
        self.0.reset();
    }
}
#[derive(serde::Deserialize)]
struct No {}
impl Make for Sent {
    const NAME: &'static str = "dev.sentences";
    type Config = No;
    fn schema() -> Schema {
        Schema::new("x").input(Port::new("in", Kind::of(Medium::Text), "")).output(Port::new("out", Kind::of(Medium::Text), "")).example("x: { use: dev.sentences, in: y }")
    }
    fn build(_: &No, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Sent(st::Sentences::new(Default::default()))))
    }
}
const YAML: &str = r#"
graph: voice-assistant
session: { mode: duplex, max-sessions: 4 }
lanes: [reply, guess]
nodes:
  mic: { use: session.in, audio: { rate: 16000 } }
  vad: { use: speech.vad, in: mic }
  turn: { use: speech.turn, in: vad, fences: reply, silence-duration: 200ms }
  guess: { use: speech.guess, in: vad, lane: guess, fences: guess, silence-duration: 200ms, speculate-after: 96ms }
  asr: { use: model.whisper, in: guess, lane: guess }
  heard: { use: speech.confirm, in: { text: asr.text, turn: turn.events } }
  llm:
    use: model.chat
    in: heard
    lane: reply
    max-tokens: 48
    system: You are a friendly voice assistant. Talk with the user in short spoken sentences.
    examples:
      - { user: I went for a walk in the park this morning., assistant: "That sounds lovely. A walk in the morning is good for you, and the fresh air helps too." }
      - { user: My brother is a very quiet person., assistant: "I see, some people are like that. Perhaps he just likes to listen more than he likes to talk." }
  sentences: { use: dev.sentences, in: llm, lane: reply }
  talker: { use: model.talker, in: sentences, lane: reply, chunk: { ramp: [33, 64], size: 64 } }
  voice: { use: model.code2wav, in: talker, lane: reply }
  playout: { use: speech.playout, in: voice, lane: reply }
  speaker: { use: session.out, in: playout.audio, lane: reply }
  said: { use: session.out, in: llm, lane: reply }
  transcript: { use: session.out, in: heard }
"#;

#[tokio::main]
async fn main() {
    let mut r = Registry::base();
    r.add::<SpeechVad>().unwrap().add::<SpeechTurn>().unwrap().add::<SpeechGuess>().unwrap().add::<SpeechConfirm>().unwrap().add::<SpeechPlayout>().unwrap();
    r.add::<ModelWhisper>().unwrap().add::<ModelChat>().unwrap().add::<ModelTalker>().unwrap().add::<ModelCode2wav>().unwrap().add::<Sent>().unwrap();
    let f = GraphFile::parse("v.yaml", YAML).unwrap_or_else(|d| panic!("{d}"));
    let (plan, w) = f.check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}"));
    eprintln!("{w:?}");
    let engine = Engine::new().unwrap();
    let t = Instant::now();
    let graph = engine.start(plan).await.unwrap();
    eprintln!("ready in {:?}", t.elapsed());
    let mut s = graph.open().unwrap();
    let mut mic = s.input("mic").unwrap();
    let (mut speaker, mut said, mut tr) = (s.output("speaker").unwrap(), s.output("said").unwrap(), s.output("transcript").unwrap());
    let path = std::env::args().nth(1).unwrap();
    let mut samples = Vec::new();
    let raw = std::fs::read(&path).unwrap();
    for c in raw[44..].chunks_exact(2) {
        samples.push(f32::from(i16::from_le_bytes([c[0], c[1]])) / 32768.0);
    }
    let eos = {
        let e: Vec<f32> = samples.chunks(160).map(|c| c.iter().map(|x| x * x).sum::<f32>()).collect();
        let m = e.iter().cloned().fold(0.0, f32::max);
        e.iter().rposition(|x| *x > 0.0025 * m).unwrap() + 1
    };
    samples.extend(vec![0.0; 16000 * 4]);
    let start = Instant::now();
    let eos_t = Duration::from_millis(10 * eos as u64);
    let feed = tokio::spawn(async move {
        for (i, c) in samples.chunks(320).enumerate() {
            tokio::time::sleep_until((start + Duration::from_millis(20 * (i as u64 + 1))).into()).await;
            if mic.send(Pcm::mono(16000, c.to_vec())).await != Ok(omni_flow::Sent::Queued) {
                break;
            }
        }
        mic.end();
    });
    let a = tokio::spawn(async move {
        let mut n = 0;
        loop {
            match speaker.next().await {
                Event::Data(_, Payload::Audio(p)) => {
                    if n == 0 {
                        eprintln!("\n[first audio {:?} after end of speech]", (start.elapsed()).saturating_sub(eos_t));
                    }
                    n += p.frames();
                }
                Event::Fence(e) => eprintln!("fence {e}"),
                Event::End(t) => {
                    eprintln!("audio {n} samples, {t:?}");
                    break;
                }
                _ => {}
            }
        }
    });
    let b = tokio::spawn(async move {
        loop {
            match said.next().await {
                Event::Data(s, Payload::Text(p)) => eprint!("{p}{}", if s.last { format!(" <end {:?}>\n", start.elapsed().saturating_sub(eos_t)) } else { String::new() }),
                Event::End(_) => break,
                _ => {}
            }
        }
    });
    let c = tokio::spawn(async move {
        loop {
            match tr.next().await {
                Event::Data(_, Payload::Text(p)) => eprintln!("heard ({:?}): {p}", start.elapsed().saturating_sub(eos_t)),
                Event::End(_) => break,
                _ => {}
            }
        }
    });
    let _ = tokio::join!(feed, a, b, c);
    eprintln!("{:?}", s.wait().await);
    for n in s.stats().nodes {
        eprintln!("{:12} steps {:6} busy {:?} longest {:?}", n.name, n.steps, n.busy, n.longest);
    }
    for n in s.stats().edges {
        eprintln!("{:40} {:5} chunks high {} {:?} stale {}", n.name, n.counts.chunks, n.counts.depth_high, n.counts.span_high, n.counts.stale);
    }
}
