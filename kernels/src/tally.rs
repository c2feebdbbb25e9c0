//! What a kernel had to repair: samples that were no numbers and samples beyond full scale.

use std::ops::{Add, AddAssign};

/// Counts of repaired samples. `Tally::default()` means that nothing was repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Samples that were not a number and became 0.
    pub nan: usize,
    /// Samples beyond full scale (infinities too) that became full scale.
    pub clipped: usize,
}

impl Tally {
    /// Whether nothing was repaired.
    pub fn is_clean(self) -> bool {
        self == Self::default()
    }
}

impl Add for Tally {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { nan: self.nan + other.nan, clipped: self.clipped + other.clipped }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
