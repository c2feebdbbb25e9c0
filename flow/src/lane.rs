//! Lanes and epochs: how an interruption makes old work worthless everywhere at once.
//!
//! A *lane* is a named set of nodes of one session whose output belongs to a turn. Each lane has one monotone counter,
//! its *epoch*; raising it is a *fence*. A chunk carries the epochs of all lanes of the input it answers; an edge
//! compares only the epoch of its own lane. Lane 0, `main`, is never fenced.

use std::fmt;

/// How many lanes a session can have, `main` included.
pub const MAX_LANES: usize = 8;

/// A lane of a session, by its index in the graph's list; 0 is `main`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lane(u8);

impl Lane {
    /// The lane that is never fenced: microphone, recognition, records.
    pub const MAIN: Self = Self(0);

    /// The lane at `index`, or `None` if a session cannot have so many.
    pub const fn new(index: usize) -> Option<Self> {
        if index < MAX_LANES { Some(Self(index as u8)) } else { None }
    }
    /// Its place in [`Epochs`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One value of a lane's counter. A larger one makes all smaller ones stale.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Epoch(pub u32);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The epochs of all lanes that a chunk was asked under. `main` stays at its first and takes no room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Epochs([u32; MAX_LANES - 1]);

impl Epochs {
    /// All lanes at their first epoch.
    pub const FIRST: Self = Self([0; MAX_LANES - 1]);

    /// The epoch of `lane`.
    #[inline]
    pub const fn of(&self, lane: Lane) -> Epoch {
        match lane.index() {
            0 => Epoch(0),
            i => Epoch(self.0[i - 1]),
        }
    }
    /// The same, with `lane` at `epoch`. What the node that fences a lane puts on what it emits afterwards. `main` has
    /// no fence and stays as it is.
    #[must_use]
    pub const fn with(mut self, lane: Lane, epoch: Epoch) -> Self {
        if let Some(i) = lane.index().checked_sub(1) {
            self.0[i] = epoch.0;
        }
        self
    }
    /// The newer of both, lane by lane: for a chunk that answers two inputs.
    #[must_use]
    pub fn join(mut self, o: &Self) -> Self {
        for (a, b) in self.0.iter_mut().zip(o.0) {
            *a = (*a).max(b);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_stays_and_the_others_are_kept_apart() {
        let mut e = Epochs::FIRST;
        for i in 0..MAX_LANES {
            e = e.with(Lane::new(i).unwrap(), Epoch(i as u32 * 10 + 1));
        }
        assert_eq!(e.of(Lane::MAIN), Epoch(0));
        assert!((1..MAX_LANES).all(|i| e.of(Lane::new(i).unwrap()) == Epoch(i as u32 * 10 + 1)));
        assert_eq!(e.join(&Epochs::FIRST), e);
        assert_eq!(Lane::new(MAX_LANES), None);
    }
}
