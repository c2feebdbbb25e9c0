//! What the user says: a recording at its own pace, or a microphone, as commands of a client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use omni_flow::{Clock, Kind, Mono};
use omni_flow_transports::client::{Command, Commands};
use tokio::io::AsyncReadExt as _;

use super::device::{Device, RATE};
use crate::run::ends::Given;
use crate::run::feed::Pace;
use crate::run::source::{CHUNK_MS, Item, Source};
use crate::run::timing::Ear;

/// Samples of a frame.
const FRAME: usize = (RATE * CHUNK_MS / 1000) as usize;

/// Where speech comes from.
pub enum Voice {
    Recording(Source),
    Microphone(Device),
}

impl Voice {
    /// A recording, opened.
    ///
    /// # Errors
    /// It cannot be read; the message names it.
    pub fn recording(path: &std::path::Path) -> anyhow::Result<Self> {
        Source::open(&Kind::mono(RATE), Given::File(path.to_owned())).map(Self::Recording)
    }
}

/// Says things to a session, and knows when they were said.
#[derive(Clone)]
pub struct Mouth {
    commands: Commands,
    clock: Clock,
    ear: Arc<Mutex<Ear>>,
}

impl Mouth {
    pub fn new(commands: Commands, clock: Clock) -> Self {
        Self { commands, clock, ear: Arc::new(Mutex::new(Ear::new(RATE, 1))) }
    }
    /// When the speech ended that was over by now; `None` if there was none.
    pub fn spoken(&self, now: Mono) -> Option<Mono> {
        self.ear.lock().unwrap_or_else(PoisonError::into_inner).speech_end(now)
    }
    async fn say(&self, samples: &[f32]) -> anyhow::Result<()> {
        let pcm: Vec<i16> = samples.iter().map(|s| (s * 32768.0).round().clamp(-32768.0, 32767.0) as i16).collect();
        self.ear.lock().unwrap_or_else(PoisonError::into_inner).chunk(samples, self.clock.now());
        Ok(self.commands.send(Command::append_pcm16(&pcm)).await?)
    }
    /// Speaks until the recording ends; a microphone does not.
    ///
    /// # Errors
    /// The recording cannot be read further, the microphone ended, or the connection did.
    pub async fn speak(self, voice: Voice) -> anyhow::Result<()> {
        match voice {
            Voice::Recording(source) => {
                let mut items = source.start()?;
                let mut pace = Pace::new(self.clock.now());
                while let Some(item) = items.recv().await {
                    let Item::Audio(pcm, samples) = item? else { continue };
                    let frames = pcm.frames() as u64;
                    self.clock
                        .sleep_until(pace.next(Duration::from_nanos(frames * 1_000_000_000 / u64::from(RATE))))
                        .await;
                    self.say(&samples).await?;
                    pace.taken(self.clock.now());
                }
                Ok(())
            }
            Voice::Microphone(device) => {
                let mut child = device.record()?;
                let mut out = child.stdout.take().context("the microphone has no output")?;
                let mut frame = vec![0; FRAME * 2];
                loop {
                    if out.read_exact(&mut frame).await.is_err() {
                        let status = child.wait().await.context("the microphone ended")?;
                        bail!("the microphone ended ({status}); is one there, and may it be used?");
                    }
                    let samples: Vec<f32> =
                        frame.as_chunks::<2>().0.iter().map(|b| f32::from(i16::from_le_bytes(*b)) / 32768.0).collect();
                    self.say(&samples).await?;
                }
            }
        }
    }
    /// Says nothing, at its own pace, as a microphone does in a quiet room: who finds turns has to hear their end.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn listen(self) -> anyhow::Result<()> {
        let silence = vec![0.0; FRAME];
        let mut pace = Pace::new(self.clock.now());
        loop {
            self.clock.sleep_until(pace.next(Duration::from_millis(CHUNK_MS.into()))).await;
            self.say(&silence).await?;
            pace.taken(self.clock.now());
        }
    }
}
