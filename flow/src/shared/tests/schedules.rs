//! Random but seeded schedules. The executor polls only tasks that were woken, so a lost wake-up shows as a schedule that
//! stands still.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use super::*;

struct Rng(u64);
impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}
struct Flag(AtomicBool);
impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}
type Task = (Arc<Flag>, Pin<Box<dyn Future<Output = ()>>>);
type Tasks = Rc<RefCell<Vec<Option<Task>>>>;

/// Polls a woken task or runs a job, at random; false when neither is possible.
fn turn(tasks: &Tasks, pool: &Pool, rng: &mut Rng) -> bool {
    let woken: Vec<usize> = {
        let list = tasks.borrow();
        let woken = |i: &usize| list[*i].as_ref().is_some_and(|t| t.0.0.load(Ordering::SeqCst));
        (0..list.len()).filter(woken).collect()
    };
    let n = rng.below(woken.len() + 1);
    if n == woken.len() {
        return pool.turn() || (!woken.is_empty() && poll(tasks, woken[0]));
    }
    poll(tasks, woken[n])
}
fn poll(tasks: &Tasks, i: usize) -> bool {
    let Some((flag, mut task)) = tasks.borrow_mut()[i].take() else { return false };
    flag.0.store(false, Ordering::SeqCst);
    let waker = Waker::from(flag.clone());
    if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        tasks.borrow_mut()[i] = Some((flag, task));
    }
    true
}
fn spawn(tasks: &Tasks, f: impl Future<Output = ()> + 'static) {
    tasks.borrow_mut().push(Some((Arc::new(Flag(AtomicBool::new(true))), Box::pin(f))));
}
/// Another job runs while the next unit does, as on a second thread.
fn second_worker(pool: &Pool) {
    let pool = pool.clone();
    HOOK.set(Some(Box::new(move || {
        pool.turn();
    })));
}
fn random_config(rng: &mut Rng) -> StageConfig {
    StageConfig { max_batch: 1 + rng.below(3), concurrency: 1 + rng.below(2), ..slots(1 + rng.below(3)) }
}
fn random_priority(rng: &mut Rng) -> Priority {
    match rng.below(3) {
        0 => Priority::first(rng.below(4) as u32, Mono(0)),
        1 => Priority::playing(Mono(rng.below(1 << 20) as u64), Mono(0)),
        _ => Priority::background(Mono(0)),
    }
}
fn word(rng: &mut Rng) -> String {
    (0..rng.below(4)).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}

/// Any number of streams, any interleaving: all end, with all of their output, admitted in order of arrival.
#[test]
fn all_streams_end_under_ten_thousand_schedules() {
    for seed in 0..10_000 {
        let mut rng = Rng(seed);
        let pool = Pool::manual(ticking());
        let h = share(random_config(&mut rng), &pool);
        let tasks = Tasks::default();
        let ended = Rc::new(RefCell::new(0));
        let count = 1 + rng.below(7);
        for n in 0..count {
            let (h, ended, mut rng) = (h.clone(), ended.clone(), Rng(seed * 100 + n as u64));
            spawn(&tasks, async move {
                let mut l = h.admit().await.unwrap();
                let (mut sent, mut got) = (String::new(), String::new());
                for _ in 0..rng.below(3) {
                    let w = word(&mut rng);
                    let mut more = l.input(&Stamp::default(), w.as_str().into()).unwrap();
                    sent.push_str(&w);
                    while more && rng.below(3) > 0 {
                        let a = l.advance(random_priority(&mut rng)).await.unwrap();
                        got.push_str(&text(&a.outputs));
                        more = a.more;
                    }
                }
                got.push_str(&drain(&mut l, random_priority(&mut rng)).await.unwrap());
                assert_eq!(got, sent + ".");
                *ended.borrow_mut() += 1;
            });
        }
        while turn(&tasks, &pool, &mut rng) {
            if rng.below(4) == 0 {
                second_worker(&pool);
            }
        }
        HOOK.take();
        assert_eq!(*ended.borrow(), count, "seed {seed}: a stream stands still");
        let s = h.stats();
        let left = (s.leased, s.waiting, s.queued, s.running, h.stage().live.load(Ordering::SeqCst));
        assert_eq!(left, (0, 0, 0, 0, 0), "seed {seed}");
    }
}

/// Sessions are dropped at random points: while they wait for a slot, between units, while a unit is queued, and from
/// within a running unit. Some units panic. Afterwards all is free, and the rest have ended.
#[test]
fn nothing_is_left_after_ten_thousand_aborts() {
    let mut inside = 0;
    for seed in 0..10_000 {
        let mut rng = Rng(seed);
        let pool = Pool::manual(ticking());
        let h = share(random_config(&mut rng), &pool);
        let tasks = Tasks::default();
        for n in 0..2 + rng.below(5) {
            let (h, mut rng) = (h.clone(), Rng(seed * 77 + n as u64));
            spawn(&tasks, async move {
                let Ok(mut l) = h.admit().await else { return };
                for _ in 0..4 {
                    let w = word(&mut rng) + ["", "", "!", "?", "*"][rng.below(5)];
                    let Ok(_) = l.input(&Stamp::default(), w.as_str().into()) else { return };
                    match rng.below(3) {
                        0 => drop(l.fence().await),
                        1 => drop(l.advance(random_priority(&mut rng)).await),
                        _ => drop(drain(&mut l, random_priority(&mut rng)).await),
                    }
                }
            });
        }
        let mut steps = 0;
        while turn(&tasks, &pool, &mut rng) {
            steps += 1;
            assert!(steps < 10_000, "seed {seed}: it never ends");
            if rng.below(4) == 0 {
                second_worker(&pool);
            }
            if rng.below(12) == 0 {
                let n = rng.below(tasks.borrow().len());
                if rng.below(2) == 0 {
                    let victim = tasks.borrow_mut()[n].take();
                    drop(victim);
                } else {
                    let tasks = tasks.clone();
                    HOOK.set(Some(Box::new(move || {
                        let victim = tasks.borrow_mut()[n].take();
                        drop(victim);
                    })));
                }
            }
        }
        inside += usize::from(HOOK.take().is_none());
        assert!(tasks.borrow().iter().all(Option::is_none), "seed {seed}: a session stands still");
        let s = h.stats();
        let left = (s.leased, s.waiting, s.queued, s.running, s.bytes, h.stage().live.load(Ordering::SeqCst));
        assert_eq!(left, (0, 0, 0, 0, 0, 0), "seed {seed}");
        let all: Vec<_> = (0..s.slots).map(|_| h.lease().unwrap()).collect();
        let generations: u64 = all.iter().map(|l| l.id().generation).sum();
        assert_eq!(generations, s.leases, "seed {seed}: every lease has come back exactly once");
    }
    assert!(inside > 1000, "the hook must really run");
}

/// The same with real threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_after_aborts_on_threads() {
    let pool = Pool::new(&PoolConfig { threads: 3, ..PoolConfig::default() }, ticking()).unwrap();
    let h = share(StageConfig { waiters: 1000, max_batch: 2, concurrency: 2, ..slots(4) }, &pool);
    let mut tasks = Vec::new();
    for n in 0..400u64 {
        let h = h.clone();
        tasks.push(tokio::spawn(async move {
            let mut rng = Rng(n);
            let Ok(mut l) = h.admit().await else { return };
            l.input(&Stamp::default(), "abcdefgh".into()).unwrap();
            for _ in 0..rng.below(9) {
                l.advance(random_priority(&mut rng)).await.unwrap();
            }
            if n % 2 == 0 {
                drop(poke(Box::pin(l.advance(idle(0))).as_mut())); // leaves with a unit under way
            } else {
                drain(&mut l, idle(0)).await.unwrap();
            }
        }));
    }
    for t in tasks {
        t.await.unwrap();
    }
    pool.shutdown();
    let s = h.stats();
    let left = (s.leased, s.waiting, s.queued, s.running, h.stage().live.load(Ordering::SeqCst));
    assert_eq!(left, (0, 0, 0, 0, 0));
    assert_eq!(s.leases, 400);
}
