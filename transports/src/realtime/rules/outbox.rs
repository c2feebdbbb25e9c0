//! What waits to be written to one session's socket (Realtime protocol, limits and "cancel is atomic").
//!
//! Events leave in the order in which they came. The queue is bounded in bytes (compact JSON, as the caller counts it) and
//! in events; a small reserve beyond that takes `error` and `response.done` only, and the last event of a session always
//! has its place. Nothing waits here: that the bound is reached is a value for the caller, who ends the session.
//!
//! A delta (audio, and the transcript that goes with it) is accepted only for the response that was begun, so that none
//! follows its end. A cancel takes the response's deltas out, and marks the one that the writer has already taken.

use std::collections::VecDeque;

/// Bounds of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes.
    pub bytes: usize,
    /// Events.
    pub events: usize,
    /// Bytes beyond that for `error` and `response.done`.
    pub reserve_bytes: usize,
    /// Events beyond that for `error` and `response.done`.
    pub reserve_events: usize,
}

impl Default for Limits {
    /// 2 MiB and 512 events, and 64 KiB and 8 events in reserve.
    fn default() -> Self {
        Self { bytes: 2 << 20, events: 512, reserve_bytes: 64 << 10, reserve_events: 8 }
    }
}

/// Most bytes of a closing reason.
pub const MAX_CLOSE_DETAILS: usize = 4 << 10;

/// The reason to close with: the given one, or the name of the limit that it exceeds.
pub fn close_reason(reason: &str) -> &str {
    if reason.len() > MAX_CLOSE_DETAILS { "close_details_exceed_output_limit" } else { reason }
}

/// What an event is to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// Any but the following.
    Ordinary,
    /// Audio of a response, or the transcript that goes with it.
    Delta(&'a str),
    /// `error`
    Error,
    /// `response.done`, the end of a response.
    Done(&'a str),
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It waits.
    Queued,
    /// The queue is full, for the first time: end the response, then the session (`output_overflow`).
    Overflow,
    /// The queue was full before or is closed, or the reserve is full too: the event is left out.
    LeftOut,
    /// A delta of a response that has ended or was not begun: it is left out.
    Stale,
}

#[derive(Debug)]
struct Entry<T> {
    delta: Option<String>,
    bytes: usize,
    event: T,
}

/// What the writer has in hand.
#[derive(Debug)]
struct Hand {
    delta: Option<String>,
    bytes: usize,
    stale: bool,
}

/// The output queue of one session, with one writer.
#[derive(Debug)]
pub struct Outbox<T> {
    limits: Limits,
    queue: VecDeque<Entry<T>>,
    hand: Option<Hand>,
    bytes: usize,
    response: Option<String>,
    last: Option<T>,
    closed: bool,
    overflowed: bool,
}

impl<T> Outbox<T> {
    /// An empty one.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            queue: VecDeque::new(),
            hand: None,
            bytes: 0,
            response: None,
            last: None,
            closed: false,
            overflowed: false,
        }
    }

    /// A response begins: its deltas are accepted from now on, and those of no other.
    pub fn begin(&mut self, response: &str) {
        self.response = Some(response.to_owned());
    }

    /// Adds an event of so many bytes.
    pub fn push(&mut self, kind: Kind<'_>, bytes: usize, event: T) -> Pushed {
        let mut delta = None;
        match kind {
            Kind::Delta(response) if self.response.as_deref() != Some(response) => return Pushed::Stale,
            Kind::Delta(response) => delta = Some(response.to_owned()),
            Kind::Done(response) if self.response.as_deref() == Some(response) => self.response = None,
            _ => {}
        }
        if self.closed {
            return Pushed::LeftOut;
        }
        let reserved = matches!(kind, Kind::Error | Kind::Done(_));
        if self.overflowed && !reserved {
            return Pushed::LeftOut;
        }
        let (mut max_bytes, mut max_events) = (self.limits.bytes, self.limits.events);
        if reserved {
            max_bytes = max_bytes.saturating_add(self.limits.reserve_bytes);
            max_events = max_events.saturating_add(self.limits.reserve_events);
        }
        let sum = self.bytes.checked_add(bytes).filter(|sum| *sum <= max_bytes && self.len() < max_events);
        let Some(sum) = sum else {
            if reserved {
                return Pushed::LeftOut;
            }
            self.overflowed = true;
            return Pushed::Overflow;
        };
        self.bytes = sum;
        self.queue.push_back(Entry { delta, bytes, event });
        Pushed::Queued
    }

    /// Adds the last event of the session; it always has its place, once. Nothing is accepted after it.
    pub fn close(&mut self, event: T) {
        if !self.closed {
            self.closed = true;
            self.last = Some(event);
        }
    }

    /// A response is cancelled: its deltas leave the queue and come back in their order, the one in the writer's hand is
    /// void ([`Outbox::check`]), and no further one is accepted. All other events stay, in order.
    pub fn cancel(&mut self, response: &str) -> Vec<T> {
        if self.response.as_deref() == Some(response) {
            self.response = None;
        }
        if let Some(hand) = &mut self.hand {
            hand.stale |= hand.delta.as_deref() == Some(response);
        }
        let (mut taken, mut left) = (Vec::new(), VecDeque::with_capacity(self.queue.len()));
        for entry in self.queue.drain(..) {
            if entry.delta.as_deref() == Some(response) {
                self.bytes -= entry.bytes;
                taken.push(entry.event);
            } else {
                left.push_back(entry);
            }
        }
        self.queue = left;
        taken
    }

    /// The next event, to be written. It counts against the bounds until [`Outbox::written`] or the next call of this.
    pub fn take(&mut self) -> Option<T> {
        self.written();
        let Some(entry) = self.queue.pop_front() else { return self.last.take() };
        self.hand = Some(Hand { delta: entry.delta, bytes: entry.bytes, stale: false });
        Some(entry.event)
    }

    /// Whether the event in hand may still be written: asked right before it is numbered, and true for all but a delta
    /// whose response was cancelled meanwhile.
    pub fn check(&self) -> bool {
        !self.hand.as_ref().is_some_and(|h| h.stale)
    }

    /// The event in hand was written or thrown away.
    pub fn written(&mut self) {
        if let Some(hand) = self.hand.take() {
            self.bytes -= hand.bytes;
        }
    }

    /// Events that wait or are in hand, but for the last one of the session.
    pub fn len(&self) -> usize {
        self.queue.len() + usize::from(self.hand.is_some())
    }

    /// Whether no event waits or is in hand, but for the last one of the session.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the last event of the session waits.
    pub fn has_last(&self) -> bool {
        self.last.is_some()
    }

    /// Whether all was written, the last event of the session included.
    pub fn is_drained(&self) -> bool {
        self.closed && self.last.is_none() && self.is_empty()
    }

    /// Bytes of what waits or is in hand.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the queue was full once.
    pub fn is_overflowed(&self) -> bool {
        self.overflowed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn small() -> Outbox<u32> {
        let mut outbox = Outbox::new(Limits { bytes: 100, events: 4, reserve_bytes: 20, reserve_events: 2 });
        outbox.begin("a");
        outbox
    }

    fn drain(outbox: &mut Outbox<u32>) -> Vec<u32> {
        std::iter::from_fn(|| outbox.take()).collect()
    }

    #[test]
    fn a_full_queue_is_said_once_and_the_reserve_takes_the_tail() {
        let mut outbox = small();
        (0..4).for_each(|n| assert_eq!(outbox.push(Kind::Delta("a"), 25, n), Pushed::Queued));
        assert_eq!(outbox.push(Kind::Ordinary, 0, 4), Pushed::Overflow);
        assert_eq!(outbox.push(Kind::Error, 10, 5), Pushed::Queued);
        assert_eq!(outbox.push(Kind::Ordinary, 1, 6), Pushed::LeftOut);
        assert_eq!(outbox.push(Kind::Done("a"), 11, 7), Pushed::LeftOut, "bytes of the reserve");
        assert_eq!(outbox.push(Kind::Done("a"), 10, 8), Pushed::Queued);
        assert_eq!(outbox.push(Kind::Error, 0, 9), Pushed::LeftOut, "events of the reserve");
        outbox.close(10);
        outbox.close(11);
        assert_eq!(outbox.push(Kind::Error, 0, 12), Pushed::LeftOut);
        assert_eq!(drain(&mut outbox), [0, 1, 2, 3, 5, 8, 10]);
        assert!(outbox.is_drained() && outbox.bytes() == 0);
    }

    #[test]
    fn the_reserve_alone_is_no_overflow() {
        let mut outbox = small();
        (0..6).for_each(|n| assert_eq!(outbox.push(Kind::Error, 20, n), Pushed::Queued));
        assert_eq!(outbox.push(Kind::Error, 0, 6), Pushed::LeftOut);
        assert!(!outbox.is_overflowed());
    }

    #[test]
    fn a_cancel_takes_the_deltas_of_one_response_and_keeps_the_order_of_the_rest() {
        let mut outbox = Outbox::new(Limits::default());
        outbox.begin("a");
        outbox.push(Kind::Ordinary, 1, 0);
        outbox.push(Kind::Delta("a"), 1, 1);
        outbox.push(Kind::Done("a"), 1, 2);
        outbox.begin("b");
        outbox.push(Kind::Delta("b"), 1, 3);
        outbox.push(Kind::Ordinary, 1, 4);
        outbox.push(Kind::Delta("b"), 1, 5);
        assert_eq!(outbox.cancel("b"), [3, 5]);
        assert_eq!(outbox.push(Kind::Delta("b"), 1, 6), Pushed::Stale);
        outbox.push(Kind::Done("b"), 1, 7);
        assert_eq!(drain(&mut outbox), [0, 1, 2, 4, 7]);
    }

    #[test]
    fn what_the_writer_has_in_hand_is_checked_once_more() {
        let mut outbox = small();
        outbox.push(Kind::Delta("a"), 60, 1);
        outbox.push(Kind::Ordinary, 1, 2);
        assert_eq!(outbox.take(), Some(1));
        assert!(outbox.check());
        assert_eq!(outbox.push(Kind::Ordinary, 60, 3), Pushed::Overflow, "what is in hand still counts");
        assert!(outbox.cancel("a").is_empty());
        assert!(!outbox.check());
        outbox.written();
        assert_eq!((outbox.bytes(), outbox.take()), (1, Some(2)));
        outbox.cancel("a");
        assert!(outbox.check(), "not a delta");
    }

    #[test]
    fn no_delta_follows_the_end_of_its_response() {
        let mut outbox = small();
        outbox.push(Kind::Done("a"), 1, 1);
        assert_eq!(outbox.push(Kind::Delta("a"), 1, 2), Pushed::Stale);
        assert_eq!(outbox.push(Kind::Delta("never"), 1, 2), Pushed::Stale);
        let mut full = small();
        for n in 0..7 {
            full.push(Kind::Error, 1, n);
        }
        assert_eq!(full.push(Kind::Done("a"), 1, 7), Pushed::LeftOut);
        assert_eq!(full.push(Kind::Delta("a"), 1, 8), Pushed::Stale);
    }

    #[test]
    fn a_long_closing_reason_is_replaced() {
        let (fits, long) = ("x".repeat(MAX_CLOSE_DETAILS), "x".repeat(MAX_CLOSE_DETAILS + 1));
        assert_eq!(close_reason(&fits), fits);
        assert_eq!(close_reason(&long), "close_details_exceed_output_limit");
    }

    proptest! {
        #[test]
        fn what_comes_out_is_what_a_plain_list_would_give(
            steps in prop::collection::vec((0u8..9, 0usize..40), 0..80),
        ) {
            const NAMES: [&str; 3] = ["a", "b", "c"];
            let mut outbox = small();
            let (mut list, mut open): (Vec<(u32, Option<&str>, usize)>, _) = (Vec::new(), Some("a"));
            let (mut hand, mut stale) = (None::<(Option<&str>, usize)>, false);
            let mut over = false;
            for (n, (what, size)) in steps.into_iter().enumerate() {
                let (n, name) = (n as u32, NAMES[size % 3]);
                let bytes = list.iter().map(|e| e.2).sum::<usize>() + hand.map_or(0, |h| h.1);
                let events = list.len() + usize::from(hand.is_some());
                let fits = bytes + size <= 100 && events < 4;
                let fits_reserve = bytes + size <= 120 && events < 6;
                match what {
                    0 => { outbox.begin(name); open = Some(name) }
                    1..=3 => {
                        let kind = if what == 1 { Kind::Ordinary } else { Kind::Delta(name) };
                        let want = if what != 1 && open != Some(name) { Pushed::Stale }
                            else if over { Pushed::LeftOut }
                            else if fits { Pushed::Queued }
                            else { Pushed::Overflow };
                        prop_assert_eq!(outbox.push(kind, size, n), want);
                        over |= want == Pushed::Overflow;
                        if want == Pushed::Queued {
                            list.push((n, (what != 1).then_some(name), size));
                        }
                    }
                    4 | 5 => {
                        let kind = if what == 4 { Kind::Error } else { Kind::Done(name) };
                        if what == 5 && open == Some(name) { open = None }
                        let want = if fits_reserve { Pushed::Queued } else { Pushed::LeftOut };
                        prop_assert_eq!(outbox.push(kind, size, n), want);
                        if fits_reserve { list.push((n, None, size)) }
                    }
                    6 => {
                        if open == Some(name) { open = None }
                        let gone: Vec<u32> = list.iter().filter(|e| e.1 == Some(name)).map(|e| e.0).collect();
                        list.retain(|e| e.1 != Some(name));
                        stale |= hand.is_some_and(|h| h.0 == Some(name));
                        prop_assert_eq!(outbox.cancel(name), gone);
                    }
                    7 => {
                        let next = (!list.is_empty()).then(|| list.remove(0));
                        prop_assert_eq!(outbox.take(), next.map(|e| e.0));
                        (hand, stale) = (next.map(|e| (e.1, e.2)), false);
                    }
                    _ => { outbox.written(); (hand, stale) = (None, false) }
                }
                prop_assert_eq!(outbox.check(), !stale);
                let bytes = list.iter().map(|e| e.2).sum::<usize>() + hand.map_or(0, |h| h.1);
                prop_assert_eq!(outbox.bytes(), bytes);
                prop_assert!(outbox.bytes() <= 120 && outbox.len() <= 6);
            }
        }
    }
}
