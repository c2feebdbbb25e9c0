//! A conversation partner without a model: it hears when somebody speaks, and answers with words and a tone for each.

use std::sync::Arc;
use std::time::Duration;

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Emit, Event, Kind, Make, MediaTime, Medium, Node, NodeError, Out, Pcm, Port,
    RegisterError, Registry, Schema, Sent, Signal, Stamp, Step, StepError, TurnEnd,
};
use serde::Deserialize;
use serde_json::{Value, json};

const HEARD: u32 = 16_000;
const SPOKEN: u32 = 24_000;
/// Samples that are judged together: 10 ms.
const FRAME: usize = 160;

/// All node types of this partner.
pub fn add(r: &mut Registry) -> Result<(), RegisterError> {
    r.add::<Turns>()?.add::<Words>()?.add::<Voice>()?.add::<Pace>()?;
    Ok(())
}

#[derive(Deserialize)]
struct NoConfig {}

/// Tells turns by loudness, and writes down how long somebody spoke.
struct Turns;

#[derive(Deserialize)]
struct Rules {
    mode: String,
    silence_duration_ms: Option<u64>,
    interrupt: Option<bool>,
}

struct Listening {
    cx: Ctx,
    events: Out<Signal>,
    heard: Out<Arc<str>>,
    manual: bool,
    interrupt: bool,
    /// Frames of silence that end a turn.
    patience: u64,
    /// Frames so far; where the turn began; the last loud one; loud ones in a row.
    at: u64,
    begun: Option<u64>,
    loud: u64,
    row: u64,
    /// Where the turn before ended.
    from: u64,
}

fn time(frames: u64) -> MediaTime {
    MediaTime::from_millis(frames as i64 * 10)
}

impl Listening {
    async fn frame(&mut self, stamp: &Stamp, samples: &[f32]) -> Result<(), NodeError> {
        let power = samples.iter().map(|s| s * s).sum::<f32>() / samples.len().max(1) as f32;
        self.at += 1;
        let loud = power.sqrt() > 0.02;
        self.row = if loud { self.row + 1 } else { 0 };
        if loud {
            self.loud = self.at;
        }
        if self.manual {
            return Ok(());
        }
        match self.begun {
            None if self.row >= 9 => {
                let start = self.at.saturating_sub(self.row + 20).max(self.from);
                self.begun = Some(start);
                if self.interrupt {
                    self.cx.fence();
                }
                self.events.send(stamp, Signal::SpeechStarted { at: time(start) }).await;
            }
            Some(start) if self.at - self.loud >= self.patience => self.end(stamp, start, TurnEnd::Silence).await?,
            _ => {}
        }
        Ok(())
    }
    async fn end(&mut self, stamp: &Stamp, start: u64, reason: TurnEnd) -> Result<(), NodeError> {
        let (end, speech_end) = (time(self.at), time(self.loud.max(start)));
        if self.begun.is_some() {
            self.events.send(stamp, Signal::SpeechStopped { at: speech_end }).await;
        }
        self.events.send(stamp, Signal::TurnEnded { start: time(start), speech_end, end, reason }).await;
        let seconds = self.loud.saturating_sub(start) as f64 / 100.0;
        let text =
            if seconds > 0.0 { format!("I have been speaking for {seconds:.1} seconds.") } else { String::new() };
        // As long as a small recogniser takes.
        self.cx.clock().sleep(Duration::from_millis(90)).await;
        self.heard.send(&Stamp { pts: time(start), ..*stamp }, text.into()).await;
        (self.begun, self.row, self.from) = (None, 0, self.at);
        Ok(())
    }
    fn control(&mut self, signal: &Signal) {
        if let Some(Ok(rules)) = signal.read::<Rules>("turn.config") {
            self.manual = rules.mode == "manual";
            self.interrupt = rules.interrupt.unwrap_or(true);
            self.patience = rules.silence_duration_ms.unwrap_or(500) / 10;
        } else if matches!(signal, Signal::Named { name, .. } if &**name == "turn.clear") {
            (self.begun, self.row, self.from) = (None, 0, self.at);
        }
    }
}

impl Node for Turns {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut mic = cx.input::<Pcm>("in")?;
        let mut control = cx.input::<Signal>("control")?;
        let (events, heard) = (cx.output("events")?, cx.output("heard")?);
        let mut me = Listening {
            cx,
            events,
            heard,
            manual: false,
            interrupt: true,
            patience: 50,
            at: 0,
            begun: None,
            loud: 0,
            row: 0,
            from: 0,
        };
        let mut rest: Vec<f32> = Vec::new();
        loop {
            tokio::select! {
                biased;
                event = control.next() => match event {
                    Event::Data(_, signal) => me.control(&signal),
                    Event::Fence(_) => {}
                    Event::End(_) => return Ok(()),
                },
                event = mic.next() => match event {
                    Event::Data(stamp, pcm) => {
                        rest.extend_from_slice(&pcm.f32());
                        let whole = rest.len() / FRAME * FRAME;
                        for frame in rest[..whole].chunks(FRAME) {
                            me.frame(&stamp, frame).await?;
                        }
                        rest.drain(..whole);
                        if stamp.last {
                            let start = me.begun.unwrap_or(me.from);
                            me.end(&stamp, start, TurnEnd::Committed).await?;
                        }
                    }
                    Event::Fence(_) => {}
                    Event::End(_) => return Ok(()),
                },
            }
        }
    }
}

impl Make for Turns {
    const NAME: &'static str = "demo.turns";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("Tells turns by loudness")
            .input(Port::new("in", Kind::mono(HEARD), "the microphone"))
            .input(Port::new("control", Kind::of(Medium::Signal), "rules"))
            .output(Port::new("events", Kind::of(Medium::Signal), "turns"))
            .output(Port::new("heard", Kind::of(Medium::Text), "what was said"))
            .fences()
            .example("t: { use: demo.turns, in: { in: a, control: b }, fences: reply }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Turns))
    }
}

/// Answers questions, a word at a time.
struct Words;

fn answer(question: &str) -> String {
    let first = match question {
        "" => "You have said nothing yet.".to_owned(),
        said => format!("You said: {} ", said.trim_end_matches(['.', '!', '?'])) + "—",
    };
    format!(
        "{first} and I have heard it. There is no model behind me, only a small graph of nodes, so each of these words is \
         a tone. Speak again whenever you like: what I have not said by then, nobody will hear."
    )
}

impl Node for Words {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut ask = cx.input::<Signal>("ask")?;
        let mut text = cx.output::<Arc<str>>("text")?;
        loop {
            let (stamp, signal) = match ask.next().await {
                Event::Data(stamp, signal) => (stamp, signal),
                Event::Fence(_) => continue,
                Event::End(_) => return Ok(()),
            };
            let Some(Ok(prompt)) = signal.read::<Value>("chat.prompt") else { continue };
            let messages = prompt["messages"].as_array().cloned().unwrap_or_default();
            let asked = messages.iter().rev().find(|m| m["role"] == json!("user"));
            let answer = answer(asked.and_then(|m| m["content"].as_str()).unwrap_or_default());
            cx.clock().sleep(Duration::from_millis(120)).await;
            let words: Vec<&str> = answer.split_inclusive(' ').collect();
            for (i, word) in words.iter().enumerate() {
                if text.send(&stamp.last(i + 1 == words.len()), (*word).into()).await != Sent::Queued {
                    break;
                }
                cx.clock().sleep(Duration::from_millis(40)).await;
            }
        }
    }
}

impl Make for Words {
    const NAME: &'static str = "demo.words";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("Answers questions, a word at a time")
            .input(Port::new("ask", Kind::of(Medium::Signal), "questions"))
            .output(Port::new("text", Kind::of(Medium::Text), "words").segments())
            .example("w: { use: demo.words, in: a }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Words))
    }
}

/// A tone for each word, as long as the word.
struct Voice;

fn spoken(word: &str) -> Vec<f32> {
    let letters = word.trim().chars().count().max(1);
    let length = SPOKEN as usize * (70 + 38 * letters.min(9)) / 1000;
    let pitch = 120.0 + 6.0 * (word.bytes().map(u32::from).sum::<u32>() % 12) as f32;
    let pause = if word.trim_end().ends_with(['.', ',', ':', '—', '?']) { 220 } else { 35 };
    let mut samples: Vec<f32> = (0..length)
        .map(|i| {
            let (t, x) = (i as f32 / SPOKEN as f32, i as f32 / length as f32);
            let voice = |harmonic: f32| (std::f32::consts::TAU * pitch * harmonic * t).sin() / harmonic;
            let swell = (std::f32::consts::PI * x).sin().powf(0.6) * (0.75 + 0.25 * (t * 40.0).sin());
            0.16 * swell * (voice(1.0) + voice(2.0) + 0.6 * voice(4.0))
        })
        .collect();
    samples.resize(length + SPOKEN as usize * pause / 1000, 0.0);
    samples
}

impl Step for Voice {
    type In = Arc<str>;
    type Out = Pcm;
    fn step(&mut self, stamp: &Stamp, word: Arc<str>, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        out.push(*stamp, Pcm::mono(SPOKEN, spoken(&word)));
        Ok(())
    }
}

impl Make for Voice {
    const NAME: &'static str = "demo.voice";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("A tone for each word")
            .input(Port::new("in", Kind::of(Medium::Text), "words"))
            .output(Port::new("audio", Kind::mono(SPOKEN), "tones").segments())
            .example("v: { use: demo.voice, in: a }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Voice))
    }
}

/// Gives audio out at the pace at which it is heard, a little ahead.
struct Pace;

impl Node for Pace {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        const LEAD: Duration = Duration::from_millis(150);
        let mut input = cx.input::<Pcm>("in")?;
        let mut audio = cx.output::<Pcm>("audio")?;
        let mut free = cx.clock().now();
        loop {
            match input.next().await {
                Event::Data(stamp, pcm) => {
                    let all = pcm.f32().into_owned();
                    let pieces = all.chunks(SPOKEN as usize / 50).count();
                    for (i, piece) in all.chunks(SPOKEN as usize / 50).enumerate() {
                        let now = cx.clock().now();
                        if free > now.plus(LEAD) {
                            cx.clock().sleep(free.since(now.plus(LEAD))).await;
                        }
                        free = free.max(cx.clock().now()).plus(Duration::from_millis(20));
                        let stamp = stamp.last(stamp.last && i + 1 == pieces);
                        if audio.send(&stamp, Pcm::mono(SPOKEN, piece.to_vec())).await != Sent::Queued {
                            break;
                        }
                    }
                }
                Event::Fence(_) => free = cx.clock().now(),
                Event::End(_) => return Ok(()),
            }
        }
    }
}

impl Make for Pace {
    const NAME: &'static str = "demo.pace";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("Gives audio out as it is heard")
            .input(Port::new("in", Kind::mono(SPOKEN), "audio"))
            .output(Port::new("audio", Kind::mono(SPOKEN), "audio, in time").segments())
            .example("p: { use: demo.pace, in: a }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Pace))
    }
}
