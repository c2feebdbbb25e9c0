//! A thousand sessions opened and aborted at random points leave nothing behind: no slot, no task, no node, no memory.

mod common;

use std::sync::atomic::Ordering;
use std::time::Duration;

use common::*;
use omni_flow::*;

const GRAPH: &str = "
graph: leaks
session: { mode: duplex, max-sessions: 8 }
lanes: [reply]
nodes:
  ask: { use: session.in, kind: text }
  turn: { use: test.turns, fences: reply, in: ask }
  pass: { use: test.pass, in: turn }
  twice: { use: test.repeat, times: 2, in: pass }
  speak: { use: test.speller, lane: reply, in: twice, place: shared }
  heard: { use: session.out, in: twice }
  say: { use: session.out, lane: reply, in: speak }
";

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Resident bytes of this process; `None` where the system does not tell.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// One session, ended in one of several ways after a random number of steps. Gives the handle back.
async fn one(graph: &Graph, rng: &mut u64) -> SessionHandle {
    let mut s = graph.open().expect("all earlier ones have let go");
    let handle = s.handle();
    let mut ask = s.input("ask");
    let mut say = s.output("say");
    for _ in 0..next(rng) % 12 {
        match next(rng) % 8 {
            0..=3 => {
                if let Some(ask) = &mut ask {
                    let word = ["hello", "!", "a*b", "panic", &"long".repeat(100)][(next(rng) % 5) as usize].to_owned();
                    // A full graph would wait for its reader, and that is us.
                    let _ = tokio::time::timeout(Duration::from_millis(1), ask.send(text(&word))).await;
                }
            }
            4 => {
                if let Some(say) = &mut say {
                    let _ = tokio::time::timeout(Duration::from_millis(1), say.next()).await;
                }
            }
            5 => drop(say.take()),
            6 => {
                s.fence(Lane::new(1).unwrap());
            }
            _ => tokio::task::yield_now().await,
        }
    }
    match next(rng) % 4 {
        0 => s.abort().await.expect("every node lets go"),
        1 => drop(s),
        2 => handle.cancel(),
        _ => drop(ask.take()),
    }
    handle.cancel();
    handle.ended().await;
    handle
}

fn quiet() {
    let old = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let told = |s: &str| s.contains("told to");
        let text = info.payload().downcast_ref::<&str>().copied();
        let text = text.or_else(|| info.payload().downcast_ref::<String>().map(String::as_str));
        if !text.is_some_and(told) {
            old(info);
        }
    }));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_sessions_leave_nothing_behind() {
    quiet();
    let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
    let graph = start(&engine, GRAPH).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let base = tasks();
    let mut rng = 7;
    let mut warm = None;
    for i in 0..1000 {
        let handle = one(&graph, &mut rng).await;
        let stats = handle.stats();
        assert!(stats.edges.iter().all(|e| e.ended), "session {i}: {stats:?}");
        drop(handle);
        if i == 200 {
            warm = resident();
        }
        assert_eq!(graph.stages()[0].1.leased, 0, "session {i} keeps its slot");
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(tasks(), base, "every task has ended");
    assert_eq!(SPELLERS.load(Ordering::SeqCst), 0, "every slot's state was dropped");
    let stage = graph.stages()[0].1;
    assert_eq!((stage.leased, stage.waiting, stage.bytes, stage.queued, stage.running), (0, 0, 0, 0, 0));
    let (Some(warm), Some(now)) = (warm, resident()) else {
        println!("skipped: the system does not tell how much memory a process holds");
        return;
    };
    let grown = now.saturating_sub(warm);
    assert!(grown < 5 << 20, "800 sessions left {grown} bytes");
}
