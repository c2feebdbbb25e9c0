//! A speech being made: text goes in, audio comes out piece by piece.

use omni_flow::{Input, Payload, Signal};

use super::request::{Mode, Speak};
use super::usage::Usage;
use crate::api::Shared;
use crate::api::audio::{Shape, clip as encode};
use crate::api::job::Job;
use crate::api::run::{Fail, Role, Run, too_long};
use crate::door::HttpError;

/// The session of one speech. Dropped, it is aborted.
pub(in crate::api) struct Making {
    run: Run,
    shape: Shape,
    ended: bool,
    /// Samples per channel that may still come.
    room: u64,
    seconds: u32,
}

/// A whole clip.
pub(in crate::api) struct Clip {
    pub(in crate::api) file: Vec<u8>,
    pub(in crate::api) usage: Usage,
}

impl Making {
    /// Opens a session and gives it the text.
    ///
    /// # Errors
    /// As [`Run::open`].
    pub(in crate::api) fn start(api: &Shared, speak: &Speak) -> Result<Self, HttpError> {
        let Some(ends) = &api.ends.speech else { return Err(HttpError::not_bound("Speech API")) };
        let limits = &api.config.limits;
        let mut run = Run::open(&api.graph, &api.clock, limits.output_wait, &[(Some(&ends.speaker), Role::Audio)])?;
        let mut text = run.input(&ends.text)?;
        let request: Option<Input> = ends.request.as_ref().map(|n| run.input(n)).transpose()?;
        let (said, told) = (speak.input.clone(), speak.signal.clone());
        run.feed(async move {
            if let Some(mut request) = request {
                let _ = request.send(Signal::Named { name: "speech.request".into(), data: told.into() }).await;
                request.end();
            }
            // Whatever became of it, the outputs tell.
            let _ = text.send_last(Payload::Text(said.into())).await;
            text.end();
        });
        // A stream is not held.
        let seconds = if speak.mode == Mode::Whole { limits.clip_seconds } else { u32::MAX };
        Ok(Self { run, shape: Shape::new(speak.rate), ended: false, room: u64::from(seconds), seconds })
    }
    /// Rate and channels, once the first audio has come.
    pub(in crate::api) fn spec(&self) -> Option<(u32, u16)> {
        self.shape.spec()
    }
    /// More samples, never none of them; `None` at the end.
    ///
    /// # Errors
    /// [`Fail`]; final.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub(in crate::api) async fn next(&mut self) -> Result<Option<Vec<f32>>, Fail> {
        let mut out = Vec::new();
        while !self.ended {
            match self.run.next().await? {
                Some((Role::Audio, _, Payload::Audio(pcm))) => {
                    if self.shape.spec().is_none() {
                        self.room *= u64::from(pcm.rate());
                    }
                    self.room = self.room.checked_sub(pcm.frames() as u64).ok_or_else(|| too_long(self.seconds))?;
                    self.shape.push(&pcm, &mut out)?;
                }
                Some(_) => {}
                None => {
                    self.ended = true;
                    self.shape.finish(&mut out);
                }
            }
            if !out.is_empty() {
                return Ok(Some(out));
            }
        }
        Ok(None)
    }
}

/// All of it, as a file.
///
/// # Errors
/// [`Fail`].
pub(in crate::api) async fn clip(speak: &Speak, mut making: Making, job: &mut Job) -> Result<Clip, Fail> {
    let mut samples = Vec::new();
    while let Some(more) = making.next().await? {
        samples.extend(more);
    }
    let spec = making.spec().filter(|_| !samples.is_empty()).ok_or(Fail::NoAudio)?;
    drop(making);
    let (file, frames) = encode(speak.format, samples, spec, speak.speed).await?;
    job.frames(frames, spec.0);
    Ok(Clip { file, usage: Usage::of(speak, frames, spec.0) })
}
