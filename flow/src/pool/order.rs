//! What runs next: a pure machine, without threads and without a clock.
//!
//! One pick, in this order:
//! 1. An *overdue* entry, the longest ready one ([`Limits`]); but after an overdue pick the next goes to a waiting
//!    first chunk, so that an overloaded machine does not fall back to first come, first served.
//! 2. An entry of class `Playing` whose deadline lies within the *guard*, the time that other work about to start may
//!    take, or up to a second back: a first chunk must not make a running stream stutter. Whoever is later than that
//!    cannot be helped by haste.
//! 3. Class `First` by larger depth, then by age; class `Playing` by earlier deadline; class `Background` by age.
//!
//! So an entry that found `n` others waiting runs at the latest after `picks + 2 n + 2` further picks, whatever comes
//! after it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Class, Limits, Priority};
use crate::Mono;

/// Work that is later than this is no reason to keep first chunks waiting.
const LATE: Duration = Duration::from_secs(1);

/// Names one entry of an [`Order`]. Never reused within it; larger is later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Sorts as the third rule says: class, two keys that depend on the class, ticket.
type Rank = (Class, u64, u64, u64);

/// Waiting entries and the choice among them. Every operation takes O(log n).
#[derive(Debug)]
pub struct Order<T> {
    limits: Limits,
    guard: Duration,
    next: u64,
    picks: u64,
    was_overdue: bool,
    entries: BTreeMap<u64, Entry<T>>,
    ranks: BTreeSet<Rank>,
    ages: BTreeSet<(Mono, u64)>,
}

#[derive(Debug)]
struct Entry<T> {
    priority: Priority,
    picks: u64,
    value: T,
}

impl<T> Order<T> {
    /// Nothing waiting; the guard is zero.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            guard: Duration::ZERO,
            next: 0,
            picks: 0,
            was_overdue: false,
            entries: BTreeMap::new(),
            ranks: BTreeSet::new(),
            ages: BTreeSet::new(),
        }
    }
    /// From now on age overrules class as `limits` say.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }
    /// Sets how long work that starts now may keep others waiting (rule 2).
    pub fn set_guard(&mut self, guard: Duration) {
        self.guard = guard;
    }
    /// Adds an entry.
    pub fn push(&mut self, priority: Priority, value: T) -> Ticket {
        let id = self.next;
        self.next += 1;
        self.ranks.insert(rank(&priority, id));
        self.ages.insert((priority.since, id));
        self.entries.insert(id, Entry { priority, picks: self.picks, value });
        Ticket(id)
    }
    /// Takes an entry out without running it; `None` if it has left already.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let e = self.entries.remove(&ticket.0)?;
        self.ranks.remove(&rank(&e.priority, ticket.0));
        self.ages.remove(&(e.priority.since, ticket.0));
        Some(e.value)
    }
    /// Takes the entry that runs next.
    pub fn pick(&mut self, now: Mono) -> Option<T> {
        let id = self.choose(now)?;
        self.picks += 1;
        self.remove(Ticket(id))
    }
    /// Takes up to `max` entries that run together. They count as one pick.
    pub fn pick_many(&mut self, now: Mono, max: usize) -> Vec<T> {
        let mut out = Vec::new();
        while out.len() < max {
            let Some(id) = self.choose(now) else { break };
            out.extend(self.remove(Ticket(id)));
        }
        if !out.is_empty() {
            self.picks += 1;
        }
        out
    }
    /// The priority of the best entry by rule 3.
    pub fn best(&self) -> Option<Priority> {
        let id = self.ranks.first()?.3;
        self.entries.get(&id).map(|e| e.priority)
    }
    /// The earliest deadline of class [`Class::Playing`].
    pub fn earliest_deadline(&self) -> Option<Mono> {
        let first = self.ranks.range((Class::Playing, 0, 0, 0)..).next()?;
        (first.0 == Class::Playing && first.1 != u64::MAX).then_some(Mono(first.1))
    }
    /// The entry that was added first.
    pub fn oldest(&self) -> Option<Ticket> {
        self.entries.first_key_value().map(|(id, _)| Ticket(*id))
    }
    /// Since when the longest ready entry has been ready.
    pub fn longest_ready(&self) -> Option<Mono> {
        self.ages.first().map(|a| a.0)
    }
    /// True while the entry waits.
    pub fn contains(&self, ticket: Ticket) -> bool {
        self.entries.contains_key(&ticket.0)
    }
    /// How many wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// True if none waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Takes all, in order of arrival.
    pub fn drain(&mut self) -> Vec<T> {
        self.ranks.clear();
        self.ages.clear();
        std::mem::take(&mut self.entries).into_values().map(|e| e.value).collect()
    }

    fn choose(&mut self, now: Mono) -> Option<u64> {
        let best = *self.ranks.first()?;
        let yields = self.was_overdue && best.0 == Class::First;
        self.was_overdue = false;
        if !yields && let Some(id) = self.overdue(now) {
            self.was_overdue = true;
            return Some(id);
        }
        let oldest = now.0.saturating_sub(LATE.as_nanos() as u64);
        if best.0 == Class::First
            && let Some(&(Class::Playing, deadline, _, id)) = self.ranks.range((Class::Playing, oldest, 0, 0)..).next()
            && deadline != u64::MAX
            && Mono(deadline) <= now.plus(self.guard)
        {
            return Some(id);
        }
        Some(best.3)
    }
    fn overdue(&self, now: Mono) -> Option<u64> {
        if let Some(&(since, id)) = self.ages.first()
            && now.since(since) >= self.limits.age
        {
            return Some(id);
        }
        let (id, e) = self.entries.first_key_value()?;
        (self.picks - e.picks >= self.limits.picks).then_some(*id)
    }
}

fn rank(p: &Priority, id: u64) -> Rank {
    match p.class {
        Class::First => (p.class, u64::from(u32::MAX - p.depth), p.since.0, id),
        Class::Playing => (p.class, p.deadline.map_or(u64::MAX, |d| d.0), p.since.0, id),
        Class::Background => (p.class, p.since.0, 0, id),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn ms(n: u64) -> Mono {
        Mono(n * MS)
    }
    fn order<T>() -> Order<T> {
        Order::new(Limits::default())
    }

    #[test]
    fn class_then_depth_then_deadline_then_age() {
        let mut o = order();
        o.push(Priority::background(ms(0)), "tidy");
        o.push(Priority::playing(ms(900), ms(1)), "late");
        o.push(Priority::playing(ms(700), ms(2)), "soon");
        o.push(Priority { deadline: None, ..Priority::playing(ms(0), ms(0)) }, "whenever");
        o.push(Priority::first(1, ms(3)), "asr");
        o.push(Priority::first(4, ms(5)), "voice, younger");
        o.push(Priority::first(4, ms(4)), "voice");
        let got: Vec<_> = std::iter::from_fn(|| o.pick(ms(6))).collect();
        assert_eq!(got, ["voice", "voice, younger", "asr", "soon", "late", "whenever", "tidy"]);
    }
    #[test]
    fn age_in_time_raises_background_over_first_chunks() {
        let mut o = order();
        o.push(Priority::background(ms(0)), 0);
        o.push(Priority::first(0, ms(50)), 1);
        o.push(Priority::first(0, ms(50)), 2);
        assert_eq!(o.pick(ms(99)), Some(1));
        assert_eq!(o.pick(ms(100)), Some(0));
        assert_eq!(o.pick(ms(100)), Some(2));
    }
    #[test]
    fn age_in_picks_raises_background_over_first_chunks() {
        let mut o = order();
        o.push(Priority::background(ms(0)), u64::MAX);
        for n in 0..40 {
            o.push(Priority::first(0, ms(0)), n);
        }
        let at = (0..41).position(|_| o.pick(ms(1)) == Some(u64::MAX));
        assert_eq!(at, Some(32), "after 32 picks have passed it over");
    }
    #[test]
    fn overload_leaves_every_second_pick_to_first_chunks() {
        let mut o = order();
        for n in 0..6 {
            o.push(Priority::background(ms(n)), "old");
        }
        for _ in 0..3 {
            o.push(Priority::first(0, ms(1000)), "new");
        }
        let got: Vec<_> = (0..6).filter_map(|_| o.pick(ms(1000))).collect();
        assert_eq!(got, ["old", "new", "old", "new", "old", "new"]);
    }
    #[test]
    fn a_first_chunk_waits_for_a_stream_that_it_would_make_stutter() {
        let mut o = order();
        o.set_guard(Duration::from_millis(40));
        o.push(Priority::first(0, ms(0)), "first");
        o.push(Priority::playing(ms(30), ms(0)), "nearly dry");
        o.push(Priority::playing(ms(60), ms(0)), "safe");
        assert_eq!(o.pick(ms(10)), Some("nearly dry"));
        assert_eq!(o.pick(ms(10)), Some("first"));
        o.push(Priority::first(0, ms(11)), "second");
        o.push(Priority::playing(ms(90), ms(80)), "late");
        assert_eq!(o.pick(ms(61)), Some("safe"), "a little late is not too late");
        assert_eq!(o.pick(ms(1091)), Some("second"), "one that is a second late is not helped by haste");
    }

    /// The rules in their plainest form, over a list.
    struct Naive {
        limits: Limits,
        guard: Duration,
        picks: u64,
        was_overdue: bool,
        list: Vec<(u64, u64, Priority)>, // ticket, picks when added
    }
    impl Naive {
        fn choose(&mut self, now: Mono) -> Option<u64> {
            let key = |p: &Priority| match p.class {
                Class::First => (0, u64::from(u32::MAX - p.depth), p.since.0),
                Class::Playing => (1, p.deadline.map_or(u64::MAX, |d| d.0), p.since.0),
                Class::Background => (2, p.since.0, 0),
            };
            let best = self.list.iter().min_by_key(|(id, _, p)| (key(p), *id))?;
            let first = best.2.class == Class::First;
            let old = self.list.iter().filter(|e| now.since(e.2.since) >= self.limits.age);
            let old = old.min_by_key(|e| (e.2.since, e.0));
            let passed = self.list.iter().filter(|e| self.picks - e.1 >= self.limits.picks).min_by_key(|e| e.0);
            let overdue = old.or(passed).filter(|_| !(self.was_overdue && first));
            self.was_overdue = overdue.is_some();
            let savable = self.list.iter().filter(|e| {
                let soon = |d: Mono| d.plus(LATE) >= now && d <= now.plus(self.guard);
                first && e.2.class == Class::Playing && e.2.deadline.is_some_and(soon)
            });
            let savable = savable.min_by_key(|e| (e.2.deadline, e.2.since, e.0));
            Some(overdue.or(savable).unwrap_or(best).0)
        }
        fn take(&mut self, id: u64) {
            self.list.retain(|e| e.0 != id);
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Push(Priority),
        Pick,
        Many(usize),
        Remove(usize),
        Later(u64),
    }
    fn priority() -> impl Strategy<Value = (Class, u32, Option<u64>, u64)> {
        let class = prop_oneof![Just(Class::First), Just(Class::Playing), Just(Class::Background)];
        (class, 0u32..4, proptest::option::of(0u64..300), 0u64..40)
    }
    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => priority().prop_map(|(class, depth, deadline, since)| {
                Op::Push(Priority { class, depth, deadline: deadline.map(ms), since: ms(since) })
            }),
            4 => Just(Op::Pick),
            1 => (1usize..5).prop_map(Op::Many),
            1 => (0usize..8).prop_map(Op::Remove),
            1 => (0u64..60).prop_map(Op::Later),
        ]
    }
    proptest! {
        #[test]
        fn does_what_the_naive_model_does(
            ops in prop::collection::vec(op(), 1..120),
            picks in 1u64..6,
            age in 20u64..120,
            guard in 0u64..50,
        ) {
            let limits = Limits { picks, age: Duration::from_millis(age) };
            let guard = Duration::from_millis(guard);
            let mut real = Order::new(limits);
            real.set_guard(guard);
            let mut model = Naive { limits, guard, picks: 0, was_overdue: false, list: Vec::new() };
            let (mut now, mut next) = (Mono(0), 0u64);
            for op in ops {
                match op {
                    Op::Push(mut p) => {
                        p.since = Mono(now.0.saturating_sub(p.since.0));
                        p.deadline = p.deadline.map(|d| Mono(now.0 + d.0));
                        let t = real.push(p, next);
                        prop_assert_eq!(t, Ticket(next));
                        model.list.push((next, model.picks, p));
                        next += 1;
                    }
                    Op::Pick => {
                        let want = model.choose(now);
                        prop_assert_eq!(real.pick(now), want);
                        if let Some(id) = want {
                            model.picks += 1;
                            model.take(id);
                        }
                    }
                    Op::Many(max) => {
                        let got = real.pick_many(now, max);
                        let mut want = Vec::new();
                        while want.len() < max {
                            let Some(id) = model.choose(now) else { break };
                            model.take(id);
                            want.push(id);
                        }
                        model.picks += u64::from(!want.is_empty());
                        prop_assert_eq!(got, want);
                    }
                    Op::Remove(n) => {
                        let id = model.list.get(n).map_or(next, |e| e.0);
                        prop_assert_eq!(real.remove(Ticket(id)).is_some(), n < model.list.len());
                        model.take(id);
                    }
                    Op::Later(n) => now = now.plus(Duration::from_millis(n)),
                }
                prop_assert_eq!(real.len(), model.list.len());
            }
        }

        /// Nothing starves: with a stream of first chunks that never stops, each entry runs within the stated bound.
        #[test]
        fn nothing_starves(
            start in prop::collection::vec(priority(), 1..30),
            rest in prop::collection::vec(priority(), 200),
            picks in 1u64..33,
        ) {
            let mut o = Order::new(Limits { picks, age: Duration::MAX });
            o.set_guard(Duration::from_millis(30));
            let n = start.len() as u64;
            for (i, (class, depth, _, since)) in start.into_iter().enumerate() {
                o.push(Priority { class, depth, deadline: Some(ms(10_000)), since: ms(since) }, i as u64);
            }
            let mut rest = rest.into_iter();
            let (mut left, mut count) = (n, 0);
            while left > 0 {
                if let Some((_, depth, deadline, since)) = rest.next() {
                    let class = if deadline.is_some() { Class::First } else { Class::Playing };
                    o.push(Priority { class, depth, deadline: deadline.map(ms), since: ms(since) }, u64::MAX);
                }
                count += 1;
                if o.pick(ms(50)) != Some(u64::MAX) {
                    left -= 1;
                }
                prop_assert!(count <= picks + 2 * n + 2, "{left} of {n} still wait after {count} picks");
            }
        }
    }
}
