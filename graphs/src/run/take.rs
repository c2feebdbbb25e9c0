//! Takes what comes out of an output: audio to its file, text and events to the terminal, all of it to the report.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use omni_flow::{Clock, Event, In, Mono, Payload, Stamp, Terminal};
use serde_json::{Value, json};

use super::print::{self, Printer};
use super::sink::Sink;
use super::timing::Answers;
use crate::output;

/// What the takers of one session share: the terminal, and when it all began.
pub struct Screen {
    printer: Mutex<Printer>,
    json: bool,
    clock: Clock,
    start: Mono,
}

impl Screen {
    /// A screen for people, or for machines.
    pub fn new(json: bool, clock: Clock) -> Self {
        let start = clock.now();
        Self { printer: Mutex::default(), json, clock, start }
    }
    fn people(&self, f: impl FnOnce(&mut Printer) -> String) {
        if !self.json {
            // The lock is held while writing, so that lines do not mix.
            let mut printer = self.printer.lock().unwrap_or_else(PoisonError::into_inner);
            output::put(&f(&mut printer));
        }
    }
    fn machine(&self, node: &str, event: &str, more: Value) {
        if self.json {
            let t = self.clock.now().since(self.start).as_secs_f64();
            let mut all = json!({ "event": event, "output": node, "t": (t * 1e4).round() / 1e4 });
            if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
                all.extend(more);
            }
            output::json_line(&all);
        }
    }
    /// Ends an open line. If somebody is writing just now (and perhaps for ever, to a reader that stopped reading), the
    /// line is theirs: those who end a run never wait for that.
    pub fn close(&self) {
        let free = match self.printer.try_lock() {
            Ok(printer) => Some(printer),
            Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let rest = free.map(|mut printer| printer.close()).unwrap_or_default();
        if !self.json && !rest.is_empty() {
            output::last(rest);
        }
    }
}

/// What a taker works with.
pub struct Taker {
    pub node: String,
    pub output: In<Payload>,
    pub sink: Option<Sink>,
    pub screen: Arc<Screen>,
}

/// What came out of one output.
pub struct Taken {
    pub node: String,
    pub answers: Answers,
    /// Chunks of kinds that are neither printed nor written.
    pub other: u64,
    pub text: bool,
}

impl Taker {
    /// Takes until the output ends. How the session ended is the session's to say.
    ///
    /// # Errors
    /// The file cannot be written further.
    pub async fn run(mut self) -> anyhow::Result<Taken> {
        let mut taken =
            Taken { node: self.node.clone(), answers: Answers::default(), other: 0, text: self.sink.is_none() };
        loop {
            match self.output.next().await {
                Event::Data(stamp, payload) => self.chunk(&stamp, payload, &mut taken)?,
                Event::Fence(epoch) => {
                    taken.answers.fence(self.screen.clock.now());
                    self.screen.people(|p| p.fence(print::label(&self.node)));
                    self.screen.machine(&self.node, "fence", json!({ "epoch": epoch.0 }));
                }
                Event::End(end) => {
                    if let Terminal::Error(e) = end {
                        tracing::debug!(output = self.node, error = %e, "the output ended in error");
                    }
                    break;
                }
            }
        }
        if let Some(sink) = self.sink {
            sink.finish()?;
        }
        Ok(taken)
    }

    fn chunk(&mut self, stamp: &Stamp, payload: Payload, taken: &mut Taken) -> anyhow::Result<()> {
        let (label, screen) = (print::label(&self.node), &self.screen);
        let now = screen.clock.now();
        match payload {
            // Nothing to hear: the end of an answer whose audio has left, or in which nothing can be spoken.
            Payload::Audio(pcm) if pcm.is_empty() => {}
            Payload::Audio(pcm) => {
                let known = taken.answers.all().len();
                taken.answers.chunk(stamp, pcm.len(), now);
                if taken.answers.all().len() > known {
                    screen.machine(&self.node, "audio", json!({ "answer": known + 1, "rate": pcm.rate() }));
                }
                if let Some(sink) = &mut self.sink {
                    // A few KiB into the page cache: not worth a thread.
                    sink.write(&pcm)?;
                }
            }
            Payload::Text(text) => {
                if !text.trim().is_empty() {
                    taken.answers.chunk(stamp, omni_flow::MediaTime::ZERO, now);
                }
                screen.people(|p| p.text(label, &text, stamp.last));
                screen.machine(&self.node, "text", json!({ "text": *text, "last": stamp.last }));
            }
            Payload::Signal(s) => {
                screen.people(|p| p.line(&format!("{label}: {}", print::signal(&s))));
                screen.machine(&self.node, "signal", json!({ "signal": print::signal_json(&s) }));
            }
            other => {
                taken.other += 1;
                if taken.other == 1 {
                    let medium = other.medium().name();
                    screen.people(|p| p.line(&format!("{label}: {medium} is counted, not shown")));
                }
            }
        }
        Ok(())
    }
}
