//! The edge under every interleaving: `RUSTFLAGS="--cfg omni_loom" cargo test -p omni-flow --lib --release loom_`.

use loom::future::block_on;

use super::*;
use crate::{Epoch, Epochs, MediaTime, Stamp};

fn lane() -> Lane {
    Lane::new(1).unwrap()
}
fn chunk(epoch: Epoch) -> Chunk {
    let stamp = Stamp { epochs: Epochs::FIRST.with(lane(), epoch), ..Stamp::default() };
    Chunk { stamp, payload: Payload::Text("x".into()) }
}
fn open(lanes: &Lanes, items: u64) -> (EdgeTx, EdgeRx) {
    let spec = EdgeSpec {
        name: "a.out->b.in".into(),
        from: "g/a".into(),
        to: "g/b".into(),
        lane: lane(),
        kind: Kind::of(Medium::Any),
        limit: Amount { items, bytes: 1000, span: MediaTime::from_millis(1000) },
        policy: Policy::Wait,
        deadline: None,
        whole: false,
        gated: false,
    };
    Edge::open(spec, lanes, &Clock::system())
}
fn model(f: impl Fn() + Send + Sync + 'static) {
    let mut b = loom::model::Builder::new();
    b.preemption_bound = Some(3);
    b.check(f);
}

/// First trap: a fence and a chunk of the new turn race with the receiver. The chunk never comes before its fence, and
/// nothing old after it.
#[test]
fn loom_fence_comes_before_newer_data() {
    model(|| {
        let lanes = std::sync::Arc::new(Lanes::new());
        let (tx, mut rx) = open(&lanes, 2);
        assert!(tx.try_send(chunk(Epoch(0))).is_ok());
        let l = lanes.clone();
        let t = loom::thread::spawn(move || {
            let e = l.fence(lane());
            assert!(tx.try_send(chunk(e)).is_ok(), "the swept edge has room");
            tx.finish(Terminal::End);
        });
        let mut told = Epoch(0);
        let mut news = 0;
        block_on(async {
            loop {
                match rx.next().await {
                    RawEvent::Data(c) => {
                        assert_eq!(c.stamp.epochs.of(lane()), told);
                        news += told.0;
                    }
                    RawEvent::Fence(e) => told = e,
                    RawEvent::End(_) => break,
                }
            }
        });
        assert_eq!((told, news), (Epoch(1), 1), "the new turn arrived, after its fence");
        t.join().unwrap();
    });
}

/// Second trap: the receiver never looks, the queue is full of the old turn; the new turn's chunk gets in all the same,
/// and a blocked old sender wakes.
#[test]
fn loom_stale_credit_never_blocks_the_new_turn() {
    model(|| {
        let lanes = std::sync::Arc::new(Lanes::new());
        let (tx, rx) = open(&lanes, 1);
        assert!(tx.try_send(chunk(Epoch(0))).is_ok());
        let l = lanes.clone();
        let t = loom::thread::spawn(move || l.fence(lane()));
        // Full: waits, until the fence makes it stale.
        let old = block_on(tx.send(chunk(Epoch(0))));
        assert_eq!(old, Err(Stop::Stale));
        let e = t.join().unwrap();
        assert_eq!(block_on(tx.send(chunk(e))), Ok(()));
        drop(rx);
    });
}

/// A sender that waits for credit is woken by the receiver, whatever the order.
#[test]
fn loom_no_wakeup_is_lost() {
    model(|| {
        let lanes = std::sync::Arc::new(Lanes::new());
        let (tx, mut rx) = open(&lanes, 1);
        let t = loom::thread::spawn(move || {
            block_on(async {
                assert_eq!(tx.send(chunk(Epoch(0))).await, Ok(()));
                assert_eq!(tx.send(chunk(Epoch(0))).await, Ok(()));
                tx.finish(Terminal::End);
            });
        });
        let mut got = 0;
        block_on(async {
            loop {
                match rx.next().await {
                    RawEvent::Data(_) => got += 1,
                    RawEvent::Fence(_) => panic!("no fence"),
                    RawEvent::End(_) => break,
                }
            }
        });
        assert_eq!(got, 2);
        t.join().unwrap();
    });
}

/// The same for a consumer that takes chunks ahead: the credit of those comes back, and wakes the sender.
#[test]
fn loom_no_wakeup_is_lost_to_chunks_taken_ahead() {
    model(|| {
        let lanes = std::sync::Arc::new(Lanes::new());
        let (tx, rx) = open(&lanes, 2);
        let mut rx = rx.taking_ahead(1);
        let t = loom::thread::spawn(move || {
            block_on(async {
                for _ in 0..4 {
                    assert_eq!(tx.send(chunk(Epoch(0))).await, Ok(()));
                }
                tx.finish(Terminal::End);
            });
        });
        let mut got = Vec::new();
        block_on(async { while matches!(rx.next_into(&mut got).await, Taken::Data) {} });
        assert_eq!(got.len(), 4);
        assert_eq!(rx.edge().stats(Mono(0)).used, Amount::ZERO);
        t.join().unwrap();
    });
}

/// Who waits for a fence hears of it, also when it comes between the look and the wait.
#[test]
fn loom_fence_is_heard() {
    model(|| {
        let lanes = std::sync::Arc::new(Lanes::new());
        let l = lanes.clone();
        let t = loom::thread::spawn(move || l.fence(lane()));
        assert_eq!(block_on(lanes.fenced(lane(), Epoch(0))), Epoch(1));
        t.join().unwrap();
    });
}

/// A sender dropped without a terminal is an error at the receiver, never a hang.
#[test]
fn loom_a_lost_producer_is_noticed() {
    model(|| {
        let lanes = std::sync::Arc::new(Lanes::new());
        let (tx, mut rx) = open(&lanes, 1);
        let t = loom::thread::spawn(move || drop(tx));
        let end = block_on(rx.next());
        assert!(matches!(end, RawEvent::End(Terminal::Error(_))));
        t.join().unwrap();
    });
}
