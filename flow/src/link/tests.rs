//! The link's state machines against every order of frames, and the whole edge over carriers good and rough.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tokio::sync::mpsc;

use super::*;
use crate::carrier::{Carrier, CarrierLost, loopback};
use crate::edge::conformance::{Ends, Rng, chunk, conformance, lane, spec};
use crate::edge::{Edge, EdgeRx, EdgeSpec, EdgeTx, RawEvent};
use crate::error::{ErrorKind, RunError};
use crate::lanes::Lanes;
use crate::sim::{Sim, SimHandle};
use crate::{Amount, Clock, Epoch, In, MediaTime, Out, Payload, Terminal};

type Results = Arc<Mutex<Vec<Result<(), RunError>>>>;

/// Two edges in memory, of two processes, joined by a carrier's two ends.
fn join<C: Carrier>(sim: &SimHandle, spec: EdgeSpec, a: C, b: C) -> (Ends, Results) {
    let (near, far) = (Arc::new(Lanes::new()), Arc::new(Lanes::new()));
    let clock = sim.clock();
    let (tx, middle): (EdgeTx, EdgeRx) = Edge::open(spec.clone(), &near, &clock);
    let (out, rx) = Edge::open(spec, &far, &clock);
    let results: Results = Arc::default();
    let r = results.clone();
    sim.spawn(async move {
        let done = bridge_tx(In::<Payload>::new(middle), a).await;
        r.lock().unwrap().push(done);
    });
    let r = results.clone();
    sim.spawn(async move {
        let done = bridge_rx(Out::<Payload>::new(vec![out]), b).await;
        r.lock().unwrap().push(done);
    });
    (Ends { tx, rx, near, far }, results)
}

fn over_loopback(sim: &SimHandle, spec: EdgeSpec) -> Ends {
    let (a, b) = loopback(2);
    join(sim, spec, a, b).0
}
fn over_a_rough_carrier(sim: &SimHandle, spec: EdgeSpec) -> Ends {
    let (a, b) = rough(sim, spec.limit.items ^ spec.limit.bytes, None);
    join(sim, spec, a, b).0
}

#[test]
fn an_edge_over_loopback_conforms() {
    conformance(100, over_loopback);
}
#[test]
fn an_edge_over_a_rough_carrier_conforms() {
    conformance(100, over_a_rough_carrier);
}

/// A carrier that keeps its promises and no more: each path is delayed on its own, data may come twice, data of old
/// epochs may be cut, and after so many frames it breaks.
struct Rough {
    control: mpsc::Sender<Frame>,
    data: mpsc::Sender<Frame>,
    arriving: tokio::sync::Mutex<(mpsc::Receiver<Frame>, mpsc::Receiver<Frame>)>,
    cut: Arc<AtomicU32>,
}

fn rough(sim: &SimHandle, seed: u64, breaks_after: Option<u64>) -> (Rough, Rough) {
    let left = Arc::new(AtomicU64::new(breaks_after.unwrap_or(u64::MAX)));
    let way = |n: u64| {
        let cut: Arc<AtomicU32> = Arc::default();
        let path = |k: u64| {
            let (into, mut from) = mpsc::channel::<Frame>(2);
            let (to, out) = mpsc::channel::<Frame>(2);
            let (clock, left, cut) = (sim.clock(), left.clone(), cut.clone());
            let mut rng = Rng(seed ^ (n * 2 + k) << 40);
            let mut gone = 0;
            sim.spawn(async move {
                loop {
                    // Broken: what is on the way is lost, and both ends hear of it.
                    let broken = async {
                        if breaks_after.is_none() {
                            std::future::pending::<()>().await;
                        }
                        while left.load(Ordering::Relaxed) > 0 {
                            clock.sleep(Duration::from_millis(50)).await;
                        }
                    };
                    let closed = async {
                        to.closed().await;
                    };
                    let frame = tokio::select! {
                        biased;
                        () = broken => return,
                        () = closed => return,
                        f = from.recv() => match f { Some(f) => f, None => return },
                    };
                    if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err() {
                        return;
                    }
                    if rng.below(3) == 0 {
                        clock.sleep(Duration::from_millis(rng.below(40))).await;
                    }
                    if let Frame::Data { epoch, .. } = &frame {
                        // A stream that is cut stays cut.
                        let old = epoch.0 < cut.load(Ordering::Relaxed);
                        if epoch.0 < gone || old && rng.below(2) == 0 {
                            gone = gone.max(epoch.0 + 1);
                            continue;
                        }
                        if rng.below(5) == 0 && to.send(frame.clone()).await.is_err() {
                            return;
                        }
                    }
                    if to.send(frame).await.is_err() {
                        return;
                    }
                }
            });
            (into, out)
        };
        (path(0), path(1), cut)
    };
    let (there, back) = (way(0), way(1));
    let end = |send: (mpsc::Sender<Frame>, mpsc::Sender<Frame>, Arc<AtomicU32>), recv| Rough {
        control: send.0,
        data: send.1,
        cut: send.2,
        arriving: tokio::sync::Mutex::new(recv),
    };
    (
        end((there.0.0, there.1.0, there.2), (back.0.1, back.1.1)),
        end((back.0.0, back.1.0, back.2), (there.0.1, there.1.1)),
    )
}

impl Carrier for Rough {
    async fn send(&self, frame: Frame) -> Result<(), CarrierLost> {
        let path = if frame.is_data() { &self.data } else { &self.control };
        path.send(frame).await.map_err(|_| CarrierLost { reason: "cut".into() })
    }
    async fn recv(&self) -> Result<Frame, CarrierLost> {
        let mut from = self.arriving.lock().await;
        let (control, data) = &mut *from;
        tokio::select! {
            biased;
            Some(f) = data.recv() => Ok(f),
            Some(f) = control.recv() => Ok(f),
            else => Err(CarrierLost { reason: "cut".into() }),
        }
    }
    fn cut(&self, epoch: Epoch) {
        self.cut.fetch_max(epoch.0, Ordering::Relaxed);
    }
}

/// The link breaks after any number of frames: both sides hear of it once, typed, by name; what arrived is given out; no
/// credit is lost; nobody hangs.
#[test]
fn a_link_that_breaks_at_any_frame_ends_both_sides_once() {
    for frames in 0..80 {
        let mut sim = Sim::new(frames);
        let h = sim.handle();
        let run = async move {
            let clock: Clock = h.clock();
            let (a, b) = rough(&h, frames, Some(frames));
            let (Ends { tx, mut rx, near, .. }, results) = join(&h, spec(3, 100), a, b);
            let edge = tx.edge().clone();
            let sent: Arc<Mutex<Vec<u64>>> = Arc::default();
            let (log, c) = (sent.clone(), clock.clone());
            h.spawn(async move {
                for i in 0..20 {
                    if i == 10 {
                        near.fence(lane());
                    }
                    let e = near.cell(lane()).epoch();
                    if tx.send(chunk(i, e, 2)).await.is_ok() {
                        log.lock().unwrap().push(i);
                    }
                    c.sleep(Duration::from_millis(3)).await;
                }
                tx.finish(Terminal::End);
            });
            let mut got: Vec<u64> = Vec::new();
            let end = loop {
                match clock.timeout(Duration::from_secs(60), rx.next()).await.expect("it never hangs") {
                    RawEvent::Data(c) => got.push(c.stamp.pts.ticks() as u64),
                    RawEvent::Fence(e) => assert_eq!(e, Epoch(1)),
                    RawEvent::End(t) => break t,
                }
            };
            assert!(matches!(rx.next().await, RawEvent::End(Terminal::End)), "one terminal, then quiet");
            clock.sleep(Duration::from_secs(60)).await;
            assert!(got.windows(2).all(|w| w[0] < w[1]), "in order, once: {got:?}");
            assert!(got.iter().all(|g| sent.lock().unwrap().contains(g)));
            let results = results.lock().unwrap();
            assert_eq!(results.len(), 2, "both bridges end");
            match end {
                Terminal::End => assert_eq!(got.last(), Some(&19), "ended well, so all of the last turn is here"),
                Terminal::Error(e) => {
                    assert_eq!((e.kind(), e.node()), (ErrorKind::PeerLost, "g/a"));
                    assert!(results.iter().any(|r| r.is_err()));
                }
            }
            let s = edge.stats(clock.now());
            assert_eq!((s.used, s.ended), (Amount::ZERO, true), "the producer's side is whole and over");
        };
        sim.run(run).unwrap_or_else(|e| panic!("broken after {frames}: {e}"));
    }
}

#[derive(Clone, Debug)]
enum Op {
    Offer { bytes: usize },
    NearFence,
    FarFence,
    End,
    Data { epoch: usize, twice: bool },
    Control,
    Cut,
    Take,
    Back { index: usize, again: bool },
}
fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0usize..40).prop_map(|bytes| Op::Offer { bytes }),
        1 => Just(Op::NearFence),
        1 => Just(Op::FarFence),
        1 => Just(Op::End),
        8 => (0usize..3, any::<bool>()).prop_map(|(epoch, twice)| Op::Data { epoch, twice }),
        4 => Just(Op::Control),
        1 => Just(Op::Cut),
        8 => Just(Op::Take),
        6 => (0usize..4, any::<bool>()).prop_map(|(index, again)| Op::Back { index, again }),
    ]
}

/// Both halves and everything between them. Data is in order per epoch only; control forward is in order; limits come in
/// any order and any number.
struct World {
    limit: Amount,
    s: Sender,
    r: Receiver,
    data: Vec<(Epoch, VecDeque<Frame>)>,
    control: VecDeque<Frame>,
    back: Vec<Frame>,
    sent: Vec<(u64, Epoch)>,
    got: Vec<(u64, Epoch)>,
    told: Epoch,
    let_go: Amount,
    ends: usize,
    next: u64,
}

impl World {
    fn pump(&mut self) {
        while let Some(f) = self.s.poll() {
            self.control.push_back(f);
        }
        while let Some(f) = self.r.control() {
            self.back.push(f);
        }
    }
    fn take(&mut self) -> Result<bool, TestCaseError> {
        let Some(r) = self.r.poll() else { return Ok(false) };
        match r {
            Received::Data(c) => {
                let e = c.stamp.epochs.of(lane());
                prop_assert_eq!((e, e), (self.told, self.r.epoch()), "after its fence, and not after a newer one");
                self.got.push((c.stamp.pts.ticks() as u64, e));
                self.let_go = self.let_go.plus(c.amount());
                self.r.released(self.let_go);
            }
            Received::Fence(e) => {
                prop_assert!(e > self.told);
                self.told = e;
                self.let_go = Amount::ZERO;
            }
            Received::End(t) => {
                prop_assert!(matches!(t, Terminal::End), "{:?}", t);
                self.ends += 1;
            }
        }
        Ok(true)
    }
    fn arrive(&mut self, epoch: usize, twice: bool) {
        let open = self.data.len().min(3);
        if open == 0 {
            return;
        }
        let at = self.data.len() - 1 - epoch % open;
        if let Some(f) = self.data[at].1.pop_front() {
            if twice {
                self.r.on(f.clone());
            }
            self.r.on(f);
        }
    }
    fn apply(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match op {
            Op::Offer { bytes } => {
                let e = self.s.epoch();
                let c = chunk(self.next, e, *bytes);
                let amount = c.amount();
                let used = self.s.used();
                match self.s.offer(c) {
                    Offer::Frame(f) => {
                        prop_assert!(used.items == 0 || used.plus(amount).fits(self.limit), "over the limit");
                        self.sent.push((self.next, e));
                        if self.data.last().is_none_or(|(d, _)| *d < e) {
                            self.data.push((e, VecDeque::new()));
                        }
                        self.data.last_mut().unwrap().1.push_back(f);
                    }
                    Offer::Gone => prop_assert!(self.s.ended()),
                    Offer::Full(_) => prop_assert!(used.items > 0, "an empty edge takes anything"),
                    Offer::Stale => prop_assert!(false, "it is of the newest epoch"),
                }
                self.next += 1;
            }
            Op::NearFence => self.s.fence(Epoch(self.s.epoch().0 + 1)),
            Op::FarFence => self.r.fence(Epoch(self.r.epoch().0 + 1)),
            Op::End => drop(self.s.end(Terminal::End)),
            Op::Data { epoch, twice } => self.arrive(*epoch, *twice),
            Op::Control => {
                if let Some(f) = self.control.pop_front() {
                    self.r.on(f);
                }
            }
            Op::Cut => {
                let now = self.s.epoch();
                self.data.iter_mut().filter(|(e, _)| *e < now).for_each(|(_, q)| q.clear());
            }
            Op::Take => drop(self.take()?),
            Op::Back { index, again } => {
                if !self.back.is_empty() {
                    let f = self.back.remove(index % self.back.len());
                    if *again {
                        prop_assert!(self.s.on(f.clone()).is_ok());
                    }
                    prop_assert!(self.s.on(f).is_ok());
                }
            }
        }
        self.pump();
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// Any order of frames that a carrier may bring: nothing old after its fence, nothing lost without a fence, one
    /// terminal, credit within its bound and whole in the end.
    #[test]
    fn halves_agree_in_any_order(
        limit in (1u64..6, 1u64..100),
        ops in prop::collection::vec(op(), 1..250),
    ) {
        let limit = Amount { items: limit.0, bytes: limit.1, span: MediaTime::from_millis(1000) };
        let mut w = World {
            limit,
            s: Sender::new(lane(), limit, Epoch(0)),
            r: Receiver::new(lane(), limit, Epoch(0), "g/a"),
            data: Vec::new(), control: VecDeque::new(), back: Vec::new(), sent: Vec::new(), got: Vec::new(),
            told: Epoch(0), let_go: Amount::ZERO, ends: 0, next: 0,
        };
        for o in &ops {
            w.apply(o)?;
        }
        w.s.end(Terminal::End);
        w.pump();
        // Everything arrives in the end, and is taken.
        loop {
            let mut moved = w.take()?;
            for f in w.control.drain(..) { moved = true; w.r.on(f); }
            for (_, q) in &mut w.data {
                for f in q.drain(..) { moved = true; w.r.on(f); }
            }
            for f in std::mem::take(&mut w.back) { moved = true; prop_assert!(w.s.on(f).is_ok()); }
            w.pump();
            if !moved { break; }
        }
        prop_assert!(w.r.fault().is_none(), "{:?}", w.r.fault());
        prop_assert_eq!(w.ends, 1, "exactly one terminal");
        prop_assert!(w.r.done());
        prop_assert!(w.got.windows(2).all(|p| p[0].0 < p[1].0), "in order, once");
        prop_assert!(w.got.iter().all(|g| w.sent.contains(g)));
        let last = w.r.epoch();
        let expect: Vec<_> = w.sent.iter().filter(|(_, e)| *e == last).collect();
        prop_assert_eq!(w.got.iter().filter(|(_, e)| *e == last).collect::<Vec<_>>(), expect, "the last turn is whole");
    }
}

#[test]
fn a_peer_that_breaks_the_rules_is_an_error_and_not_a_crash() {
    let limit = Amount { items: 2, bytes: 10, span: MediaTime::from_millis(10) };
    let data =
        |epoch: u32, seq, bytes| Frame::Data { epoch: Epoch(epoch), seq, chunk: chunk(seq, Epoch(epoch), bytes) };
    let wrong = Frame::Data { epoch: Epoch(7), seq: 0, chunk: chunk(0, Epoch(0), 1) };
    let end = Frame::End { epoch: Epoch(0), count: 1, terminal: Terminal::End };
    for (frames, kind) in [
        (vec![data(0, 1, 1)], ErrorKind::SequenceGap),
        (vec![data(0, 0, 1), data(0, 2, 1)], ErrorKind::SequenceGap),
        (vec![data(3, 1, 1)], ErrorKind::SequenceGap),
        (vec![data(0, 0, 6), data(0, 1, 6)], ErrorKind::Protocol),
        (vec![data(0, 0, 1), data(0, 1, 1), data(0, 2, 1)], ErrorKind::Protocol),
        (vec![end.clone(), data(0, 0, 1), data(0, 1, 1)], ErrorKind::Protocol),
        (vec![end, data(1, 0, 1)], ErrorKind::Protocol),
        (vec![wrong], ErrorKind::Protocol),
        (vec![Frame::Stop], ErrorKind::Protocol),
        (vec![Frame::Limit { epoch: Epoch(0), allowed: limit }], ErrorKind::Protocol),
    ] {
        let mut r = Receiver::new(lane(), limit, Epoch(0), "g/a");
        for f in &frames {
            r.on(f.clone());
        }
        let mut ends = Vec::new();
        while let Some(e) = r.poll() {
            if let Received::End(t) = e {
                ends.push(t);
            }
        }
        match &ends[..] {
            [Terminal::Error(e)] => assert_eq!((e.kind(), e.node()), (kind, "g/a"), "{frames:?}"),
            other => panic!("{other:?} of {frames:?}"),
        }
    }
    let mut s = Sender::new(lane(), limit, Epoch(0));
    assert_eq!(s.on(data(0, 0, 1)).unwrap_err().kind(), ErrorKind::Protocol);
    // A limit without measure allows one window and no more.
    let huge = Amount { items: u64::MAX, bytes: u64::MAX, span: MediaTime::from_ticks(i64::MAX) };
    s.on(Frame::Limit { epoch: Epoch(0), allowed: huge }).unwrap();
    assert!(matches!(s.offer(chunk(0, Epoch(0), 6)), Offer::Frame(_)));
    assert!(matches!(s.offer(chunk(1, Epoch(0), 6)), Offer::Full(_)));
}

#[test]
fn repeats_are_dropped_and_counted() {
    let limit = Amount { items: 4, bytes: 10, span: MediaTime::from_millis(10) };
    let mut r = Receiver::new(lane(), limit, Epoch(0), "g/a");
    let frame = |seq| Frame::Data { epoch: Epoch(0), seq, chunk: chunk(seq, Epoch(0), 1) };
    for seq in [0, 0, 1, 0, 1] {
        r.on(frame(seq));
    }
    r.on(Frame::Fence { epoch: Epoch(1) });
    r.on(frame(2));
    assert_eq!((r.repeated(), r.stale()), (3, 3), "two were waiting when the fence came, one came after");
    r.lost("cable");
    r.lost("cable");
    assert!(matches!(r.poll(), Some(Received::Fence(Epoch(1)))));
    assert!(matches!(r.poll(), Some(Received::End(Terminal::Error(e))) if e.kind() == ErrorKind::PeerLost));
    assert!(r.poll().is_none());
}
