//! The pool without threads, where order can be seen, and with threads, where panics and ends matter.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use super::*;

fn still() -> Now {
    Arc::new(|| Mono::ZERO)
}
fn pool(threads: usize, queue: usize) -> Pool {
    Pool::new(&PoolConfig { threads, queue, ..PoolConfig::default() }, still()).unwrap()
}
fn idle() -> Priority {
    Priority::background(Mono::ZERO)
}

#[tokio::test]
async fn gives_results_and_survives_panics() {
    let p = pool(2, 16);
    assert_eq!(p.run(idle(), || 6 * 7).await, Ok(42));
    let e = p.run(idle(), || -> u32 { panic!("oh {}", 1) }).await;
    assert_eq!(e, Err(PoolError::Panicked { message: "oh 1".to_owned() }));
    let e = p.run(idle(), || std::panic::panic_any(5u8)).await;
    assert_eq!(e, Err(PoolError::Panicked { message: "a value that is not text".to_owned() }));
    assert_eq!(p.run(idle(), || 1).await, Ok(1));
    p.shutdown();
    let s = p.stats();
    assert_eq!((s.threads, s.done, s.panicked, s.running, s.queued), (2, 4, 2, 0, 0));
    assert_eq!(p.run(idle(), || 1).await, Err(PoolError::Closed));
}
#[tokio::test]
async fn is_bounded_and_ordered_and_skips_what_nobody_wants() {
    let p = pool(1, 3);
    let (open, gate) = mpsc::channel::<()>();
    let (started, is_started) = mpsc::channel();
    let busy = p.run(idle(), move || {
        started.send(()).unwrap();
        gate.recv()
    });
    is_started.recv().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = |n: u32| {
        let log = log.clone();
        move || log.lock().unwrap().push(n)
    };
    let last = p.run(idle(), note(2));
    let dropped = p.run(idle(), note(9));
    let first = p.run(Priority::first(0, Mono::ZERO), note(1));
    assert_eq!(p.run(idle(), note(8)).await, Err(PoolError::Full { queue: 3 }));
    drop(dropped);
    assert_eq!(p.stats().queued, 2, "it has left the queue at once");
    open.send(()).unwrap();
    assert_eq!((busy.await, last.await, first.await), (Ok(Ok(())), Ok(()), Ok(())));
    assert_eq!(*log.lock().unwrap(), [1, 2]);
    let s = p.stats();
    assert_eq!((s.refused, s.skipped, s.queued_peak), (1, 1, 3));
}
#[tokio::test]
async fn shutting_down_lets_running_jobs_end_and_tells_waiting_ones() {
    let p = pool(1, 8);
    let (open, gate) = mpsc::channel::<()>();
    let (started, is_started) = mpsc::channel();
    let running = p.run(idle(), move || {
        started.send(()).unwrap();
        gate.recv().map(|()| 7)
    });
    let waiting = p.run(idle(), || 1);
    is_started.recv().unwrap();
    let closer = {
        let p = p.clone();
        std::thread::spawn(move || p.shutdown())
    };
    assert_eq!(waiting.await, Err(PoolError::Closed));
    open.send(()).unwrap();
    assert_eq!(running.await, Ok(Ok(7)));
    closer.join().unwrap();
}
#[tokio::test]
async fn a_job_may_hold_the_last_handle_and_may_shut_down() {
    let p = pool(1, 8);
    let inner = p.clone();
    let job = p.run(idle(), move || inner.shutdown());
    drop(p);
    assert_eq!(job.await, Ok(()));
}
#[tokio::test]
async fn inline_jobs_run_on_the_caller_and_nested_ones_after_it() {
    let p = Pool::inline(still());
    let me = std::thread::current().id();
    let log = Arc::new(Mutex::new(Vec::new()));
    let (inner, inner_log) = (p.clone(), log.clone());
    let outer = p.run(idle(), move || {
        let log = inner_log.clone();
        let nested = inner.run(idle(), move || log.lock().unwrap().push("nested"));
        inner_log.lock().unwrap().push("outer");
        (nested, std::thread::current().id())
    });
    assert_eq!(*log.lock().unwrap(), ["outer", "nested"]);
    let (nested, thread) = outer.await.unwrap();
    assert_eq!((nested.await, thread), (Ok(()), me));
    assert!(!p.turn());
}
#[test]
fn a_manual_pool_runs_one_job_a_turn() {
    let p = Pool::manual(still());
    let n = Arc::new(AtomicUsize::new(0));
    let count = |p: &Pool| {
        let n = n.clone();
        p.run(idle(), move || n.fetch_add(1, Ordering::SeqCst))
    };
    let _jobs = (count(&p), count(&p));
    assert!(p.turn());
    assert_eq!(n.load(Ordering::SeqCst), 1);
    assert!(p.turn() && !p.turn());
}
