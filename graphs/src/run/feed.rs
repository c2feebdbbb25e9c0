//! Feeds an input: audio at its own pace on a media clock, never in a burst; text as soon as the graph takes it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use omni_flow::{Clock, Input, Mono, Sent};
use tokio::sync::mpsc;

use super::source::Item;
use super::stop::Stop;
use super::timing::Ear;

/// Lateness that is made up for; a longer one moves the media clock, so that no burst follows a stall.
const SLACK: Duration = Duration::from_millis(20);

/// When the chunks of a recording are due: each as its last sample has been heard, as from a microphone.
#[derive(Debug)]
pub struct Pace {
    base: Mono,
    played: Duration,
}

impl Pace {
    /// A recording that begins at `now`.
    pub fn new(now: Mono) -> Self {
        Self { base: now, played: Duration::ZERO }
    }
    /// When a chunk of `len` is due.
    pub fn next(&mut self, len: Duration) -> Mono {
        self.played += len;
        self.base.plus(self.played)
    }
    /// The last chunk has been taken at `now`.
    pub fn taken(&mut self, now: Mono) {
        let late = now.since(self.base.plus(self.played));
        if late > SLACK {
            self.base = self.base.plus(late);
        }
    }
}

/// What a feeder works with.
pub struct Feeder {
    pub input: Input,
    pub items: mpsc::Receiver<anyhow::Result<Item>>,
    /// Whether audio is fed at its own pace.
    pub paced: bool,
    pub clock: Clock,
    /// The clock of speech, if this is the input that is listened to.
    pub ear: Option<Arc<Mutex<Ear>>>,
    pub stop: Stop,
}

impl Feeder {
    /// Feeds until the source or the graph ends, or the user stops; then the input ends and what is under way comes out.
    ///
    /// # Errors
    /// The source cannot be read further, or does not fit the input.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let mut pace = Pace::new(self.clock.now());
        let stop = self.stop.clone();
        let asked = stop.asked(1);
        tokio::pin!(asked);
        loop {
            let next = tokio::select! {
                biased;
                () = &mut asked => break,
                item = self.items.recv() => item,
            };
            let Some(item) = next else { break };
            let done = tokio::select! {
                biased;
                () = &mut asked => break,
                done = self.give(item?, &mut pace) => done?,
            };
            if done == Sent::Gone {
                break;
            }
        }
        self.input.end();
        Ok(())
    }

    async fn give(&mut self, item: Item, pace: &mut Pace) -> anyhow::Result<Sent> {
        match item {
            Item::Text(text) => {
                let text: Arc<str> = text.into();
                self.input.send_last(text).await.context("the text does not fit the input")
            }
            Item::Audio(pcm, samples) => {
                if self.paced {
                    let due = pace.next(pcm.len().to_duration());
                    self.clock.sleep_until(due).await;
                }
                // Taken down before the chunk leaves: its answer may be there before this task runs again.
                if let Some(ear) = &self.ear {
                    ear.lock().unwrap_or_else(PoisonError::into_inner).chunk(&samples, self.clock.now());
                }
                let sent = self.input.send(pcm).await.context("the audio does not fit the input")?;
                pace.taken(self.clock.now());
                Ok(sent)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Duration = Duration::from_millis(20);

    #[test]
    fn chunks_are_due_when_they_have_been_heard() {
        let mut p = Pace::new(Mono(0));
        for i in 1..1000u64 {
            let due = p.next(FRAME);
            assert_eq!(due, Mono(i * 20_000_000));
            // A little late each time: made up for.
            p.taken(due.plus(Duration::from_millis(5)));
        }
    }
    #[test]
    fn no_burst_follows_a_stall() {
        let mut p = Pace::new(Mono(0));
        let due = p.next(FRAME);
        p.taken(due.plus(Duration::from_secs(3)));
        let next = p.next(FRAME);
        assert_eq!(next.since(due), Duration::from_secs(3) + FRAME, "the clock has moved with the stall");
        p.taken(next);
        assert_eq!(p.next(FRAME).since(next), FRAME);
    }
}
