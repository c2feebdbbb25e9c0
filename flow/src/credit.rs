//! Credit: how much may be under way on an edge.
//!
//! Totals since the edge opened, as in QUIC's flow control (RFC 9000, section 4): the receiver states how much it allows
//! in all, so a grant may be repeated, reordered or lost and the larger one wins. Pure state, no clock, no I/O; one
//! [`Window`] serves in memory and on a wire.

use crate::{Amount, MediaTime};

/// The largest bound in any unit; larger ones are cut to it so that totals cannot overflow.
const MOST: u64 = 1 << 61;

/// The sender's view of an edge's credit.
///
/// A chunk may go if all it adds stays within what is allowed, in items, bytes and media time, or if nothing at all is
/// under way: an empty edge takes one chunk of any size, so that no size can deadlock a graph.
#[derive(Clone, Debug)]
pub struct Window {
    limit: Amount,
    sent: Amount,
    allowed: Amount,
}

impl Window {
    /// A window that lets `limit` be under way. A unit of zero is raised to one, since it could never move.
    pub fn new(limit: Amount) -> Self {
        let limit = Amount {
            items: limit.items.clamp(1, MOST),
            bytes: limit.bytes.clamp(1, MOST),
            span: limit.span.clamp(MediaTime::from_ticks(1), MediaTime::from_ticks(MOST as i64)),
        };
        Self { limit, sent: Amount::ZERO, allowed: limit }
    }
    /// How much may be under way at most.
    pub fn limit(&self) -> Amount {
        self.limit
    }
    /// All that was ever sent.
    pub fn sent(&self) -> Amount {
        self.sent
    }
    /// All that was ever allowed.
    pub fn allowed(&self) -> Amount {
        self.allowed
    }
    /// What is under way: sent, and not yet given back.
    #[inline]
    pub fn used(&self) -> Amount {
        self.sent.plus(self.limit).minus(self.allowed)
    }
    /// True if `amount` may go now.
    #[inline]
    pub fn admits(&self, amount: Amount) -> bool {
        self.sent.plus(amount).fits(self.allowed) || self.used().items == 0
    }
    /// Takes the credit for `amount` if there is room.
    #[inline]
    pub fn take(&mut self, amount: Amount) -> bool {
        let ok = self.admits(amount);
        if ok {
            self.charge(amount);
        }
        ok
    }
    /// Takes the credit for `amount` whatever the room: for the growth of a chunk that was admitted.
    #[inline]
    pub fn charge(&mut self, amount: Amount) {
        self.sent = self.sent.plus(amount);
    }
    /// Undoes [`Window::take`] of something that was never sent.
    #[inline]
    pub fn refund(&mut self, amount: Amount) {
        self.sent = self.sent.minus(amount);
    }
    /// The receiver let go of `amount`: it may be sent again.
    #[inline]
    pub fn release(&mut self, amount: Amount) {
        self.allowed = self.allowed.plus(amount);
    }
    /// The receiver said that `total` is allowed in all. Old and repeated grants change nothing. True if it raised
    /// anything.
    pub fn grant(&mut self, total: Amount) -> bool {
        let new = self.allowed.max(total);
        let raised = new != self.allowed;
        self.allowed = new;
        raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn amount() -> impl Strategy<Value = Amount> {
        (0u64..2000, 0i64..2000).prop_map(|(b, s)| Amount::one(b, MediaTime::from_ticks(s)))
    }

    proptest! {
        /// Against a list of what is under way: admitted exactly when the sum fits or nothing is under way; after all is
        /// released the window is whole again.
        #[test]
        fn agrees_with_a_list(limit in (1u64..8, 1u64..4000, 1i64..4000), ops in prop::collection::vec((any::<bool>(), amount()), 1..200)) {
            let limit = Amount { items: limit.0, bytes: limit.1, span: MediaTime::from_ticks(limit.2) };
            let mut w = Window::new(limit);
            let mut way: std::collections::VecDeque<Amount> = Default::default();
            for (send, a) in ops {
                if send {
                    let sum = way.iter().fold(a, |x, y| x.plus(*y));
                    let expect = way.is_empty() || sum.fits(limit);
                    prop_assert_eq!(w.take(a), expect);
                    if expect { way.push_back(a); }
                } else if let Some(a) = way.pop_front() {
                    w.release(a);
                }
                prop_assert_eq!(w.used(), way.iter().fold(Amount::ZERO, |x, y| x.plus(*y)));
            }
            for a in way { w.release(a); }
            prop_assert_eq!(w.used(), Amount::ZERO);
        }

        /// Grants as totals: any order, any repeats, the same end.
        #[test]
        fn grants_need_no_order(mut totals in prop::collection::vec(amount(), 1..20)) {
            let limit = Amount { items: 4, bytes: 100, span: MediaTime::from_ticks(100) };
            let (mut a, mut b) = (Window::new(limit), Window::new(limit));
            for t in &totals { a.grant(*t); }
            totals.reverse();
            for t in totals.iter().chain(totals.iter()) { b.grant(*t); }
            prop_assert_eq!(a.allowed(), b.allowed());
        }
    }

    #[test]
    fn bounds_without_bound_do_not_overflow() {
        let big = Amount { items: u64::MAX, bytes: u64::MAX, span: MediaTime::from_ticks(i64::MAX) };
        let mut w = Window::new(big);
        for _ in 0..1000 {
            let a = Amount::one(u64::from(u32::MAX), MediaTime::from_millis(1000));
            assert!(w.take(a));
            w.release(a);
        }
        assert_eq!(w.used(), Amount::ZERO);
        assert!(Window::new(Amount::ZERO).admits(big), "an empty edge takes anything");
    }
}
