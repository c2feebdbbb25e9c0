//! Shared stages with a stage that counts: one unit per character of its input.

mod schedules;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::*;
use crate::pool::{Now, Pool, PoolConfig, PoolError, Priority};
use crate::{MediaTime, Medium, Mono, Payload, Stamp};

thread_local! {
    /// Called once from within the next unit.
    static HOOK: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Echoes its input, one character per unit, and a full stop after the end. `!` panics, `?` fails, `*` panics the whole
/// batch, `#` waits for the gate.
#[derive(Default)]
struct Echo {
    live: Arc<AtomicUsize>,
    log: Mutex<Vec<(usize, char)>>,
    batches: Mutex<Vec<usize>>,
    gate: Mutex<Option<std::sync::mpsc::Receiver<()>>>,
    reached: Mutex<Option<std::sync::mpsc::Sender<()>>>,
}
struct EchoSlot {
    todo: VecDeque<(Stamp, char)>,
    ended: bool,
    last: Stamp,
    live: Arc<AtomicUsize>,
}
impl Drop for EchoSlot {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}
impl Stage for Echo {
    type In = Arc<str>;
    type Out = Arc<str>;
    type Slot = EchoSlot;
    fn open(&self, _: SlotId) -> Result<EchoSlot, StageError> {
        self.live.fetch_add(1, Ordering::SeqCst);
        Ok(EchoSlot { todo: VecDeque::new(), ended: false, last: Stamp::default(), live: self.live.clone() })
    }
    fn slot_bytes(&self, slot: &EchoSlot) -> u64 {
        slot.todo.len() as u64 * 10
    }
    fn accept(&self, slot: &mut EchoSlot, stamp: &Stamp, input: Arc<str>) -> Result<(), StageError> {
        assert!(!input.contains('~'), "accept panics");
        slot.todo.extend(input.chars().map(|c| (*stamp, c)));
        slot.last = *stamp;
        Ok(())
    }
    fn ready(&self, slot: &EchoSlot) -> bool {
        !slot.todo.is_empty() || slot.ended
    }
    fn unit(&self, m: &mut Member<Self>) -> Result<(), StageError> {
        if let Some(f) = HOOK.take() {
            f();
        }
        let index = m.id().index;
        let slot = m.slot();
        let Some((stamp, c)) = slot.todo.pop_front() else {
            let last = slot.last;
            if std::mem::take(&mut slot.ended) {
                m.put(&last, MediaTime::ZERO, MediaTime::ZERO, ".".into());
            }
            return Ok(());
        };
        self.log.lock().unwrap().push((index, c));
        m.emit(stamp, c.to_string().into());
        match c {
            '!' => std::panic::resume_unwind(Box::new("unit panics")), // a panic that prints nothing
            '?' => Err(StageError::failed("no such character")),
            '#' => {
                if let Some(reached) = &*self.reached.lock().unwrap() {
                    reached.send(()).unwrap();
                }
                let gate = self.gate.lock().unwrap().take();
                gate.map_or(Ok(()), |g| g.recv().map_err(StageError::failed))
            }
            _ => Ok(()),
        }
    }
    fn run(&self, batch: &mut Batch<'_, Self>) {
        self.batches.lock().unwrap().push(batch.len());
        let poisoned = batch.iter_mut().any(|m| m.slot().todo.front().is_some_and(|t| t.1 == '*'));
        if poisoned {
            std::panic::resume_unwind(Box::new("batch panics"));
        }
        batch.each(|m| self.unit(m));
    }
    fn fence(&self, slot: &mut EchoSlot) {
        slot.todo.clear();
        slot.ended = false;
    }
    fn end(&self, slot: &mut EchoSlot) -> Result<(), StageError> {
        slot.ended = true;
        Ok(())
    }
}

/// A clock that moves by a microsecond each time it is read.
fn ticking() -> Now {
    let t = AtomicU64::new(0);
    Arc::new(move || Mono(t.fetch_add(1000, Ordering::Relaxed)))
}
fn still() -> Now {
    Arc::new(|| Mono::ZERO)
}
fn share(config: StageConfig, pool: &Pool) -> StageHandle<Echo> {
    StageHandle::new(Echo::default(), config, pool.clone(), ticking())
}
fn slots(n: usize) -> StageConfig {
    StageConfig { slots: n, ..StageConfig::default() }
}
fn idle(n: u64) -> Priority {
    Priority::background(Mono(n))
}
fn text(outputs: &[(Stamp, Arc<str>)]) -> String {
    outputs.iter().map(|o| &*o.1).collect()
}
/// Runs the stream to its end and gives all that came out.
async fn drain(l: &mut Leased<Echo>, priority: Priority) -> Result<String, StageError> {
    let (mut all, mut more) = (String::new(), l.end()?);
    while more {
        let a = l.advance(priority).await?;
        all.push_str(&text(&a.outputs));
        more = a.more;
    }
    Ok(all)
}
/// Polls once with a waker that does nothing.
fn poke<F: Future>(f: Pin<&mut F>) -> Poll<F::Output> {
    f.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn two_streams_interleave_unit_by_unit_on_one_thread() {
    let h = share(slots(2), &Pool::inline(ticking()));
    let mut tasks = Vec::new();
    for word in ["aaaa", "bbbb"] {
        let h = h.clone();
        tasks.push(tokio::spawn(async move {
            let mut l = h.lease().unwrap();
            l.input(&Stamp::default(), word.into()).unwrap();
            drain(&mut l, idle(0)).await.unwrap()
        }));
    }
    let mut got = Vec::new();
    for t in tasks {
        got.push(t.await.unwrap());
    }
    assert_eq!(got, ["aaaa.", "bbbb."]);
    let log: String = h.stage().log.lock().unwrap().iter().map(|l| l.1).collect();
    assert_eq!(log, "abababab");
}

#[test]
fn first_chunk_overtakes_then_deadlines_then_background() {
    let pool = Pool::manual(still());
    let h = StageHandle::new(Echo::default(), slots(8), pool.clone(), still());
    let ms = |n: u64| Mono(n * 1_000_000);
    let wanted = [
        ("z", Priority::background(ms(0))),
        ("d", Priority::playing(ms(800), ms(0))),
        ("c", Priority::playing(ms(300), ms(0))),
        ("b", Priority::first(1, ms(0))),
        ("a", Priority::first(5, ms(0))),
    ];
    let mut streams: Vec<_> = wanted.iter().map(|_| h.lease().unwrap()).collect();
    let mut units = Vec::new();
    for (l, (word, p)) in streams.iter_mut().zip(wanted) {
        assert!(l.input(&Stamp::default(), word.into()).unwrap());
        units.push(Box::pin(l.advance(p)));
    }
    for u in &mut units {
        assert!(poke(u.as_mut()).is_pending());
    }
    while pool.turn() {}
    let log: String = h.stage().log.lock().unwrap().iter().map(|l| l.1).collect();
    assert_eq!(log, "abcdz");
    for u in &mut units {
        assert!(matches!(poke(u.as_mut()), Poll::Ready(Ok(Advance { more: false, .. }))));
    }
}

#[tokio::test]
async fn a_panic_or_an_error_fails_its_stream_only() {
    let pool = Pool::manual(still());
    let config = StageConfig { max_batch: 4, ..slots(4) };
    let h = StageHandle::new(Echo::default(), config, pool.clone(), still());
    let mut streams: Vec<_> = (0..4).map(|_| h.lease().unwrap()).collect();
    let mut units = Vec::new();
    for (l, word) in streams.iter_mut().zip(["ok", "!", "?", "fine"]) {
        l.input(&Stamp::default(), word.into()).unwrap();
        units.push(Box::pin(l.advance(idle(0))));
    }
    for u in &mut units {
        assert!(poke(u.as_mut()).is_pending());
    }
    while pool.turn() {}
    assert_eq!(*h.stage().batches.lock().unwrap(), [4], "all ran together");
    let mut results = Vec::new();
    for u in units {
        results.push(u.await);
    }
    assert_eq!(text(&results[0].as_ref().unwrap().outputs), "o");
    assert!(matches!(&results[1], Err(StageError::Panicked { message }) if message == "unit panics"));
    assert!(matches!(&results[2], Err(StageError::Failed(e)) if e.to_string() == "no such character"));
    assert_eq!(text(&results[3].as_ref().unwrap().outputs), "f");
    assert_eq!(h.stage().live.load(Ordering::SeqCst), 2, "failed states are dropped at once");
    assert_eq!(h.stats().leased, 2, "and their slots are free");
    assert!(matches!(streams[1].input(&Stamp::default(), "x".into()), Err(StageError::Ended)));
    assert!(matches!(streams[1].advance(idle(0)).await, Err(StageError::Ended)));
    let s = h.stats();
    assert_eq!((s.failed, s.panicked, s.units, s.batches, s.largest_batch), (2, 1, 4, 1, 4));
    let again = h.lease().unwrap();
    assert!(again.id().generation > 0, "a used slot has a new generation");
    assert!(!h.is_current(streams[1].id()) && h.is_current(again.id()) && h.is_current(streams[0].id()));
}

#[tokio::test]
async fn a_panic_outside_a_streams_part_fails_its_batch_only() {
    let pool = Pool::inline(still());
    let config = StageConfig { max_batch: 2, ..slots(3) };
    let h = StageHandle::new(Echo::default(), config, pool, still());
    let (mut a, mut b, mut c) = (h.lease().unwrap(), h.lease().unwrap(), h.lease().unwrap());
    for (l, w) in [(&mut a, "*"), (&mut b, "b"), (&mut c, "c")] {
        l.input(&Stamp::default(), w.into()).unwrap();
    }
    let (ra, rb, rc) = tokio::join!(a.advance(idle(0)), b.advance(idle(1)), c.advance(idle(2)));
    assert!(matches!(ra, Err(StageError::Panicked { .. })) && matches!(rb, Err(StageError::Panicked { .. })));
    assert_eq!(text(&rc.unwrap().outputs), "c");
}

#[tokio::test]
async fn a_panic_in_accept_costs_that_stream() {
    let h = share(slots(1), &Pool::inline(still()));
    let mut l = h.lease().unwrap();
    assert!(matches!(l.input(&Stamp::default(), "~".into()), Err(StageError::Panicked { .. })));
    assert_eq!(h.stats().leased, 0);
    assert!(h.lease().is_ok());
}

#[tokio::test]
async fn a_fence_withdraws_a_queued_unit() {
    let pool = Pool::manual(still());
    let h = share(slots(1), &pool);
    let mut l = h.lease().unwrap();
    l.input(&Stamp::default(), "old".into()).unwrap();
    assert!(poke(Box::pin(l.advance(idle(0))).as_mut()).is_pending());
    assert!(l.is_busy() && matches!(l.input(&Stamp::default(), "x".into()), Err(StageError::Busy)));
    l.fence().await.unwrap();
    while pool.turn() {}
    assert!(h.stage().log.lock().unwrap().is_empty(), "it never ran");
    assert!(!l.ready().unwrap());
    assert!(l.input(&Stamp::default(), "n".into()).unwrap());
}

#[tokio::test]
async fn a_fence_drops_what_a_running_unit_brings() {
    let pool = Pool::new(&PoolConfig { threads: 1, ..PoolConfig::default() }, ticking()).unwrap();
    let h = share(slots(1), &pool);
    let (open, gate) = std::sync::mpsc::channel();
    let (reached, at) = std::sync::mpsc::channel();
    *h.stage().gate.lock().unwrap() = Some(gate);
    *h.stage().reached.lock().unwrap() = Some(reached);
    let mut l = h.lease().unwrap();
    l.input(&Stamp::default(), "#old".into()).unwrap();
    assert!(poke(Box::pin(l.advance(idle(0))).as_mut()).is_pending());
    at.recv().unwrap();
    assert!(poke(Box::pin(l.fence()).as_mut()).is_pending(), "the unit runs");
    open.send(()).unwrap();
    assert_eq!(drain_after_fence(&mut l).await, "new.", "nothing of before the fence, though it was cancelled");
    assert_eq!(h.stage().log.lock().unwrap().len(), 1 + 3);
    drop(l);
    assert_eq!(h.stats().leased, 0);
    pool.shutdown();
}
async fn drain_after_fence(l: &mut Leased<Echo>) -> String {
    l.fence().await.unwrap();
    l.input(&Stamp::default(), "new".into()).unwrap();
    drain(l, idle(0)).await.unwrap()
}

#[tokio::test]
async fn closing_waits_until_the_stage_has_let_go() {
    let pool = Pool::new(&PoolConfig { threads: 1, ..PoolConfig::default() }, ticking()).unwrap();
    let h = share(slots(1), &pool);
    let (open, gate) = std::sync::mpsc::channel();
    let (reached, at) = std::sync::mpsc::channel();
    *h.stage().gate.lock().unwrap() = Some(gate);
    *h.stage().reached.lock().unwrap() = Some(reached);
    let mut l = h.lease().unwrap();
    l.input(&Stamp::default(), "#".into()).unwrap();
    assert!(poke(Box::pin(l.advance(idle(0))).as_mut()).is_pending());
    at.recv().unwrap();
    let mut closing = Box::pin(l.close());
    assert!(poke(closing.as_mut()).is_pending() && h.lease().is_err());
    open.send(()).unwrap();
    closing.await;
    assert_eq!(h.stage().live.load(Ordering::SeqCst), 0);
    let next = h.lease().unwrap();
    assert_eq!(next.id(), SlotId { index: 0, generation: 1 });
    next.close().await;
    assert_eq!(h.stats().leased, 0);
    pool.shutdown();
}

#[tokio::test]
async fn an_interrupted_advance_goes_on() {
    let pool = Pool::manual(still());
    let h = share(slots(1), &pool);
    let mut l = h.lease().unwrap();
    l.input(&Stamp::default(), "ab".into()).unwrap();
    assert!(poke(Box::pin(l.advance(idle(0))).as_mut()).is_pending());
    while pool.turn() {}
    let a = l.advance(idle(0)).await.unwrap();
    assert_eq!((text(&a.outputs).as_str(), a.more), ("a", true));
    assert_eq!(h.stats().units, 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_for_company_but_not_for_long() {
    let pool = Pool::inline(still());
    let config = StageConfig { max_batch: 2, max_wait: Duration::from_millis(5), ..slots(3) };
    let h = StageHandle::new(Echo::default(), config, pool, still());
    let (mut a, mut b, _c) = (h.lease().unwrap(), h.lease().unwrap(), h.lease().unwrap());
    for l in [&mut a, &mut b] {
        l.input(&Stamp::default(), "xy".into()).unwrap();
    }
    let before = tokio::time::Instant::now();
    a.advance(idle(0)).await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_millis(5), "alone, it waited");
    let (ra, rb) = tokio::join!(a.advance(idle(0)), b.advance(idle(0)));
    assert!(ra.is_ok() && rb.is_ok());
    assert_eq!(before.elapsed(), Duration::from_millis(5), "a full batch does not wait");
    assert_eq!(*h.stage().batches.lock().unwrap(), [1, 2]);
}

#[tokio::test]
async fn slots_are_bounded_counted_and_first_come_first_served() {
    let config = StageConfig { waiters: 2, slot_bytes: 15, ..slots(1) };
    let h = share(config, &Pool::inline(still()));
    let mut l = h.lease().unwrap();
    assert!(matches!(h.lease(), Err(LeaseError::Full { slots: 1, waiting: 0 })));
    assert_eq!(h.stats().bytes, 15, "the declared size counts");
    l.input(&Stamp::default(), "four".into()).unwrap();
    assert_eq!((h.stats().bytes, h.slots()[0].peak), (40, 40), "the measured size counts");
    let (mut w1, mut w2, mut w3) = (Box::pin(h.admit()), Box::pin(h.admit()), Box::pin(h.admit()));
    assert!(poke(w1.as_mut()).is_pending() && poke(w2.as_mut()).is_pending());
    let Poll::Ready(Err(e)) = poke(w3.as_mut()) else { panic!("the queue is bounded") };
    assert_eq!(e.code(), "resource_exhausted");
    drop(l);
    assert!(h.lease().is_err(), "an immediate lease does not overtake");
    assert!(poke(w2.as_mut()).is_pending());
    drop(w1); // it had been given the slot and never took it
    let Poll::Ready(Ok(second)) = poke(w2.as_mut()) else { panic!("the next is served") };
    assert_eq!(second.id().generation, 2);
    let mut w4 = Box::pin(h.admit());
    assert!(poke(w4.as_mut()).is_pending());
    h.close();
    assert!(matches!(poke(w4.as_mut()), Poll::Ready(Err(LeaseError::Closed))));
    drop(second);
    assert!(matches!(h.lease(), Err(LeaseError::Closed)));
    let s = h.stats();
    assert_eq!((s.leased, s.waiting, s.bytes, s.bytes_peak), (0, 0, 0, 40));
}

#[test]
fn memory_is_a_bound_too() {
    let config = StageConfig { slot_bytes: 20, memory: Some(50), ..slots(8) };
    let h = share(config, &Pool::inline(still()));
    let mut a = h.lease().unwrap();
    let _b = h.lease().unwrap();
    assert!(matches!(h.lease(), Err(LeaseError::Memory { in_use: 40, needed: 20, limit: 50 })));
    let mut waits = Box::pin(h.admit());
    assert!(poke(waits.as_mut()).is_pending());
    a.input(&Stamp::default(), "grown".into()).unwrap();
    drop(a);
    assert!(matches!(poke(waits.as_mut()), Poll::Ready(Ok(_))));
    let never = share(StageConfig { slot_bytes: 20, memory: Some(10), ..slots(8) }, &Pool::inline(still()));
    assert!(matches!(poke(Box::pin(never.admit()).as_mut()), Poll::Ready(Err(LeaseError::Memory { .. }))));
}

#[tokio::test]
async fn a_shut_pool_tells_those_who_wait() {
    let pool = Pool::manual(still());
    let h = share(slots(2), &pool);
    let (mut a, mut b) = (h.lease().unwrap(), h.lease().unwrap());
    for l in [&mut a, &mut b] {
        l.input(&Stamp::default(), "x".into()).unwrap();
    }
    let mut waiting = Box::pin(a.advance(idle(0)));
    assert!(poke(waiting.as_mut()).is_pending());
    pool.shutdown();
    assert!(matches!(waiting.await, Err(StageError::Pool(PoolError::Closed))));
    assert!(matches!(b.advance(idle(0)).await, Err(StageError::Pool(PoolError::Closed))));
    assert_eq!(h.stats().leased, 0);
}

#[tokio::test]
async fn without_types_a_wrong_payload_is_an_error_and_the_stream_goes_on() {
    let h: Arc<dyn AnyStage> = Arc::new(share(slots(1), &Pool::inline(still())));
    assert_eq!((h.takes(), h.gives()), (Medium::Text, Medium::Text));
    let mut l = h.admit().await.unwrap();
    let wrong = l.input(&Stamp::default(), Payload::Custom(Arc::new(0)));
    assert!(matches!(wrong, Err(StageError::WrongKind { expected: Medium::Text, got: Medium::Any })));
    assert!(l.input(&Stamp::default(), Payload::Text("a".into())).unwrap());
    let a = l.advance(idle(0)).await.unwrap();
    assert!(matches!(&a.outputs[..], [(_, Payload::Text(t))] if &**t == "a"));
    assert!(l.end().unwrap());
    assert!(!l.advance(idle(0)).await.unwrap().more);
    l.fence().await.unwrap();
    assert_eq!((h.stats().units, h.slots().len()), (2, 1));
}
