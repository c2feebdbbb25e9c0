//! One request's chunker: counts frames in, says how many go out, and when.

use super::{Headroom, Initial, Load, Policy, initial_for};
use omni_flow::Mono;

/// What is known about a request when its chunker is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamStart {
    /// The request's own `initial_codec_chunk_frames`; 0 = a full first chunk. A ramp or doubling ignores it.
    pub requested_initial: Option<u32>,
    /// The load at this moment, for a dynamic first chunk. Later changes of load do not touch this request.
    pub load: Load,
    /// Playing time of one frame, ms; used by the adaptive policy only.
    pub play_ms: f64,
}

impl Default for StreamStart {
    /// An idle node and frames of 80 ms (12.5 per second, the adaptive policy's default).
    fn default() -> Self {
        Self { requested_initial: None, load: Load::default(), play_ms: 80.0 }
    }
}

/// Frames that leave as one chunk: `frames` of them, the first being number `first` of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// Number of the first frame within the segment.
    pub first: u64,
    /// Frames in the chunk; zero only from [`Chunker::finish`].
    pub frames: u64,
}

/// The chunk policy at work on one request. Holds counts only.
#[derive(Clone, Debug)]
pub struct Chunker {
    policy: Policy,
    /// Frames of the first chunk, chosen once per request.
    initial: u64,
    clamped: bool,
    play_ms: f64,
    segment: Segment,
}

/// What starts anew after a segment end.
#[derive(Clone, Debug, Default)]
struct Segment {
    accepted: u64,
    emitted: u64,
    /// Number of the chunk that `boundary` ends, and that boundary; 0 = not computed yet.
    chunk: u64,
    boundary: u64,
    headroom: Headroom,
}

impl Chunker {
    /// A chunker for one request.
    pub fn new(policy: Policy, start: StreamStart) -> Self {
        let (initial, size) = match &policy {
            Policy::TwoPhase { initial, size } => (*initial, *size),
            Policy::Adaptive { initial, rule } => (*initial, rule.size),
            Policy::Ramp { size, .. } => (Initial::Frames(0), *size),
            Policy::Double { base, .. } => (Initial::Frames(0), *base),
        };
        let asked = match (start.requested_initial, initial) {
            (Some(n), _) | (None, Initial::Frames(n)) => n,
            (None, Initial::Dynamic) => initial_for(size, start.load),
        };
        let chosen = if asked == 0 { size } else { asked.min(size) };
        let play_ms = if start.play_ms.is_finite() { start.play_ms.max(0.0) } else { 0.0 };
        Self { policy, initial: u64::from(chosen.max(1)), clamped: asked > size, play_ms, segment: Segment::default() }
    }
    /// Frames of the first chunk, as chosen for this request (two-phase and adaptive).
    pub const fn initial(&self) -> u64 {
        self.initial
    }
    /// Whether the first chunk asked for was above the size and the size acts; worth a warning.
    pub const fn initial_clamped(&self) -> bool {
        self.clamped
    }
    /// Frames accepted and not yet handed on.
    pub const fn held(&self) -> u64 {
        self.segment.accepted - self.segment.emitted
    }
    /// Frames handed on in this segment.
    pub const fn emitted(&self) -> u64 {
        self.segment.emitted
    }
    /// Accepts `frames` new frames at `now`; returns the chunk that is due, all frames held in one. Zero frames change
    /// nothing.
    pub fn push(&mut self, frames: usize, now: Mono) -> Option<Emission> {
        if frames == 0 {
            return None;
        }
        self.segment.accepted = self.segment.accepted.saturating_add(frames as u64);
        if let Policy::Adaptive { rule, .. } = self.policy {
            let first = self.segment.emitted == 0;
            let target = if first { self.initial } else { self.segment.headroom.target(&rule, self.play_ms, now) };
            if self.held() < target {
                return None;
            }
            self.segment.headroom.emitted(self.held(), target, now);
        } else if self.segment.accepted < self.next_boundary() {
            return None;
        }
        Some(self.emit())
    }
    /// Ends the segment: returns what was held, possibly nothing, and starts the counters anew. The caller sends it with
    /// (or before) its `segment_end` or `end`, which goes out even when no frame is left.
    pub fn finish(&mut self) -> Emission {
        let rest = self.emit();
        self.segment = Segment::default();
        rest
    }
    /// Forgets what is held, at a fence, and starts the counters anew. Returns how many frames were dropped.
    pub fn clear(&mut self) -> u64 {
        let dropped = self.held();
        self.segment = Segment::default();
        dropped
    }

    fn emit(&mut self) -> Emission {
        let emission = Emission { first: self.segment.emitted, frames: self.held() };
        self.segment.emitted = self.segment.accepted;
        emission
    }
    /// The smallest boundary above what has been emitted. Walks over the growing part of a policy, at most once in a
    /// segment, and computes the even part directly.
    fn next_boundary(&mut self) -> u64 {
        while self.segment.boundary <= self.segment.emitted {
            let (size, even) = self.size_of(self.segment.chunk);
            let missed = if even { (self.segment.emitted - self.segment.boundary) / size } else { 0 };
            self.segment.boundary = self.segment.boundary.saturating_add(size.saturating_mul(missed + 1));
            self.segment.chunk = self.segment.chunk.saturating_add(missed + 1);
            if self.segment.boundary == u64::MAX {
                break;
            }
        }
        self.segment.boundary
    }
    /// Frames of chunk `i`, and whether all later chunks are as large.
    fn size_of(&self, i: u64) -> (u64, bool) {
        match &self.policy {
            Policy::TwoPhase { .. } if i == 0 => (self.initial, false),
            Policy::TwoPhase { size, .. } => (u64::from(*size).max(1), true),
            Policy::Ramp { sizes, size } => match usize::try_from(i).ok().and_then(|i| sizes.get(i)) {
                Some(&n) => (u64::from(n).max(1), false),
                None => (u64::from(*size).max(1), true),
            },
            Policy::Double { base, factor, max } => {
                let grown = f64::from(*base) * factor.powf(i as f64);
                let max = u64::from(*max).max(1);
                (
                    if grown < max as f64 { (grown.floor() as u64).max(1) } else { max },
                    grown >= max as f64 || *factor <= 1.0,
                )
            }
            // Not reached: the adaptive policy has targets, no boundaries.
            Policy::Adaptive { rule, .. } => (u64::from(rule.size).max(1), true),
        }
    }
}

#[cfg(test)]
mod tests;
