//! An edge against a naive model, and the rules that a model alone would not show.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use proptest::prelude::*;

use super::state::{Admit, Dead, State};
use super::*;
use crate::{Epoch, Epochs, MediaTime, Stamp};

const LANE: usize = 1;

fn lane() -> Lane {
    Lane::new(LANE).unwrap()
}
fn chunk(id: u64, epoch: u32, bytes: usize, span: i64) -> Chunk {
    let stamp = Stamp {
        epochs: Epochs::FIRST.with(lane(), Epoch(epoch)),
        pts: MediaTime::from_ticks(id as i64),
        len: MediaTime::from_ticks(span),
        ..Stamp::default()
    };
    Chunk { stamp, payload: Payload::Text("x".repeat(bytes).into()) }
}
fn id(c: &Chunk) -> u64 {
    c.stamp.pts.ticks() as u64
}
fn spec(limit: Amount, policy: Policy, lane: Lane) -> EdgeSpec {
    EdgeSpec {
        name: "a.out->b.in".into(),
        from: "g/a".into(),
        to: "g/b".into(),
        lane,
        kind: Kind::of(Medium::Any),
        limit,
        policy,
        deadline: None,
        whole: false,
        gated: false,
    }
}
fn items(n: u64) -> Amount {
    Amount { items: n, bytes: 1 << 30, span: MediaTime::from_millis(1_000_000) }
}

#[derive(Clone, Debug)]
enum Op {
    Push {
        bytes: usize,
        span: i64,
        lag: u32,
    },
    Reserve {
        bytes: usize,
    },
    Fill {
        bytes: usize,
    },
    Cancel,
    Pop,
    /// The consumer takes more than it can handle at once.
    Ahead,
    Fence,
    Sweep,
    Finish,
    Abandon,
    /// The consumer returns credit itself from now on.
    Hold,
    Release,
    /// The consumer is gone, and another one comes.
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0usize..50, 0i64..50, 0u32..3).prop_map(|(bytes, span, lag)| Op::Push { bytes, span, lag }),
        2 => (0usize..50).prop_map(|bytes| Op::Reserve { bytes }),
        2 => (0usize..50).prop_map(|bytes| Op::Fill { bytes }),
        1 => Just(Op::Cancel),
        8 => Just(Op::Pop),
        4 => Just(Op::Ahead),
        2 => Just(Op::Fence),
        1 => Just(Op::Sweep),
        1 => Just(Op::Finish),
        1 => Just(Op::Abandon),
        1 => Just(Op::Hold),
        2 => Just(Op::Release),
        1 => Just(Op::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Whatever happens in whatever order: what comes out is what went in, in order, without what died; nothing of an
    /// old epoch comes after its fence; a fence comes before anything newer; one terminal; and in the end the window is
    /// whole, also if the consumer was made anew with credit in its hands.
    #[test]
    fn a_queue_keeps_its_promises(
        limit in (1u64..6, 1u64..120, 1i64..120),
        policy in prop_oneof![Just(Policy::Wait), Just(Policy::DropOldest), Just(Policy::Latest)],
        ops in prop::collection::vec(op(), 1..300),
    ) {
        let limit = Amount { items: limit.0, bytes: limit.1, span: MediaTime::from_ticks(limit.2) };
        let mut s = State::new(lane(), limit, policy, Epoch(0));
        let mut dead = Dead::new();
        let mut epoch = Epoch(0);
        let mut next = 0u64;
        let mut waiting: VecDeque<(u64, u32)> = VecDeque::new(); // model: what may still come out
        let mut told = Epoch(0);
        let mut seq = None;
        let mut permit: Option<Amount> = None;
        let mut grown = Amount::ZERO; // a chunk may be larger than the room that was reserved for it
        let (mut finished, mut abandoned, mut ended) = (false, false, 0);
        let (mut held, mut in_hand, mut lost) = (Vec::new(), false, 0); // what a consumer that holds credit has taken
        let mut ahead = VecDeque::new();
        for o in ops {
            if matches!(o, Op::Pop) { ahead.clear(); }
            match o {
                Op::Push { bytes, span, lag } => {
                    let e = epoch.0.saturating_sub(lag);
                    let c = chunk(next, e, bytes, span);
                    match s.admit(&c, epoch, &mut dead) {
                        Admit::Yes(amount) => {
                            prop_assert!(e == epoch.0 && !finished && !abandoned);
                            s.enqueue(c, amount);
                            waiting.push_back((next, e));
                        }
                        Admit::Stale => prop_assert!(e < epoch.0),
                        Admit::Gone => prop_assert!(finished || abandoned),
                        Admit::Full => prop_assert!(!waiting.is_empty() || permit.is_some() || !held.is_empty() || !ahead.is_empty()),
                    }
                    next += 1;
                }
                Op::Reserve { bytes } if permit.is_none() => {
                    let a = Amount::one(bytes as u64, MediaTime::ZERO);
                    if s.reserve(a, epoch, &mut dead) == Some(true) { permit = Some(a); }
                }
                Op::Fill { bytes } => if let Some(a) = permit.take() {
                    grown.bytes += (bytes as u64).saturating_sub(a.bytes);
                    if let Admit::Yes(_) = s.fill(a, chunk(next, epoch.0, bytes, 0), epoch, &mut dead) {
                        waiting.push_back((next, epoch.0));
                    }
                    next += 1;
                },
                Op::Cancel => if let Some(a) = permit.take() { s.cancel(a); },
                Op::Reserve { .. } => {}
                Op::Hold => if !abandoned { s.manual = true },
                Op::Release => if let Some(a) = held.pop() { s.window.release(a); },
                Op::Reopen => {
                    let taken = if s.manual { held.len() as u64 } else { u64::from(in_hand) };
                    let expect = taken + ahead.len() as u64;
                    ahead.clear();
                    prop_assert_eq!(s.reopen(), expect);
                    lost += expect;
                    held.clear();
                    in_hand = false;
                    finished |= abandoned;
                    let reserved = permit.unwrap_or(Amount::ZERO);
                    prop_assert_eq!(s.window.used(), s.queued().plus(reserved), "credit left with the dead");
                }
                Op::Ahead if in_hand && ahead.is_empty() && !s.manual && policy == Policy::Wait => {
                    let (used, most) = (s.window.used(), Amount { items: 2, bytes: 60, span: MediaTime::from_ticks(60) });
                    s.take_ahead(most, &mut ahead);
                    prop_assert_eq!(s.window.used(), used, "their credit is not back yet");
                    prop_assert!(ahead.iter().fold(Amount::ZERO, |a, c| a.plus(c.amount())).fits(most));
                    for c in &ahead {
                        prop_assert_eq!(told.0, c.stamp.epochs.of(lane()).0, "of the turn that was told of");
                        while let Some((i, _)) = waiting.pop_front() {
                            if i == id(c) { break; }
                            prop_assert!(dead.iter().any(|d| id(d) == i), "chunk {} vanished", i);
                        }
                        seq = Some(c.stamp.seq);
                    }
                }
                Op::Ahead => {}
                Op::Pop => match s.pop(epoch, &mut dead) {
                    Some(RawEvent::Data(c)) => {
                        in_hand = true;
                        if s.manual { held.push(c.amount()); }
                        let e = c.stamp.epochs.of(lane());
                        prop_assert!(e >= epoch, "an old chunk came out");
                        prop_assert_eq!(told, e, "its fence came first");
                        prop_assert!(seq.is_none_or(|s| c.stamp.seq > s));
                        seq = Some(c.stamp.seq);
                        while let Some((i, _)) = waiting.pop_front() {
                            if i == id(&c) { break; }
                            prop_assert!(dead.iter().any(|d| id(d) == i), "chunk {} vanished", i);
                        }
                    }
                    Some(RawEvent::Fence(e)) => { prop_assert!(e > told); told = e; in_hand = false; }
                    Some(RawEvent::End(_)) => {
                        prop_assert!(finished);
                        if policy == Policy::Wait { prop_assert!(waiting.iter().all(|(_, e)| *e < epoch.0) || abandoned); }
                        ended += 1;
                        in_hand = false;
                    }
                    None => { prop_assert!(!finished); in_hand = false; }
                },
                Op::Fence => epoch.0 += 1,
                Op::Sweep => { s.sweep(epoch, &mut dead); }
                Op::Finish => prop_assert_eq!(s.finish(Terminal::End), !std::mem::replace(&mut finished, true)),
                Op::Abandon => { s.abandon(&mut dead); abandoned = true; held.clear(); ahead.clear(); }
            }
            if policy == Policy::Wait && permit.is_none() {
                let used = s.window.used();
                prop_assert!(used.fits(limit.plus(grown)) || used.items <= 2, "over the limit: {used:?}");
            }
        }
        if let Some(a) = permit { s.cancel(a); }
        prop_assert_eq!(s.counts.lost, lost);
        s.reopen();
        loop {
            match s.pop(epoch, &mut dead) { None | Some(RawEvent::End(_)) => break, _ => {} }
        }
        prop_assert_eq!(s.window.used(), Amount::ZERO, "credit was lost");
        let _ = ended;
    }
}

/// The first trap of fences: the receiver reads the epoch, a new turn's chunk arrives, and would come out before its
/// fence. The decision is made by the chunk in hand.
#[test]
fn a_new_chunk_never_overtakes_its_fence() {
    let lanes = Lanes::new();
    let (tx, mut rx) = Edge::open(spec(items(4), Policy::Wait, lane()), &lanes, &Clock::system());
    tx.try_send(chunk(1, 0, 1, 0)).unwrap();
    let e = lanes.fence(lane());
    tx.try_send(chunk(2, e.0, 1, 0)).unwrap();
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::Fence(x)) if x == e));
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::Data(c)) if id(&c) == 2));
    assert!(rx.next().now_or_never().is_none());
}

/// The second trap: the receiver computes, the queue is full of what a fence has made stale, and the new turn's first
/// chunk must not wait for it.
#[test]
fn stale_credit_does_not_hold_up_the_new_turn() {
    let lanes = Lanes::new();
    let (tx, rx) = Edge::open(spec(items(2), Policy::Wait, lane()), &lanes, &Clock::system());
    tx.try_send(chunk(1, 0, 1, 0)).unwrap();
    tx.try_send(chunk(2, 0, 1, 0)).unwrap();
    let mut blocked = std::pin::pin!(tx.send(chunk(3, 0, 1, 0)));
    assert!(blocked.as_mut().now_or_never().is_none(), "full");
    let e = lanes.fence(lane());
    assert_eq!(blocked.now_or_never(), Some(Err(Stop::Stale)), "the blocked sender is told at once");
    assert_eq!(rx.edge().stats(Mono(0)).used, Amount::ZERO, "swept without the receiver");
    tx.try_send(chunk(4, e.0, 1, 0)).unwrap();
}

/// A busy consumer takes several chunks at once. Those it has not come to die with their turn like those in the queue, and
/// until it comes to them they hold their credit.
#[test]
fn chunks_taken_ahead_die_with_their_turn() {
    let lanes = Lanes::new();
    let (tx, mut rx) = Edge::open(spec(items(32), Policy::Wait, lane()), &lanes, &Clock::system());
    let mut into = Vec::new();
    for i in 0..20 {
        tx.try_send(chunk(i, 0, 1, 0)).unwrap();
    }
    for i in 0..10 {
        assert!(matches!(rx.next_into(&mut into).now_or_never(), Some(Taken::Data)));
        assert_eq!(into.pop().map(|c| id(&c)), Some(i));
    }
    // Eight were taken at once, and eight again: of those, the first has given its credit back.
    let stats = rx.edge().stats(Mono(0));
    assert_eq!((stats.depth, stats.used.items), (4, 4 + 7));
    let e = lanes.fence(lane());
    assert_eq!(rx.edge().stats(Mono(0)).used.items, 7, "the queue is swept at once");
    tx.try_send(chunk(99, e.0, 1, 0)).unwrap();
    assert!(matches!(rx.next_into(&mut into).now_or_never(), Some(Taken::Fence)));
    assert!(matches!(rx.next_into(&mut into).now_or_never(), Some(Taken::Data)));
    assert_eq!(into.pop().map(|c| id(&c)), Some(99));
    assert!(rx.next_into(&mut into).now_or_never().is_none());
    let stats = rx.edge().stats(Mono(0));
    assert_eq!((stats.used, stats.counts.stale), (Amount::ZERO, 10));
    drop(rx);
    assert_eq!(tx.edge().stats(Mono(0)).counts.closed, 0);
}

/// A chunk that brings news of a fence raises its lane whichever way it is sent: epochs never fall along a queue, which
/// is what lets a sweep stop at the first chunk that stays.
#[test]
fn a_permit_brings_news_of_a_fence_too() {
    let lanes = Lanes::new();
    let (tx, mut rx) = Edge::open(spec(items(4), Policy::Wait, lane()), &lanes, &Clock::system());
    tx.try_send(chunk(1, 0, 1, 0)).unwrap();
    let c = chunk(2, 3, 1, 0);
    let permit = tx.reserve(&c.stamp, c.amount()).now_or_never().unwrap().unwrap_or_else(|_| panic!("there is room"));
    permit.send(c).unwrap();
    assert_eq!(lanes.cell(lane()).epoch(), Epoch(3));
    assert_eq!(tx.try_send(chunk(3, 2, 1, 0)).unwrap_err().unwrap(), Stop::Stale);
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::Fence(Epoch(3)))));
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::Data(c)) if id(&c) == 2));
    assert!(rx.next().now_or_never().is_none());
    assert_eq!(rx.edge().stats(Mono(0)).used, Amount::ZERO);
}

/// A player holds all the credit of a lossy edge: the chunk that comes with a permit is lost and counted. It must not look
/// as if nobody read any more.
#[test]
fn a_permit_of_a_lossy_edge_without_credit_costs_a_chunk_and_not_the_stream() {
    let lanes = Lanes::new();
    let (tx, mut rx) = Edge::open(spec(items(1), Policy::DropOldest, lane()), &lanes, &Clock::system());
    rx.hold_credit();
    tx.try_send(chunk(1, 0, 1, 0)).unwrap();
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::Data(_))), "taken, and its credit is held");
    let c = chunk(2, 0, 1, 0);
    let permit = tx.reserve(&c.stamp, c.amount()).now_or_never().unwrap().unwrap_or_else(|_| panic!("lossy"));
    permit.send(c).unwrap();
    assert_eq!((rx.take_missed(), rx.edge().stats(Mono(0)).counts.policy), (1, 1));
    rx.release(chunk(1, 0, 1, 0).amount());
    tx.try_send(chunk(3, 0, 1, 0)).unwrap();
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::Data(c)) if id(&c) == 3));
}

#[test]
fn a_sender_that_goes_is_an_error_and_one_that_ends_is_not() {
    let lanes = Lanes::new();
    let (tx, mut rx) = Edge::open(spec(items(4), Policy::Wait, lane()), &lanes, &Clock::system());
    tx.try_send(chunk(1, 0, 1, 0)).unwrap();
    drop(tx);
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::Data(_))));
    match rx.next().now_or_never() {
        Some(RawEvent::End(Terminal::Error(e))) => {
            assert_eq!((e.kind(), e.node()), (ErrorKind::ProducerGone, "g/a"));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::End(Terminal::End))), "asked again, it stays ended");
    let (tx, mut rx) = Edge::open(spec(items(4), Policy::Wait, lane()), &lanes, &Clock::system());
    tx.finish(Terminal::End);
    drop(tx);
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::End(Terminal::End))));
}

#[test]
fn a_receiver_that_goes_frees_the_sender() {
    let lanes = Lanes::new();
    let (tx, rx) = Edge::open(spec(items(1), Policy::Wait, lane()), &lanes, &Clock::system());
    tx.try_send(chunk(1, 0, 1, 0)).unwrap();
    let mut blocked = std::pin::pin!(tx.send(chunk(2, 0, 1, 0)));
    assert!(blocked.as_mut().now_or_never().is_none());
    drop(rx);
    assert_eq!(blocked.now_or_never(), Some(Err(Stop::Gone)));
}

#[test]
fn an_oversize_chunk_passes_an_empty_edge_alone() {
    let lanes = Lanes::new();
    let limit = Amount { items: 8, bytes: 10, span: MediaTime::from_millis(1000) };
    let (tx, mut rx) = Edge::open(spec(limit, Policy::Wait, lane()), &lanes, &Clock::system());
    tx.try_send(chunk(1, 0, 1000, 0)).unwrap();
    assert!(tx.try_send(chunk(2, 0, 0, 0)).is_err(), "it travels alone");
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::Data(_))));
    tx.try_send(chunk(2, 0, 9, 0)).unwrap();
    assert!(tx.try_send(chunk(3, 0, 1000, 0)).is_err(), "not before the edge is empty");
}

#[test]
fn media_time_bounds_an_edge_too() {
    let lanes = Lanes::new();
    let limit = Amount { items: 100, bytes: 1 << 20, span: MediaTime::from_millis(40) };
    let (tx, _rx) = Edge::open(spec(limit, Policy::Wait, lane()), &lanes, &Clock::system());
    let ms20 = MediaTime::from_millis(20).ticks();
    tx.try_send(chunk(1, 0, 1, ms20)).unwrap();
    tx.try_send(chunk(2, 0, 1, ms20)).unwrap();
    assert!(tx.try_send(chunk(3, 0, 1, 1)).is_err());
}

#[test]
fn a_lossy_edge_drops_the_oldest_and_says_how_many() {
    let lanes = Lanes::new();
    let (tx, mut rx) = Edge::open(spec(items(4), Policy::DropOldest, lane()), &lanes, &Clock::system());
    for i in 0..40 {
        tx.try_send(chunk(i, 0, 1, 0)).unwrap();
    }
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::Data(c)) if id(&c) == 36));
    assert_eq!((rx.take_missed(), rx.take_missed()), (36, 0));
    let (tx, mut rx) = Edge::open(spec(items(4), Policy::Latest, lane()), &lanes, &Clock::system());
    for i in 0..3 {
        tx.try_send(chunk(i, 0, 1, 0)).unwrap();
    }
    assert!(matches!(rx.next().now_or_never(), Some(RawEvent::Data(c)) if id(&c) == 2));
    assert!(rx.next().now_or_never().is_none());
    assert_eq!(rx.edge().stats(Mono(0)).counts.policy, 2);
}

#[test]
fn a_permit_that_is_dropped_gives_its_room_back() {
    let lanes = Lanes::new();
    let (tx, _rx) = Edge::open(spec(items(1), Policy::Wait, lane()), &lanes, &Clock::system());
    let stamp = Stamp::default();
    let one = Amount::one(1, MediaTime::ZERO);
    let p = tx.reserve(&stamp, one).now_or_never().unwrap().ok().unwrap();
    assert!(tx.try_send(chunk(1, 0, 1, 0)).is_err(), "the room is taken");
    drop(p);
    let p = tx.reserve(&stamp, one).now_or_never().unwrap().ok().unwrap();
    assert_eq!(p.send(chunk(2, 0, 500, 0)), Ok(()), "it may have grown");
    assert!(tx.try_send(chunk(3, 0, 1, 0)).is_err());
}

#[test]
fn credit_towards_a_player_returns_when_it_is_played() {
    let lanes = Lanes::new();
    let (tx, mut rx) = Edge::open(spec(items(1), Policy::Wait, lane()), &lanes, &Clock::system());
    rx.hold_credit();
    tx.try_send(chunk(1, 0, 1, 0)).unwrap();
    let Some(RawEvent::Data(c)) = rx.next().now_or_never() else { panic!("no chunk") };
    let mut blocked = std::pin::pin!(tx.send(chunk(2, 0, 1, 0)));
    assert!(blocked.as_mut().now_or_never().is_none());
    rx.release(c.amount());
    assert_eq!(blocked.now_or_never(), Some(Ok(())));
}

#[test]
fn a_deadline_ends_the_stream_for_both_sides() {
    let lanes = Lanes::new();
    let clock = Clock::system();
    let mut s = spec(items(1), Policy::Wait, lane());
    s.deadline = Some(Duration::from_secs(600));
    let (tx, mut rx) = Edge::open(s, &lanes, &clock);
    assert!(rx.next().now_or_never().is_none());
    let now = clock.now();
    assert_eq!(rx.edge().look(now.plus(Duration::from_secs(599))).waited.map(|w| w.as_secs()), Some(599));
    assert!(rx.edge().expire(Duration::from_secs(600)));
    assert!(!rx.edge().expire(Duration::from_secs(600)), "one terminal");
    match rx.next().now_or_never() {
        Some(RawEvent::End(Terminal::Error(e))) => assert_eq!(e.kind(), ErrorKind::InputTimeout),
        other => panic!("{other:?}"),
    }
    assert_eq!(tx.try_send(chunk(1, 0, 1, 0)).unwrap_err().unwrap(), Stop::Gone);
}

/// Many fences, two threads, real time: never an old chunk after its fence, and everything is accounted for.
#[test]
fn fences_hold_between_threads() {
    let lanes = Arc::new(Lanes::new());
    let (tx, mut rx) = Edge::open(spec(items(8), Policy::Wait, lane()), &lanes, &Clock::system());
    let l = lanes.clone();
    let sender = std::thread::spawn(move || {
        futures_executor(async move {
            for i in 0..20_000u64 {
                let epoch = l.cell(lane()).epoch();
                let _ = tx.send(chunk(i, epoch.0, 1, 0)).await;
            }
            tx.finish(Terminal::End);
        });
    });
    let fencer = std::thread::spawn(move || {
        for _ in 0..2000 {
            lanes.fence(lane());
            std::thread::yield_now();
        }
    });
    let mut told = Epoch(0);
    let edge = rx.edge().clone();
    let mut got = 0;
    futures_executor(async {
        loop {
            match rx.next().await {
                RawEvent::Data(c) => {
                    assert_eq!(c.stamp.epochs.of(lane()), told);
                    got += 1;
                }
                RawEvent::Fence(e) => {
                    assert!(e > told);
                    told = e;
                }
                RawEvent::End(_) => break,
            }
        }
    });
    sender.join().unwrap();
    fencer.join().unwrap();
    let s = edge.stats(Mono(0));
    assert_eq!(s.used, Amount::ZERO);
    assert!(got + s.counts.stale >= s.counts.chunks, "{got} {s:?}");
}

fn futures_executor(f: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(f);
}
