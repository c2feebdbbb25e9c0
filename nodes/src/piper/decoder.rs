//! The second half of a voice, for one stream: latents in any pieces → audio that joins exactly.
//!
//! Promises that the joined audio equals one decode of the whole segment, sample for sample, however the latents
//! arrive: each piece is decoded with the frames around it that it depends on, and only its own samples are kept.
//! A segment is one sentence; nothing is remembered over its end. Memory is the latents not yet spoken and one
//! context; the caller bounds how much it pushes. One [`step`](Decoder::step) is one unit of work.

use std::sync::Arc;

use super::talker::TalkError;
use super::voice::Voice;

/// How much audio one step makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Frames of the first piece of a segment at most: small, since a listener waits for it.
    pub first: usize,
    /// Frames of later pieces at most. Larger is cheaper: each piece costs its frames and two contexts.
    pub size: usize,
    /// Frames to wait for before a piece is made while the segment is open.
    pub least: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { first: 22, size: 64, least: 8 }
    }
}

/// Decoder state of one stream.
pub struct Decoder {
    voice: Arc<Voice>,
    window: Window,
    speaker: u32,
    width: usize,
    /// Frames from `base` on, frame-major.
    rows: Vec<f32>,
    /// Number in the segment of the first frame held.
    base: usize,
    /// Frames spoken in this segment.
    done: usize,
    closed: bool,
}

impl Decoder {
    /// A decoder for one stream of `voice`. Zeros in `window` count as 1.
    pub fn new(voice: Arc<Voice>, window: Window) -> Self {
        let window = Window { first: window.first.max(1), size: window.size.max(1), least: window.least.max(1) };
        Self { voice, window, speaker: 0, width: 0, rows: Vec::new(), base: 0, done: 0, closed: false }
    }

    /// Sets the speaker of a voice with several; takes effect at the next step.
    ///
    /// # Errors
    /// [`TalkError::Speaker`] if there is none of that number.
    pub fn set_speaker(&mut self, speaker: u32) -> Result<(), TalkError> {
        let speakers = self.voice.config().speakers;
        if speaker >= speakers {
            return Err(TalkError::Speaker { speaker, speakers });
        }
        self.speaker = speaker;
        Ok(())
    }

    /// Takes frames of `width` numbers each, frame-major; does no work. An empty slice is nothing. Frames pushed
    /// after [`finish`](Self::finish) and before its audio is all taken belong to no segment: take it first.
    ///
    /// # Errors
    /// [`TalkError::Width`] if the frames do not fit each other.
    pub fn push(&mut self, rows: &[f32], width: usize) -> Result<(), TalkError> {
        let same = self.width == 0 || self.width == width;
        if width == 0 || !rows.len().is_multiple_of(width) || !same {
            let width = if same { width } else { self.width };
            return Err(TalkError::Width { found: rows.len(), width });
        }
        self.width = width;
        self.rows.extend_from_slice(rows);
        Ok(())
    }

    /// Ends the segment: what is held can be spoken without waiting for more.
    pub fn finish(&mut self) {
        self.closed = true;
    }

    /// Forgets everything of the stream, as a fence asks.
    pub fn reset(&mut self) {
        (self.width, self.base, self.done, self.closed) = (0, 0, 0, false);
        self.rows.clear();
    }

    /// Frames that the next step would speak; 0 while it waits for context or has nothing.
    pub fn ready(&self) -> usize {
        let Some(held) = self.rows.len().checked_div(self.width) else { return 0 };
        let open = self.base + held - self.done;
        let most = if self.done == 0 { self.window.first } else { self.window.size };
        if self.closed {
            // A rest of a few frames would cost two contexts for itself.
            return if open <= most + self.voice.context() / 2 { open } else { most };
        }
        let safe = open.saturating_sub(self.voice.context());
        if safe < self.window.least.min(most) { 0 } else { safe.min(most) }
    }

    /// Frames held that have not been spoken.
    pub fn pending(&self) -> usize {
        self.rows.len().checked_div(self.width).map_or(0, |held| self.base + held - self.done)
    }

    /// Makes one piece of audio (mono, [`Voice::hop`] samples per frame, −1 to 1), or `None` if there is nothing to
    /// say now. After a finished segment's last piece the decoder stands at the start of the next one.
    ///
    /// # Errors
    /// [`TalkError`] if the runtime failed; the frames stay, so that the step can be tried again or reset.
    pub fn step(&mut self) -> Result<Option<Vec<f32>>, TalkError> {
        let frames = self.ready();
        if frames == 0 {
            if self.closed {
                self.reset();
            }
            return Ok(None);
        }
        let (context, width) = (self.voice.context(), self.width);
        let held = self.rows.len() / width;
        let start = self.done - self.base;
        let low = start.saturating_sub(context);
        let high = (start + frames + context).min(held);
        let keep = start - low..start - low + frames;
        let audio = self.voice.vocode(&self.rows[low * width..high * width], width, self.speaker, keep)?;
        self.done += frames;
        if self.closed && self.pending() == 0 {
            self.reset();
        } else {
            let keep = self.done.saturating_sub(context).max(self.base);
            self.rows.drain(..(keep - self.base) * width);
            self.base = keep;
        }
        Ok(Some(audio))
    }
}
