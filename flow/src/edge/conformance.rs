//! What every edge promises, whatever lies between its two ends: one suite, run for each kind of edge.
//!
//! A kind of edge is a function that gives the two ends in a simulated world ([`Ends`]); a new carrier adds one line.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::sim::{Sim, SimHandle};
use crate::{Epoch, Epochs, MediaTime, Stamp};

/// The two ends of an edge, and the lanes of the processes that they are in.
pub(crate) struct Ends {
    pub tx: EdgeTx,
    pub rx: EdgeRx,
    /// The producer's.
    pub near: Arc<Lanes>,
    /// The consumer's.
    pub far: Arc<Lanes>,
}

pub(crate) fn lane() -> Lane {
    Lane::new(1).unwrap()
}
pub(crate) fn chunk(id: u64, epoch: Epoch, bytes: usize) -> Chunk {
    let stamp =
        Stamp { epochs: Epochs::FIRST.with(lane(), epoch), pts: MediaTime::from_ticks(id as i64), ..Stamp::default() };
    Chunk { stamp, payload: Payload::Text("x".repeat(bytes).into()) }
}
pub(crate) fn spec(items: u64, bytes: u64) -> EdgeSpec {
    EdgeSpec {
        name: "a.out->b.in".into(),
        from: "g/a".into(),
        to: "g/b".into(),
        lane: lane(),
        kind: Kind::of(Medium::Any),
        limit: Amount { items, bytes, span: MediaTime::from_millis(1_000_000) },
        policy: Policy::Wait,
        deadline: None,
        whole: false,
        gated: false,
    }
}
fn id(c: &Chunk) -> u64 {
    c.stamp.pts.ticks() as u64
}
fn epoch(c: &Chunk) -> Epoch {
    c.stamp.epochs.of(lane())
}

/// SplitMix64.
pub(crate) struct Rng(pub u64);
impl Rng {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

/// Long enough, in virtual time, for anything to have happened.
async fn quiet(clock: &Clock) {
    clock.sleep(Duration::from_secs(5)).await;
}
async fn waits<T>(clock: &Clock, f: &mut (impl Future<Output = T> + Unpin)) -> bool {
    clock.timeout(Duration::from_secs(5), f).await.is_none()
}
async fn soon<T>(clock: &Clock, what: &str, f: impl Future<Output = T>) -> T {
    clock.timeout(Duration::from_secs(60), f).await.unwrap_or_else(|| panic!("{what}: it never came"))
}
async fn data(clock: &Clock, rx: &mut EdgeRx) -> Chunk {
    match soon(clock, "data", rx.next()).await {
        RawEvent::Data(c) => c,
        e => panic!("{e:?} where data was due"),
    }
}

/// Runs every rule under several schedules.
pub(crate) fn conformance(seeds: u64, open: fn(&SimHandle, EdgeSpec) -> Ends) {
    for seed in 0..seeds {
        let run = std::panic::AssertUnwindSafe(|| {
            let mut sim = Sim::new(seed);
            let h = sim.handle();
            sim.run(rules(h, open, seed)).unwrap_or_else(|e| panic!("{e}"));
        });
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("failed under seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

async fn rules(sim: SimHandle, open: fn(&SimHandle, EdgeSpec) -> Ends, seed: u64) {
    order_and_end(&sim, open).await;
    credit(&sim, open).await;
    an_oversize_chunk_goes_alone(&sim, open).await;
    for near in [true, false] {
        a_fence(&sim, open, near).await;
    }
    terminals(&sim, open).await;
    a_consumer_that_leaves(&sim, open).await;
    held_credit(&sim, open).await;
    anything(&sim, open, seed).await;
}

async fn order_and_end(sim: &SimHandle, open: fn(&SimHandle, EdgeSpec) -> Ends) {
    let clock = sim.clock();
    let Ends { tx, mut rx, .. } = open(sim, spec(4, 1000));
    sim.spawn(async move {
        for i in 0..50 {
            assert_eq!(tx.send(chunk(i, Epoch(0), 3)).await, Ok(()));
        }
        tx.finish(Terminal::End);
    });
    for i in 0..50 {
        let c = data(&clock, &mut rx).await;
        assert_eq!((id(&c), c.stamp.seq), (i, i));
    }
    for _ in 0..3 {
        assert!(matches!(soon(&clock, "end", rx.next()).await, RawEvent::End(Terminal::End)));
    }
}

async fn credit(sim: &SimHandle, open: fn(&SimHandle, EdgeSpec) -> Ends) {
    let clock = sim.clock();
    let Ends { tx, mut rx, .. } = open(sim, spec(2, 1000));
    for i in 0..2 {
        soon(&clock, "room", tx.send(chunk(i, Epoch(0), 1))).await.unwrap();
        quiet(&clock).await;
    }
    {
        let mut third = std::pin::pin!(tx.send(chunk(2, Epoch(0), 1)));
        assert!(waits(&clock, &mut third).await, "two are under way, wherever they are");
        data(&clock, &mut rx).await;
        assert_eq!(soon(&clock, "credit", third).await, Ok(()));
    }
    for i in 1..3 {
        assert_eq!(id(&data(&clock, &mut rx).await), i);
    }
    quiet(&clock).await;
    assert_eq!(tx.edge().stats(clock.now()).used, Amount::ZERO, "the window is whole");
}

async fn an_oversize_chunk_goes_alone(sim: &SimHandle, open: fn(&SimHandle, EdgeSpec) -> Ends) {
    let clock = sim.clock();
    let Ends { tx, mut rx, .. } = open(sim, spec(8, 10));
    soon(&clock, "room", tx.send(chunk(0, Epoch(0), 1000))).await.unwrap();
    let mut next = std::pin::pin!(tx.send(chunk(1, Epoch(0), 1)));
    assert!(waits(&clock, &mut next).await, "it travels alone");
    assert_eq!(id(&data(&clock, &mut rx).await), 0);
    assert_eq!(soon(&clock, "credit", next).await, Ok(()));
    assert_eq!(id(&data(&clock, &mut rx).await), 1);
}

/// The edge is full of an old turn and its consumer computes: the new turn gets through, and nothing old with it.
async fn a_fence(sim: &SimHandle, open: fn(&SimHandle, EdgeSpec) -> Ends, at_producer: bool) {
    let clock = sim.clock();
    let Ends { tx, mut rx, near, far } = open(sim, spec(2, 1000));
    for i in 0..2 {
        soon(&clock, "room", tx.send(chunk(i, Epoch(0), 1))).await.unwrap();
    }
    let e = {
        let mut blocked = std::pin::pin!(tx.send(chunk(2, Epoch(0), 1)));
        assert!(waits(&clock, &mut blocked).await);
        let e = if at_producer { near.fence(lane()) } else { far.fence(lane()) };
        assert_eq!(soon(&clock, "stale", blocked).await, Err(Stop::Stale), "the blocked sender is told");
        e
    };
    assert_eq!(soon(&clock, "stale", tx.send(chunk(3, Epoch(0), 1))).await, Err(Stop::Stale));
    soon(&clock, "room for the new turn", tx.send(chunk(4, e, 1))).await.unwrap();
    soon(&clock, "room for the new turn", tx.send(chunk(5, e, 1))).await.unwrap();
    quiet(&clock).await;
    assert!(matches!(soon(&clock, "fence", rx.next()).await, RawEvent::Fence(x) if x == e));
    assert_eq!(far.epochs().of(lane()), e, "both sides know");
    for i in 4..6 {
        assert_eq!(id(&data(&clock, &mut rx).await), i);
    }
    tx.finish(Terminal::End);
    assert!(matches!(soon(&clock, "end", rx.next()).await, RawEvent::End(Terminal::End)));
    quiet(&clock).await;
    assert_eq!(tx.edge().stats(clock.now()).used, Amount::ZERO, "no credit was lost with the old turn");
}

async fn terminals(sim: &SimHandle, open: fn(&SimHandle, EdgeSpec) -> Ends) {
    let clock = sim.clock();
    let Ends { tx, mut rx, .. } = open(sim, spec(4, 1000));
    tx.send(chunk(0, Epoch(0), 1)).await.unwrap();
    assert!(tx.finish(Terminal::Error(RunError::new(ErrorKind::Node, "g/x", "burnt"))));
    assert!(!tx.finish(Terminal::End), "the first is the only one");
    data(&clock, &mut rx).await;
    match soon(&clock, "error", rx.next()).await {
        RawEvent::End(Terminal::Error(e)) => {
            assert_eq!((e.kind(), e.node(), e.message()), (ErrorKind::Node, "g/x", "burnt"));
        }
        e => panic!("{e:?}"),
    }
    assert!(matches!(rx.next().await, RawEvent::End(Terminal::End)));

    let Ends { tx, mut rx, .. } = open(sim, spec(4, 1000));
    tx.send(chunk(0, Epoch(0), 1)).await.unwrap();
    drop(tx);
    data(&clock, &mut rx).await;
    match soon(&clock, "error", rx.next()).await {
        RawEvent::End(Terminal::Error(e)) => assert_eq!((e.kind(), e.node()), (ErrorKind::ProducerGone, "g/a")),
        e => panic!("{e:?}"),
    }
}

async fn a_consumer_that_leaves(sim: &SimHandle, open: fn(&SimHandle, EdgeSpec) -> Ends) {
    let clock = sim.clock();
    let Ends { tx, rx, .. } = open(sim, spec(1, 1000));
    tx.send(chunk(0, Epoch(0), 1)).await.unwrap();
    let mut blocked = std::pin::pin!(tx.send(chunk(1, Epoch(0), 1)));
    assert!(waits(&clock, &mut blocked).await);
    drop(rx);
    assert_eq!(soon(&clock, "gone", blocked).await, Err(Stop::Gone));
    assert_eq!(tx.send(chunk(2, Epoch(0), 1)).await, Err(Stop::Gone));
    quiet(&clock).await;
    assert_eq!(tx.edge().stats(clock.now()).used, Amount::ZERO);
}

/// Towards a player, credit returns when the media has been played.
async fn held_credit(sim: &SimHandle, open: fn(&SimHandle, EdgeSpec) -> Ends) {
    let clock = sim.clock();
    let Ends { tx, mut rx, .. } = open(sim, spec(1, 1000));
    rx.hold_credit();
    tx.send(chunk(0, Epoch(0), 5)).await.unwrap();
    let c = data(&clock, &mut rx).await;
    let mut next = std::pin::pin!(tx.send(chunk(1, Epoch(0), 1)));
    assert!(waits(&clock, &mut next).await, "taken is not played");
    rx.release(c.amount());
    assert_eq!(soon(&clock, "credit", next).await, Ok(()));
    assert_eq!(id(&data(&clock, &mut rx).await), 1);
}

/// Any order of sends, fences on either side and pauses: what comes is in order, of the newest epoch known, after its
/// fence; without a fence all of it comes; there is one terminal; the window is whole in the end.
async fn anything(sim: &SimHandle, open: fn(&SimHandle, EdgeSpec) -> Ends, seed: u64) {
    let clock = sim.clock();
    let mut rng = Rng(seed);
    let (items, bytes) = (1 + rng.below(5), 1 + rng.below(60));
    let Ends { tx, mut rx, near, far } = open(sim, spec(items, bytes));
    let fences = rng.below(3) > 0;
    let sent: Arc<Mutex<Vec<(u64, Epoch)>>> = Arc::default();
    let (log, lanes, c, mut r) = (sent.clone(), near.clone(), clock.clone(), Rng(rng.below(u64::MAX)));
    let edge = tx.edge().clone();
    sim.spawn(async move {
        for i in 0..30 {
            if fences && r.below(6) == 0 {
                lanes.fence(lane());
            }
            if r.below(3) == 0 {
                c.sleep(Duration::from_millis(r.below(30))).await;
            }
            let e = lanes.cell(lane()).epoch();
            let size = r.below(20) as usize;
            let done = if r.below(4) == 0 {
                let stamp = chunk(i, e, 0).stamp;
                match tx.reserve(&stamp, Amount::one(1, MediaTime::ZERO)).await {
                    Ok(p) if r.below(3) > 0 => p.send(chunk(i, e, size)),
                    Ok(p) => {
                        drop(p);
                        continue;
                    }
                    Err(stop) => Err(stop),
                }
            } else {
                tx.send(chunk(i, e, size)).await
            };
            match done {
                Ok(()) => log.lock().unwrap().push((i, e)),
                Err(stop) => assert_eq!(stop, Stop::Stale, "somebody reads"),
            }
        }
        tx.finish(Terminal::End);
    });
    let (lanes, c, mut r) = (far.clone(), clock.clone(), Rng(rng.below(u64::MAX)));
    let outside = fences && rng.below(2) == 0;
    sim.spawn(async move {
        while outside && r.below(8) > 0 {
            c.sleep(Duration::from_millis(r.below(60))).await;
            lanes.fence(lane());
        }
    });
    let (mut told, mut got) = (Epoch(0), Vec::new());
    loop {
        if rng.below(4) == 0 {
            clock.sleep(Duration::from_millis(rng.below(40))).await;
        }
        match soon(&clock, "the next event", rx.next()).await {
            RawEvent::Data(c) => {
                assert_eq!(epoch(&c), told, "its fence came before, and no newer one");
                assert_eq!(epoch(&c), far.cell(lane()).epoch(), "nothing old comes after its fence");
                assert!(got.last().is_none_or(|l| *l < id(&c)), "in order, once");
                got.push(id(&c));
            }
            RawEvent::Fence(e) => {
                assert!(e > told);
                told = e;
            }
            RawEvent::End(t) => {
                assert!(matches!(t, Terminal::End), "{t:?}");
                break;
            }
        }
    }
    quiet(&clock).await;
    assert_eq!(edge.stats(clock.now()).used, Amount::ZERO, "no credit is lost");
    assert_eq!(rx.edge().stats(clock.now()).used, Amount::ZERO, "no credit is lost");
    let sent = sent.lock().unwrap();
    assert!(got.iter().all(|g| sent.iter().any(|(i, _)| i == g)), "what was not sent, does not come");
    if !fences {
        assert_eq!(got, sent.iter().map(|(i, _)| *i).collect::<Vec<_>>(), "nothing is lost");
    }
}

/// The edge in memory.
fn memory(sim: &SimHandle, spec: EdgeSpec) -> Ends {
    let lanes = Arc::new(Lanes::new());
    let (tx, rx) = Edge::open(spec, &lanes, &sim.clock());
    Ends { tx, rx, near: lanes.clone(), far: lanes }
}

#[test]
fn an_edge_in_memory_conforms() {
    conformance(100, memory);
}
