//! The dynamic first chunk: small while the node is idle, larger as its slots fill.
//!
//! A small first chunk is heard early but costs a decoder step of its own; the rule trades one against the other by
//! load. It is evaluated once when a request opens and the result is kept for the life of the request.

/// How busy the node is when a request opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Streams with at least one frame held, whether past their first chunk or not.
    pub active: u32,
    /// Streams that the node can run at once; zero means unknown and gives the smallest step.
    pub slots: u32,
}

/// M: the largest power of two below `size`, and 1 for sizes up to 2 (frames).
pub const fn largest_step(size: u32) -> u32 {
    if size <= 2 { 1 } else { 1 << (31 - (size - 1).leading_zeros()) }
}

/// The first chunk in frames for `load`, out of the steps 2, 4, 8 … up to `largest`.
///
/// The index is `round(min(active / slots, 1) · (n − 1))` with ties to even, computed in whole numbers so that a tie is
/// a tie. Without any step the answer is `max(1, largest)`.
pub fn dynamic_initial(load: Load, largest: u32) -> u32 {
    let steps = if largest < 2 { 0 } else { largest.ilog2() };
    if steps == 0 {
        return largest.max(1);
    }
    if load.slots == 0 {
        return 2;
    }
    let slots = u64::from(load.slots);
    let scaled = u64::from(load.active.min(load.slots)) * u64::from(steps - 1);
    let (whole, rest) = (scaled / slots, scaled % slots);
    let up = match (2 * rest).cmp(&slots) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => whole % 2 == 1,
        std::cmp::Ordering::Greater => true,
    };
    2 << (whole + u64::from(up))
}

/// The dynamic first chunk of a port whose chunks have `size` frames.
pub fn initial_for(size: u32, load: Load) -> u32 {
    dynamic_initial(load, largest_step(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_step_is_the_power_of_two_below_the_size() {
        for (size, m) in [(25, 16), (50, 32), (70, 64), (26, 16), (17, 16), (16, 8), (8, 4), (4, 2), (2, 1), (1, 1)] {
            assert_eq!(largest_step(size), m, "size {size}");
        }
        assert_eq!(largest_step(u32::MAX), 1 << 31);
        assert_eq!(largest_step(0), 1);
    }
    #[test]
    fn the_step_follows_the_load_with_ties_to_even() {
        let rows = [
            (0, 4, 32, 2),
            (2, 4, 32, 8),
            (4, 4, 32, 32),
            (10, 4, 16, 16),
            (0, 4, 1, 1),
            (0, 0, 16, 2),
            (1, 8, 16, 2),
            (6, 8, 16, 8),
            (3, 8, 32, 8),
            (5, 8, 32, 8),
        ];
        for (active, slots, m, want) in rows {
            assert_eq!(dynamic_initial(Load { active, slots }, m), want, "{active} of {slots}, M {m}");
        }
    }
    #[test]
    fn extremes_stay_in_range() {
        for m in [0, 1, 2, 3, 1 << 31, u32::MAX] {
            for load in
                [Load { active: u32::MAX, slots: u32::MAX }, Load { active: u32::MAX, slots: 1 }, Load::default()]
            {
                let n = dynamic_initial(load, m);
                assert!(n >= 1 && n <= m.max(1), "{n} for M {m}");
            }
        }
    }
}
