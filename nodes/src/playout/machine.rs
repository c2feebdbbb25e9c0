//! The jitter buffer: audio in by segments, frames out by media time.
//!
//! Playing starts once the lead is there (or the segment has ended), frames leave on the grid of [`Pace`], and when the
//! buffer runs dry within a segment the wait is counted as an underrun and the grid moves by it. A fence drops what has
//! not left and says how much was played.

use super::{Pace, Underruns};
use omni_flow::{MediaTime, Mono};
use std::collections::VecDeque;
use std::time::Duration;
use thiserror::Error;

/// Segment ends that may wait to be played.
const MOST_ENDS: usize = 1024;

/// Settings of a playout. Mono audio; times are rounded down to samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayoutConfig {
    /// Sample rate, Hz.
    pub rate: u32,
    /// Length of a frame; default 20 ms.
    pub frame: Duration,
    /// Audio that must be there before an answer starts; default 60 ms, ours. At most `capacity`.
    pub lead: Duration,
    /// Audio that must be there before playing goes on after an underrun; default none beyond one frame.
    pub rebuffer: Duration,
    /// The most audio held; default 200 ms, the span of an edge into a player.
    pub capacity: Duration,
    /// Fill the short last frame of an answer with zeros; else it leaves short. Default false.
    pub pad_last: bool,
}

impl PlayoutConfig {
    /// The defaults at `rate` Hz.
    pub const fn new(rate: u32) -> Self {
        Self {
            rate,
            frame: Duration::from_millis(20),
            lead: Duration::from_millis(60),
            rebuffer: Duration::ZERO,
            capacity: Duration::from_millis(200),
            pad_last: false,
        }
    }
}

/// What a playout refuses; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlayoutError {
    /// The rate is zero or a frame holds no sample or more than a second.
    #[error("a playout needs a rate of 1 to 768000 Hz and frames of one sample up to one second")]
    BadFormat,
    /// The buffer is smaller than the lead, the rebuffering or one frame, or larger than an hour.
    #[error("the capacity must hold the lead, the rebuffer and one frame, and be at most one hour")]
    BadCapacity,
    /// No room; take frames first.
    #[error("the playout has room for {room} samples: wait until frames have left")]
    Full {
        /// Samples that fit now.
        room: usize,
    },
    /// Too many segments wait to be played.
    #[error("too many unplayed segments: wait until frames have left")]
    TooManySegments,
}

/// A frame that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayoutFrame {
    /// Position of its first sample, in samples since the playout was made; fenced audio counts too, so positions agree
    /// with what was pushed.
    pub position: u64,
    /// When it was due on the grid; later than this by the lag if there was a stall.
    pub due: Mono,
    /// The samples.
    pub audio: Vec<f32>,
    /// How many of them are real; the rest is filling.
    pub valid: usize,
}

/// How far playing has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// End of what has been played, in samples since the playout was made. Audio dropped at earlier fences is passed
    /// over, so positions agree with what was pushed.
    pub position: u64,
    /// Samples played of the current answer: since the last fence or since playing started anew after an end.
    pub in_answer: u64,
}

/// What a fence found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced {
    /// What had been played at the fence.
    pub played: Played,
    /// Samples that had left but not been played yet: the listener may still hear them unless told.
    pub in_flight: u64,
    /// Samples dropped before they left.
    pub dropped: u64,
}

/// The jitter buffer. See the module.
#[derive(Clone, Debug)]
pub struct Playout {
    rate: u32,
    frame: u32,
    lead: usize,
    rebuffer: usize,
    capacity: usize,
    pad_last: bool,
    held: VecDeque<f32>,
    /// Position of the first sample held.
    position: u64,
    /// Where the current answer began.
    answer: u64,
    /// Ends of segments, as positions, in order.
    ends: VecDeque<u64>,
    segments_ended: u64,
    state: State,
    underruns: Underruns,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing plays; starts when the lead is there. `last` = the grid of what played before, if it may still sound.
    Idle { last: Option<Pace> },
    /// On the grid; `dry` = when the buffer became too short for a frame within a segment.
    Playing { pace: Pace, dry: Option<Mono> },
}

impl Playout {
    /// An empty playout.
    ///
    /// # Errors
    /// [`PlayoutError::BadFormat`] or [`PlayoutError::BadCapacity`].
    pub fn new(config: PlayoutConfig) -> Result<Self, PlayoutError> {
        let samples = |d: Duration| d.as_nanos().saturating_mul(u128::from(config.rate)) / 1_000_000_000;
        let frame = samples(config.frame);
        if !(1..=768_000).contains(&config.rate) || frame == 0 || frame > u128::from(config.rate) {
            return Err(PlayoutError::BadFormat);
        }
        let (lead, rebuffer, capacity) = (samples(config.lead), samples(config.rebuffer), samples(config.capacity));
        if lead.max(rebuffer).max(frame) > capacity || capacity > u128::from(config.rate) * 3600 {
            return Err(PlayoutError::BadCapacity);
        }
        Ok(Self {
            rate: config.rate,
            frame: frame as u32,
            lead: lead.max(frame) as usize,
            rebuffer: rebuffer.max(frame) as usize,
            capacity: capacity as usize,
            pad_last: config.pad_last,
            held: VecDeque::new(),
            position: 0,
            answer: 0,
            ends: VecDeque::new(),
            segments_ended: 0,
            state: State::Idle { last: None },
            underruns: Underruns::default(),
        })
    }
    /// Samples that fit now.
    pub fn room(&self) -> usize {
        self.capacity - self.held.len()
    }
    /// Samples held, not yet left.
    pub fn held(&self) -> usize {
        self.held.len()
    }
    /// Segments whose last sample has left since the playout was made; fenced ones do not count.
    pub const fn segments_ended(&self) -> u64 {
        self.segments_ended
    }
    /// Waits within an answer for audio that was not there.
    pub const fn underruns(&self) -> Underruns {
        self.underruns
    }
    /// Takes audio of the current segment.
    ///
    /// # Errors
    /// [`PlayoutError::Full`] if it does not fit as a whole.
    pub fn push(&mut self, audio: &[f32], now: Mono) -> Result<(), PlayoutError> {
        if audio.len() > self.room() {
            return Err(PlayoutError::Full { room: self.room() });
        }
        self.held.extend(audio);
        self.resume(now);
        Ok(())
    }
    /// Ends the current segment: what is held leaves to the last sample, with a short frame if need be.
    ///
    /// # Errors
    /// [`PlayoutError::TooManySegments`].
    pub fn end_segment(&mut self, now: Mono) -> Result<(), PlayoutError> {
        if self.ends.len() >= MOST_ENDS {
            return Err(PlayoutError::TooManySegments);
        }
        self.ends.push_back(self.end());
        self.resume(now);
        Ok(())
    }
    /// The next frame, if it is due at `now`; call until `None`.
    pub fn poll(&mut self, now: Mono) -> Option<PlayoutFrame> {
        self.resume(now);
        let State::Playing { mut pace, dry: None } = self.state else { return None };
        let take = self.available()?;
        if !pace.ready(now) {
            return None;
        }
        let due = pace.due();
        let position = self.position;
        let mut audio: Vec<f32> = self.held.drain(..take).collect();
        self.position += take as u64;
        let answer_over = self.held.is_empty() && self.ends.back() == Some(&self.position);
        self.pass_ends();
        pace.sent(take as u64, now);
        if self.pad_last {
            audio.resize(self.frame as usize, 0.0);
        }
        self.state = if answer_over {
            State::Idle { last: Some(pace) }
        } else {
            State::Playing { pace, dry: self.available().is_none().then_some(now) }
        };
        Some(PlayoutFrame { position, due, audio, valid: take })
    }
    /// When to poll next, if nothing is pushed before; `None` while there is nothing to wait for.
    pub fn next_due(&self, now: Mono) -> Option<Mono> {
        match self.state {
            State::Playing { pace, dry: None } => Some(pace.next(now)),
            State::Idle { .. } if self.startable() => Some(now),
            _ => None,
        }
    }
    /// What has been played at `now`, by a listener who plays each frame when it is due.
    pub fn played(&self, now: Mono) -> Played {
        let in_answer_sent = self.position - self.answer;
        let unplayed = match self.state {
            State::Idle { last: None } => 0,
            State::Idle { last: Some(pace) } | State::Playing { pace, .. } => pace.unplayed(now),
        };
        // The last frame of an earlier answer may still sound when the next one begins.
        Played { position: self.position.saturating_sub(unplayed), in_answer: in_answer_sent.saturating_sub(unplayed) }
    }
    /// The same as a media position at the playout's rate.
    pub fn played_until(&self, now: Mono) -> MediaTime {
        MediaTime::from_samples(self.played(now).position, self.rate)
    }
    /// Drops at once what has not left. The next push begins a new answer.
    pub fn fence(&mut self, now: Mono) -> Fenced {
        let (played, dropped) = (self.played(now), self.held.len() as u64);
        let in_flight = self.position - played.position;
        self.held.clear();
        self.ends.clear();
        self.position += dropped;
        self.answer = self.position;
        self.state = State::Idle { last: None };
        Fenced { played, in_flight, dropped }
    }

    /// End of what was pushed, as a position.
    fn end(&self) -> u64 {
        self.position + self.held.len() as u64
    }
    /// Samples of the next frame; `None` if a whole one is not there and no segment end lets a short one go.
    ///
    /// Segments that follow each other directly share frames.
    fn available(&self) -> Option<usize> {
        let whole = self.frame as usize;
        if self.held.len() >= whole { Some(whole) } else { self.tail() }
    }
    /// Samples held up to the latest segment end, if there are any.
    fn tail(&self) -> Option<usize> {
        self.ends.back().and_then(|e| e.checked_sub(self.position)).filter(|&n| n > 0).map(|n| n as usize)
    }
    fn startable(&self) -> bool {
        self.held.len() >= self.lead || self.tail().is_some()
    }
    /// Starts or goes on playing at `now` if there is enough.
    fn resume(&mut self, now: Mono) {
        match self.state {
            State::Idle { last } if self.startable() => {
                // What played before sounds to its end first.
                let sounding = last.filter(|pace| pace.due() >= now);
                let pace = sounding.unwrap_or_else(|| Pace::new(self.rate, self.frame, now));
                self.answer = self.position;
                self.state = State::Playing { pace, dry: None };
            }
            State::Idle { .. } if self.held.is_empty() => self.pass_ends(),
            State::Playing { mut pace, dry: Some(dry) } => {
                if self.held.is_empty() && self.ends.back() == Some(&self.position) {
                    // The end came after the last sample had left: nothing was missing.
                    self.pass_ends();
                    self.state = State::Idle { last: Some(pace) };
                } else if self.held.len() >= self.rebuffer || self.tail().is_some() {
                    let gap = now.since(dry.max(pace.due()));
                    self.underruns.gap(gap);
                    pace.shift(gap.as_nanos() as u64);
                    self.state = State::Playing { pace, dry: None };
                }
            }
            _ => {}
        }
    }
    /// Forgets the segment ends up to the position and counts them.
    fn pass_ends(&mut self) {
        let passed = self.ends.iter().take_while(|&&e| e <= self.position).count();
        self.ends.drain(..passed);
        self.segments_ended += passed as u64;
    }
}

#[cfg(test)]
mod tests;
