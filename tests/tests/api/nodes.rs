//! Nodes that are quick, and do what their text says.

use std::sync::Arc;

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Emit, Event, Kind, Make, Medium, Node, NodeError, Pcm, Port, Registry, Schema,
    Signal, Stamp, Step, StepError,
};

/// No options.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// Samples per second of all audio here.
pub const RATE: u32 = 8000;
/// Samples of each letter.
pub const LETTER: usize = 400;

pub fn registry() -> Registry {
    let mut registry = Registry::base();
    registry.add::<Tone>().unwrap();
    registry.add::<Count>().unwrap();
    registry.add::<Talker>().unwrap();
    registry
}

/// Speaks each letter as 400 samples of its number. Fails at "fail", says nothing of "mute", never ends "forever", and
/// panics at "panic".
pub struct Tone;

impl Step for Tone {
    type In = Arc<str>;
    type Out = Pcm;
    fn step(&mut self, stamp: &Stamp, x: Arc<str>, out: &mut Emit<Pcm>) -> Result<(), StepError> {
        for (i, word) in x.split_whitespace().enumerate() {
            match word {
                "fail" => return Err("told to fail".into()),
                "panic" => panic!("told to"),
                "mute" => continue,
                _ => {}
            }
            let letters = word.bytes().flat_map(|b| [f32::from(b) / 256.0; LETTER]);
            out.push(stamp.last(false), Pcm::mono(RATE, letters.collect()));
            let _ = i;
        }
        Ok(())
    }
}

impl Make for Tone {
    const NAME: &'static str = "test.tone";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("speaks letters")
            .input(Port::new("in", Kind::of(Medium::Text), "text"))
            .output(Port::new("out", Kind::mono(RATE), "its letters"))
            .example("x: { use: test.tone, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Tone))
    }
}

/// Says of each second of audio how loud it was.
#[derive(Default)]
pub struct Count(Vec<f32>, usize);

impl Count {
    fn tell(&mut self, stamp: &Stamp, out: &mut Emit<Arc<str>>) {
        let from = omni_flow::MediaTime::from_millis(self.1 as i64 * 1000);
        let len = omni_flow::MediaTime::from_millis((self.0.len() * 1000 / RATE as usize) as i64);
        let peak = self.0.iter().fold(0.0_f32, |m, s| m.max(s.abs()));
        out.push(stamp.child(from, len).last(true), format!("{} {:.1}", self.1, peak).into());
        self.1 += 1;
        self.0.clear();
    }
}

impl Step for Count {
    type In = Pcm;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, x: Pcm, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        self.0.extend_from_slice(&x.f32());
        if self.0.len() >= RATE as usize {
            self.tell(stamp, out);
        }
        Ok(())
    }
    fn end(&mut self, stamp: &Stamp, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        if !self.0.is_empty() {
            self.tell(stamp, out);
        }
        Ok(())
    }
}

impl Make for Count {
    const NAME: &'static str = "test.count";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("counts seconds")
            .input(Port::new("in", Kind::mono(RATE), "audio"))
            .output(Port::new("out", Kind::of(Medium::Text), "seconds"))
            .example("x: { use: test.count, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(Count::default))
    }
}

/// Answers a prompt: its last words again; calls a tool at "call", badly at "miscall"; fails at "unreachable".
pub struct Talker;

impl Node for Talker {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Signal>("in")?;
        let mut text = cx.output::<Arc<str>>("text")?;
        let mut calls = cx.output::<Signal>("calls")?;
        loop {
            match input.next().await {
                Event::Data(stamp, Signal::Named { data, .. }) => {
                    let prompt: serde_json::Value = serde_json::from_str(&data)?;
                    let last = prompt["messages"].as_array().and_then(|l| l.last()).cloned().unwrap_or_default();
                    let words = last["content"].as_str().unwrap_or_default().to_owned();
                    let event = |name: &str, data: serde_json::Value| Signal::Named {
                        name: name.into(),
                        data: data.to_string().into(),
                    };
                    for word in words.split_whitespace() {
                        let told = match word {
                            "unreachable" => Some((
                                "chat.failed",
                                serde_json::json!({"code": "unreachable", "message": "nobody there"}),
                            )),
                            "call" => Some((
                                "chat.call",
                                serde_json::json!({"index": 0, "call_id": "c1", "name": "light", "arguments": "{\"on\":1}", "done": true}),
                            )),
                            "miscall" => Some((
                                "chat.call",
                                serde_json::json!({"index": 0, "arguments": "{on", "done": true, "error": "no JSON"}),
                            )),
                            _ => None,
                        };
                        match told {
                            Some((name, data)) => drop(calls.send(&stamp, event(name, data)).await),
                            None => drop(text.send(&stamp, format!("{word} ").into()).await),
                        }
                    }
                    let most = prompt["max_tokens"].as_u64();
                    let reason = if most == Some(1) {
                        "length"
                    } else if words.contains("call") {
                        "tool_calls"
                    } else {
                        "stop"
                    };
                    let usage = serde_json::json!({"prompt_tokens": 7, "cached_tokens": 2, "completion_tokens": 3});
                    let done = serde_json::json!({"finish_reason": reason, "usage": usage});
                    calls.send(&stamp, event("chat.done", done)).await;
                }
                Event::Data(..) | Event::Fence(_) => {}
                Event::End(_) => return Ok(()),
            }
        }
    }
}

impl Make for Talker {
    const NAME: &'static str = "test.chat";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("answers")
            .input(Port::new("in", Kind::of(Medium::Signal), "prompts"))
            .output(Port::new("text", Kind::of(Medium::Text), "the answer"))
            .output(Port::new("calls", Kind::of(Medium::Signal), "calls and the end"))
            .example("x: { use: test.chat, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Talker))
    }
}
