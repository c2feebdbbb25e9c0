//! How much: items, bytes and media time, the three units in which every edge is bounded.

use crate::MediaTime;

/// An amount of traffic in the three units of credit. Used both for one chunk and for cumulative totals.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Amount {
    /// Number of chunks.
    pub items: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Playing time of the media.
    pub span: MediaTime,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self { items: 0, bytes: 0, span: MediaTime::ZERO };

    /// One chunk of `bytes` bytes that plays for `span`.
    pub const fn one(bytes: u64, span: MediaTime) -> Self {
        Self { items: 1, bytes, span }
    }
    /// The sum; each unit stops at its largest value.
    pub const fn plus(self, o: Self) -> Self {
        Self {
            items: self.items.saturating_add(o.items),
            bytes: self.bytes.saturating_add(o.bytes),
            span: self.span.saturating_add(o.span),
        }
    }
    /// The difference; each unit stops at zero.
    pub fn minus(self, o: Self) -> Self {
        Self {
            items: self.items.saturating_sub(o.items),
            bytes: self.bytes.saturating_sub(o.bytes),
            span: self.span.saturating_sub(o.span).max(MediaTime::ZERO),
        }
    }
    /// True if no unit of `self` is larger than the same unit of `bound`.
    pub fn fits(self, bound: Self) -> bool {
        self.items <= bound.items && self.bytes <= bound.bytes && self.span <= bound.span
    }
    /// The larger of both, unit by unit: how cumulative limits that arrive in any order are joined.
    pub fn max(self, o: Self) -> Self {
        Self { items: self.items.max(o.items), bytes: self.bytes.max(o.bytes), span: self.span.max(o.span) }
    }
}
