//! Node types for tests, and the shortest way from YAML to a running graph.
#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use omni_flow::*;
use serde::Deserialize;

#[derive(Deserialize)]
pub struct NoConfig {}

fn any(about: &str) -> Schema {
    Schema::new(about)
        .input(Port::new("in", Kind::of(Medium::Any), "anything"))
        .output(Port::new("out", Kind::of(Medium::Any), "the same").like("in"))
}

/// The schema of a type that takes text and gives text.
pub fn texts(about: &str) -> Schema {
    Schema::new(about).input(Port::new("in", Kind::of(Medium::Text), "text")).output(Port::new(
        "out",
        Kind::of(Medium::Text),
        "text",
    ))
}

/// A shared stage that passes text on, one unit of work per text, in which it does `act`.
pub struct OneByOne {
    pub act: fn(&str),
}
impl shared::Stage for OneByOne {
    type In = Arc<str>;
    type Out = Arc<str>;
    type Slot = Option<(Stamp, Arc<str>)>;
    fn open(&self, _: shared::SlotId) -> Result<Self::Slot, shared::StageError> {
        Ok(None)
    }
    fn slot_bytes(&self, _: &Self::Slot) -> u64 {
        0
    }
    fn accept(&self, slot: &mut Self::Slot, stamp: &Stamp, input: Arc<str>) -> Result<(), shared::StageError> {
        *slot = Some((*stamp, input));
        Ok(())
    }
    fn ready(&self, slot: &Self::Slot) -> bool {
        slot.is_some()
    }
    fn unit(&self, m: &mut shared::Member<Self>) -> Result<(), shared::StageError> {
        if let Some((stamp, text)) = m.slot().take() {
            (self.act)(&text);
            m.emit(stamp, text);
        }
        Ok(())
    }
    fn fence(&self, slot: &mut Self::Slot) {
        *slot = None;
    }
}

/// Passes everything on.
pub struct Pass;
impl Step for Pass {
    type In = Payload;
    type Out = Payload;
    fn step(&mut self, stamp: &Stamp, x: Payload, out: &mut Emit<Payload>) -> Result<(), StepError> {
        out.push(*stamp, x);
        Ok(())
    }
}
impl Make for Pass {
    const NAME: &'static str = "test.pass";
    type Config = NoConfig;
    fn schema() -> Schema {
        any("passes everything on").example("x: { use: test.pass, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Pass))
    }
}

/// Repeats each text so many times; panics at "panic", fails at "fail".
pub struct Repeat(pub usize);
#[derive(Deserialize)]
pub struct RepeatConfig {
    pub times: usize,
}
impl Step for Repeat {
    type In = Arc<str>;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, x: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        match &*x {
            "panic" => panic!("told to"),
            "fail" => return Err("told to fail".into()),
            _ => {}
        }
        for i in 0..self.0 {
            out.push(*stamp, format!("{x}{i}").into());
        }
        Ok(())
    }
    fn end(&mut self, stamp: &Stamp, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        out.push(*stamp, "flushed".into());
        Ok(())
    }
}
impl Make for Repeat {
    const NAME: &'static str = "test.repeat";
    type Config = RepeatConfig;
    fn schema() -> Schema {
        texts("repeats text")
            .option(Opt::required("times", "integer", "how often"))
            .example("x: { use: test.repeat, times: 2, in: y }")
    }
    fn build(c: &RepeatConfig, _: &BuildCx) -> Result<Body, BuildError> {
        let times = c.times;
        Ok(Body::step(move || Repeat(times)))
    }
}

/// Fences its lane at each text "!", and passes on all else under the newest epoch of that lane.
pub struct Turns;
impl Node for Turns {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Arc<str>>("in")?;
        let mut out = cx.output::<Arc<str>>("out")?;
        loop {
            match input.next().await {
                Event::Data(mut stamp, text) => {
                    if &*text == "!" {
                        cx.fence();
                        continue;
                    }
                    stamp.epochs = cx.arrival().epochs;
                    if out.send(&stamp, text).await == Sent::Gone {
                        return Ok(());
                    }
                }
                Event::Fence(_) => {}
                Event::End(Terminal::End) => return Ok(()),
                Event::End(Terminal::Error(e)) => return Err(e.into()),
            }
        }
    }
}
impl Make for Turns {
    const NAME: &'static str = "test.turns";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("fences").fences().example("x: { use: test.turns, fences: reply, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Turns))
    }
}

/// A shared stage: answers each text letter by letter, one per unit; panics at "panic".
pub struct Speller;
#[derive(Default)]
pub struct Spelling {
    text: Vec<char>,
    stamp: Stamp,
}
pub static SPELLERS: AtomicUsize = AtomicUsize::new(0);
impl Drop for Spelling {
    fn drop(&mut self) {
        SPELLERS.fetch_sub(1, Ordering::SeqCst);
    }
}
impl shared::Stage for Speller {
    type In = Arc<str>;
    type Out = Arc<str>;
    type Slot = Spelling;
    fn open(&self, _: shared::SlotId) -> Result<Spelling, shared::StageError> {
        SPELLERS.fetch_add(1, Ordering::SeqCst);
        Ok(Spelling::default())
    }
    fn slot_bytes(&self, slot: &Spelling) -> u64 {
        slot.text.len() as u64 * 4
    }
    fn accept(&self, slot: &mut Spelling, stamp: &Stamp, input: Arc<str>) -> Result<(), shared::StageError> {
        slot.text = input.chars().rev().collect();
        slot.stamp = *stamp;
        Ok(())
    }
    fn ready(&self, slot: &Spelling) -> bool {
        !slot.text.is_empty()
    }
    fn unit(&self, m: &mut shared::Member<Self>) -> Result<(), shared::StageError> {
        let Some(c) = m.slot().text.pop() else { return Ok(()) };
        assert!(c != '*', "told to");
        let stamp = m.slot().stamp;
        m.emit(stamp, c.to_string().into());
        Ok(())
    }
    fn fence(&self, slot: &mut Spelling) {
        slot.text.clear();
    }
}
impl Make for Speller {
    const NAME: &'static str = "test.speller";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("spells").shared().example("x: { use: test.speller, in: y, place: shared }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::stage(Speller))
    }
}

/// Counts from 1, for ever, as a stream.
pub struct Count;
impl Make for Count {
    const NAME: &'static str = "test.count";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("counts")
            .output(Port::new("out", Kind::of(Medium::Text), "numbers"))
            .example("x: { use: test.count }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::stream("out", |cx| {
            let stamp = cx.arrival();
            async_stream::try_stream! {
                for i in 1u64.. {
                    yield (stamp, Arc::<str>::from(i.to_string()));
                }
            }
        }))
    }
}

pub fn registry() -> Registry {
    let mut r = Registry::base();
    r.add::<Pass>().unwrap().add::<Repeat>().unwrap().add::<Turns>().unwrap();
    r.add::<Speller>().unwrap().add::<Count>().unwrap();
    r
}

pub fn plan(yaml: &str) -> Plan {
    let file = GraphFile::parse("test.yaml", yaml).unwrap_or_else(|d| panic!("{d}"));
    file.check(&registry(), &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0
}

pub async fn start(engine: &Engine, yaml: &str) -> Graph {
    engine.start(plan(yaml)).await.unwrap()
}

/// All texts until the terminal.
pub async fn collect(out: &mut In<Payload>) -> (Vec<String>, Terminal) {
    let mut got = Vec::new();
    loop {
        match out.next().await {
            Event::Data(_, Payload::Text(t)) => got.push(t.to_string()),
            Event::Data(_, p) => panic!("{p:?}"),
            Event::Fence(_) => got.push("|".to_owned()),
            Event::End(t) => return (got, t),
        }
    }
}
pub fn text(s: &str) -> Arc<str> {
    s.into()
}
