//! The filter table of one ratio and quality, shared by all streams that use it.
//!
//! Tables are kept as long as a resampler uses them. All positions are integers, so that two streams, or one stream cut
//! in two ways, meet the same coefficients at the same samples.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use super::{
    Position, ResampleError,
    design::{self, Quality},
    dot::{Dot, Walk},
};

/// Most coefficients of one table (32 MiB).
const MAX_COEFFICIENTS: u64 = 8 << 20;

type Key = (u32, u32, Quality);

/// Coefficients of the reduced ratio `up / down`: `up` rows of `taps`.
#[derive(Debug)]
pub(super) struct Bank {
    pub(super) up: usize,
    pub(super) down: usize,
    pub(super) taps: usize,
    coefficients: Vec<f32>,
    dot: Dot,
}

impl Bank {
    /// The table for a ratio, made if no stream uses it now.
    pub(super) fn shared(in_rate: u32, out_rate: u32, quality: Quality) -> Result<Arc<Self>, ResampleError> {
        static TABLES: OnceLock<Mutex<HashMap<Key, Weak<Bank>>>> = OnceLock::new();
        let divisor = gcd(in_rate, out_rate);
        let key = (out_rate / divisor, in_rate / divisor, quality);
        let (up, down) = (u64::from(key.0), u64::from(key.1));
        let taps = design::taps(up, down, quality);
        let coefficients = up * taps;
        if coefficients > MAX_COEFFICIENTS {
            return Err(ResampleError::Ratio { in_rate, out_rate, coefficients });
        }
        let tables = TABLES.get_or_init(Mutex::default);
        let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = tables.get(&key).and_then(Weak::upgrade) {
            return Ok(found);
        }
        let made = Arc::new(Self::new(up as usize, down as usize, taps as usize, quality, Dot::best()));
        tables.retain(|_, table| table.strong_count() > 0);
        tables.insert(key, Arc::downgrade(&made));
        Ok(made)
    }

    pub(super) fn new(up: usize, down: usize, taps: usize, quality: Quality, dot: Dot) -> Self {
        Self { up, down, taps, coefficients: design::phases(up, down, taps, quality), dot }
    }

    /// Outputs that `held` samples allow from a position on.
    pub(super) fn possible(&self, held: usize, base: usize, phase: usize) -> usize {
        let Some(room) = held.checked_sub(base + self.taps) else { return 0 };
        // The largest n with (phase + n·down) / up <= room, then counted from 0.
        ((room + 1) * self.up - phase).div_ceil(self.down)
    }

    /// Fills every `stride`-th sample of `out` from `offset` on, and returns the position after the last output.
    /// The caller has asked [`Self::possible`].
    pub(super) fn convolve(
        &self,
        samples: &[f32],
        at: Position,
        out: &mut [f32],
        offset: usize,
        stride: usize,
    ) -> Position {
        let walk = Walk {
            coefficients: &self.coefficients,
            taps: self.taps,
            up: self.up,
            whole: self.down / self.up,
            part: self.down % self.up,
        };
        self.dot.run(walk, samples, at, out, offset, stride)
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
