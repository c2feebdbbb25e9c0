//! The node type `scripted.duplex`.
//!
//! It hears on `audio` (a last chunk commits the turn) and is asked on `ask`, and goes on hearing while it speaks, also
//! while nobody takes what it says. Signals that it takes: `answer.begin` with JSON `instructions`, `voice` and `turn`,
//! all of which may be left out, begins the answer to what was committed, and so does `chat.prompt`, whose turns are counted;
//! `chat.context` gives `instructions` and `voice` for answers that nobody asks for; `answer.end` ends the answer that is
//! under way. Where the model decides turns, a commit begins an answer too; and so it does where nothing feeds `ask`. If
//! nobody ever asked or committed, the end of the input is a commit that is answered.
//!
//! What it gives answers what began it, under its epochs. Positions begin at 0 with each answer; a piece of a cumulative
//! answer stands at 0 and holds all so far. Signals on `events`, with JSON: `unit` (`units`, `steps`, `samples` heard so far;
//! steps at once are told at once), `answer.started` (`turn`, `chunks`, `rate`, `text`, `text_mode`, `audio_mode`),
//! `unit.needed` (`turn`: the next chunk waits for a unit of input), `answer.done` (`turn`, `chunks` made), `listen` (`turn`),
//! `failed` (`turn`, `chunk`: no more comes of that answer, not even its last chunk).
//!
//! A fence of its lane ends an answer at once. With `after_cancel_ms` it goes on for that long, and begins nothing else;
//! what it gives is stale.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use omni_flow::{
    Body, BuildCx, BuildError, Chunk, Ctx, Event, Item, Kind, Lane, Make, MediaTime, Medium, Mono, Node, NodeError,
    Opt, OptionError, Out, Pcm, Port, Schema, Sent, Signal, Stamp, Terminal,
};
use serde_json::json;

use super::{Ask, Begun, HEARD_RATE, Level, Made, Partner, ScriptedConfig, Speech, TONE_RATE, Words};

/// The node type `scripted.duplex`.
pub struct ScriptedDuplex;

/// Questions and commits that may wait; what is more is dropped.
const MOST_WAITING: usize = 64;

impl Make for ScriptedDuplex {
    const NAME: &'static str = "scripted.duplex";
    type Config = ScriptedConfig;
    fn schema() -> Schema {
        let signal = Kind::of(Medium::Signal);
        Schema::new("A conversation partner by script: hears, and answers the same each time, without a model")
            .input(Port::new("audio", Kind::mono(HEARD_RATE), "what the user says; a last chunk commits the turn"))
            .input(Port::new("ask", signal.clone(), "questions of a client: `chat.prompt`, `answer.begin`").optional())
            .output(Port::new("audio", Kind::mono(TONE_RATE), "a tone, or with `echo` what was heard").segments())
            .output(Port::new("text", Kind::of(Medium::Text), "the words of each chunk").segments().optional())
            .output(
                Port::new("events", signal, "unit, answer.started, unit.needed, answer.done, listen, failed").optional(),
            )
            .option(Opt::new(
                "level",
                "turn_based_duplex|model_native_duplex",
                "turn_based_duplex",
                "who decides turns: the client or the model",
            ))
            .option(Opt::new("unit-ms", "integer", "1000", "input of a model step, ms; a part of it starts none"))
            .option(Opt::maybe("capabilities", "map", "capability flags that a server tells its clients"))
            .option(Opt::maybe(
                "answers",
                "list",
                "one entry per turn, the last repeats: `chunks`, `chunk_ms`, `text`, `text_mode`, `audio_mode`, `echo`, \
                 `step_ms`, `listen`, `fail_at`, `after_cancel_ms`, `silence_units`, `after_units`",
            ))
            .example("partner: { use: scripted.duplex, lane: reply, in: { audio: mic, ask: ask } }")
    }
    fn refine(config: &ScriptedConfig, schema: &mut Schema) -> Result<(), OptionError> {
        config.check()?;
        let echoes = config.answers.iter().filter(|a| a.echo).count();
        let out = &mut schema.outputs[0];
        out.kind.rate = match echoes {
            0 => Some(TONE_RATE),
            n if n == config.answers.len() => Some(HEARD_RATE),
            _ => None,
        };
        let longest = config.answers.iter().map(|a| a.chunk_ms).max().unwrap_or_default();
        out.longest = MediaTime::from_millis(i64::from(longest));
        schema.fact("implementation_level", serde_json::to_value(config.level).unwrap_or_default());
        schema.fact("chunk_period_ms", config.unit_ms);
        for (name, value) in config.flags() {
            schema.fact(&name, value);
        }
        Ok(())
    }
    fn build(config: &ScriptedConfig, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.clone();
        Ok(Body::node(move || Scripted { config: config.clone() }))
    }
}

struct Scripted {
    config: ScriptedConfig,
}

/// Something on its way out.
enum Given {
    Audio(Pcm),
    Text(Arc<str>),
    Event(Signal),
    /// Units were heard; how many, is said as it leaves.
    Units,
}

struct Talk {
    stamp: Stamp,
    speech: Box<Speech>,
    /// When the next chunk is made; `None` while the last one has not left.
    due: Option<Mono>,
    /// Units heard when the last chunk was made.
    units: u64,
    asked_for_unit: bool,
    /// Until when it goes on after its cancel.
    until: Option<Mono>,
}

struct Running {
    partner: Partner,
    audio: Out<Pcm>,
    text: Out<Arc<str>>,
    events: Out<Signal>,
    outbox: VecDeque<(Stamp, Given)>,
    asks: VecDeque<(Stamp, Ask)>,
    /// Commits that are answered unasked.
    commits: VecDeque<Stamp>,
    by_itself: bool,
    /// A client has asked or committed: it says what is answered.
    led: bool,
    /// What answers that nobody asks for may depend on.
    context: Ask,
    talk: Option<Talk>,
    last: Stamp,
}

impl Node for Scripted {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut audio = cx.input::<Pcm>("audio")?;
        let mut ask = cx.optional_input::<Signal>("ask");
        let partner = Partner::new(self.config);
        let mut me = Running {
            by_itself: ask.is_none() || partner.level() == Level::ModelNativeDuplex,
            partner,
            audio: cx.output("audio")?,
            text: cx.output("text")?,
            events: cx.output("events")?,
            outbox: VecDeque::new(),
            asks: VecDeque::new(),
            commits: VecDeque::new(),
            led: false,
            context: Ask::default(),
            talk: None,
            last: cx.arrival(),
        };
        let (clock, lane) = (cx.clock().clone(), cx.lane());
        let mut hears = true;
        loop {
            let over = !hears && ask.is_none();
            if over && !me.goes_on() {
                return Ok(());
            }
            let wake = me.wake(clock.now(), hears);
            let begins = me.talk.is_none() && me.outbox.is_empty() && me.may_begin();
            tokio::select! {
                biased;
                _ = cx.fenced(), if lane != Lane::MAIN => me.fenced(clock.now(), |s| cx.is_stale(s)),
                event = audio.next(), if hears => match event {
                    Event::Data(stamp, pcm) => me.hear(stamp, &pcm),
                    Event::Fence(_) => {}
                    Event::End(Terminal::End) => hears = false,
                    Event::End(Terminal::Error(e)) => return Err(e.into()),
                },
                event = next(&mut ask), if ask.is_some() => match event {
                    Event::Data(stamp, signal) => me.asked(stamp, &signal, cx.path()),
                    Event::Fence(_) => {}
                    Event::End(Terminal::End) => ask = None,
                    Event::End(Terminal::Error(e)) => return Err(e.into()),
                },
                // Only when all that was sent before a question has been heard, and not merely left for the next poll.
                () = tokio::task::coop::consume_budget(), if begins => me.begin(|s| cx.is_stale(s))?,
                sent = me.deliver(), if !me.outbox.is_empty() => {
                    me.outbox.pop_front();
                    if sent == Sent::Gone {
                        return Ok(());
                    }
                }
                () = clock.sleep_until(wake.unwrap_or_default()), if wake.is_some() => me.make(clock.now(), hears)?,
            }
            if !hears && ask.is_none() && !me.led && me.partner.fresh() && me.commits.is_empty() {
                me.partner.commit();
                me.by_itself = true;
                me.commits.push_back(me.last);
            }
        }
    }
}

async fn next(ask: &mut Option<omni_flow::In<Signal>>) -> Event<Signal> {
    match ask {
        Some(ask) => ask.next().await,
        None => std::future::pending().await,
    }
}

impl Running {
    fn goes_on(&self) -> bool {
        self.talk.is_some() || !self.outbox.is_empty() || self.may_begin()
    }
    fn may_begin(&self) -> bool {
        !self.asks.is_empty() || (self.by_itself && !self.commits.is_empty())
    }
    fn event(&mut self, stamp: &Stamp, signal: Signal) {
        self.outbox.push_back((stamp.child(stamp.pts, MediaTime::ZERO), Given::Event(signal)));
    }

    fn hear(&mut self, stamp: Stamp, pcm: &Pcm) {
        self.last = stamp;
        let before = self.partner.units();
        let begins = self.partner.hear(&pcm.f32(), stamp.last);
        if self.partner.units() > before {
            // Those that nobody has taken yet are told with these.
            self.outbox.retain(|(_, g)| !matches!(g, Given::Units));
            self.outbox.push_back((stamp.child(stamp.pts, MediaTime::ZERO), Given::Units));
        }
        if stamp.last {
            self.led = true;
            self.partner.commit();
        }
        if (stamp.last || begins) && self.by_itself && self.commits.len() < MOST_WAITING {
            self.commits.push_back(stamp);
        }
    }
    fn asked(&mut self, stamp: Stamp, signal: &Signal, node: &str) {
        let prompt = || signal.read::<Ask>("chat.prompt").map(|read| read.map(|ask| Ask { turn: None, ..ask }));
        if let Some(read) = signal.read::<Ask>("answer.begin").or_else(prompt) {
            self.led = true;
            match read {
                Ok(ask) if self.asks.len() < MOST_WAITING => self.asks.push_back((stamp, ask)),
                Ok(_) => tracing::warn!(node, "too many questions wait: one is dropped"),
                Err(e) => tracing::warn!(node, error = %e, "a question that cannot be read is dropped"),
            }
        } else if let Some(read) = signal.read::<Ask>("chat.context") {
            match read {
                Ok(ask) => self.context = Ask { turn: None, ..ask },
                Err(e) => tracing::warn!(node, error = %e, "a context that cannot be read is dropped"),
            }
        } else if matches!(signal, Signal::Named { name, .. } if &**name == "answer.end")
            && let Some(talk) = &mut self.talk
        {
            talk.speech.cut();
        }
    }
    fn fenced(&mut self, now: Mono, stale: impl Fn(&Stamp) -> bool) {
        self.asks.retain(|a| !stale(&a.0));
        self.commits.retain(|c| !stale(c));
        if let Some(talk) = self.talk.as_mut().filter(|t| stale(&t.stamp)) {
            match talk.speech.answer().after_cancel_ms {
                0 => self.talk = None,
                ms => {
                    talk.until.get_or_insert(now.plus(Duration::from_millis(ms.into())));
                }
            }
        }
    }
    fn begin(&mut self, stale: impl Fn(&Stamp) -> bool) -> Result<(), NodeError> {
        let (stamp, ask) = match self.asks.pop_front() {
            Some(asked) => asked,
            None => match self.commits.pop_front() {
                Some(stamp) => (stamp, self.context.clone()),
                None => return Ok(()),
            },
        };
        if stale(&stamp) {
            return Ok(());
        }
        match self.partner.begin(&ask) {
            Begun::Listen { turn } => self.event(&stamp, Signal::named("listen", &json!({ "turn": turn }))?),
            Begun::Speak(speech) => {
                let a = speech.answer();
                let started = json!({
                    "turn": speech.turn(), "chunks": speech.total(), "rate": speech.rate(), "text": a.text != Words::None,
                    "text_mode": a.text_mode, "audio_mode": a.audio_mode,
                });
                self.event(&stamp, Signal::named("answer.started", &started)?);
                let units = self.partner.units();
                self.talk = Some(Talk { stamp, speech, due: None, units, asked_for_unit: false, until: None });
            }
        }
        Ok(())
    }
    /// When something is to be done by the clock.
    fn wake(&mut self, now: Mono, hears: bool) -> Option<Mono> {
        let units = self.partner.units();
        let idle = self.outbox.is_empty();
        let talk = self.talk.as_mut()?;
        let waits = talk.waits(units, hears);
        if idle && !waits && talk.due.is_none() {
            talk.due = Some(now.plus(Duration::from_millis(talk.speech.answer().step_ms.into())));
        }
        // What is asked for is asked for at once.
        let ask = (idle && waits && !talk.asked_for_unit).then_some(now);
        let due = talk.due.filter(|_| idle && !waits).or(ask);
        match (due, talk.until) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    /// Does what is due.
    fn make(&mut self, now: Mono, hears: bool) -> Result<(), NodeError> {
        let units = self.partner.units();
        let Some(talk) = &mut self.talk else { return Ok(()) };
        let (stamp, turn, rate) = (talk.stamp, talk.speech.turn(), talk.speech.rate());
        if talk.until.is_some_and(|t| now >= t) {
            self.talk = None;
            return Ok(());
        }
        if talk.waits(units, hears) {
            talk.asked_for_unit = true;
            self.event(&stamp, Signal::named("unit.needed", &json!({ "turn": turn }))?);
            return Ok(());
        }
        (talk.due, talk.units, talk.asked_for_unit) = (None, units, false);
        match self.partner.next(&mut talk.speech) {
            Made::Failed { number } => {
                self.talk = None;
                self.event(&stamp, Signal::named("failed", &json!({ "turn": turn, "chunk": number }))?);
            }
            Made::Chunk { number, text, from, audio, last } => {
                let pts = MediaTime::from_samples(from, rate);
                let cumulative = talk.speech.answer().text_mode == super::Pieces::Cumulative;
                if let Some(text) = text.filter(|t| last || cumulative || !t.is_empty()) {
                    let at = if cumulative { MediaTime::ZERO } else { pts };
                    self.outbox.push_back((stamp.child(at, MediaTime::ZERO).last(last), Given::Text(text.into())));
                }
                let pcm = Pcm::mono(rate, audio);
                self.outbox.push_back((stamp.child(pts, pcm.len()).last(last), Given::Audio(pcm)));
                if last {
                    self.talk = None;
                    self.event(&stamp, Signal::named("answer.done", &json!({ "turn": turn, "chunks": number + 1 }))?);
                }
            }
        }
        Ok(())
    }
    /// Gives the first of the outbox, when there is room for it. It stays there.
    ///
    /// # Cancel safety
    /// Dropped while waiting, it was not given.
    async fn deliver(&mut self) -> Sent {
        let Some((stamp, given)) = self.outbox.front() else { return Sent::Queued };
        match given {
            Given::Audio(pcm) => give(&mut self.audio, stamp, pcm.clone()).await,
            Given::Text(text) => unless_gone(give(&mut self.text, stamp, text.clone()).await),
            Given::Event(signal) => unless_gone(give(&mut self.events, stamp, signal.clone()).await),
            Given::Units => {
                let units = self.partner.units();
                let data = json!({ "units": units, "steps": units, "samples": self.partner.samples() });
                let signal = Signal::Named { name: "unit".into(), data: data.to_string().into() };
                unless_gone(give(&mut self.events, stamp, signal).await)
            }
        }
    }
}

impl Talk {
    /// True if the next chunk waits for a unit of input that can still come.
    fn waits(&self, units: u64, hears: bool) -> bool {
        hears && self.speech.needs_unit() && units <= self.units
    }
}

async fn give<T: Item + Clone>(out: &mut Out<T>, stamp: &Stamp, value: T) -> Sent {
    let amount = Chunk { stamp: *stamp, payload: value.clone().into_payload() }.amount();
    match out.reserve(stamp, amount).await {
        Ok(permit) => permit.send(stamp, value),
        // Given all the same: the edge drops it at once, and counts it.
        Err(Sent::Stale) => out.send(stamp, value).await,
        Err(stop) => stop,
    }
}

/// Words and events may go unread; the partner speaks on.
fn unless_gone(sent: Sent) -> Sent {
    if sent == Sent::Gone { Sent::Queued } else { sent }
}
