use super::super::{Adaptive, ChunkConfig};
use super::*;
use proptest::prelude::*;

fn chunker(json: &str) -> Chunker {
    let config: ChunkConfig = serde_json::from_str(json).expect("valid keys");
    Chunker::new(config.policy().expect("valid policy").0, StreamStart::default())
}
/// Sizes of the chunks for `total` frames in bursts of `burst`, the last being what `finish` gives.
fn sizes(json: &str, total: usize, burst: usize) -> Vec<u64> {
    let mut c = chunker(json);
    let mut out = Vec::new();
    let mut left = total;
    while left > 0 {
        let n = burst.min(left);
        left -= n;
        out.extend(c.push(n, Mono::ZERO).map(|e| e.frames));
    }
    out.push(c.finish().frames);
    out
}
fn lens(json: &str, total: usize) -> Vec<u64> {
    let mut c = chunker(json);
    let emitted = |n| c.push(1, Mono::ZERO).map(|_| n);
    (1..=total as u64).filter_map(emitted).collect()
}

#[test]
fn fixed() {
    assert_eq!(sizes(r#"{"initial": 0}"#, 60, 1), [25, 25, 10]);
    assert_eq!(sizes(r#"{"initial": 0}"#, 60, 60), [60, 0], "a burst is one chunk, and the end is empty");
}
#[test]
fn two_phase() {
    assert_eq!(lens(r#"{"initial": 10}"#, 84), [10, 35, 60]);
    assert_eq!(sizes(r#"{"initial": 10}"#, 5, 1), [5]);
    assert_eq!(sizes(r#"{"initial": 10}"#, 33, 1), [10, 23]);
    assert_eq!(lens(r#"{"initial": 8, "size": 16}"#, 40), [8, 24, 40]);
    assert_eq!(lens(r#"{"initial": 5}"#, 79), [5, 30, 55]);
    assert_eq!(sizes(r#"{"initial": 1, "size": 15}"#, 40, 1), [1, 15, 15, 9]);
    assert_eq!(sizes(r#"{"initial": 40}"#, 30, 1), [25, 5], "clamped to the size");
}
#[test]
fn ramp() {
    let long = r#"{"ramp": [1, 4, 8, 16, 25]}"#;
    assert_eq!(lens(long, 104), [1, 5, 13, 29, 54, 79, 104]);
    assert_eq!(lens(r#"{"ramp": [1, 4]}"#, 55), [1, 5, 30, 55]);
    assert_eq!(sizes(r#"{"ramp": [1, 2, 4, 8, 15], "size": 15}"#, 40, 1), [1, 2, 4, 8, 15, 10]);
    assert_eq!(sizes(r#"{"ramp": [1, 4, 15], "size": 15}"#, 40, 1), [1, 4, 15, 15, 5]);
    assert_eq!(sizes(r#"{"ramp": [4, 8, 15], "size": 15}"#, 40, 1), [4, 8, 15, 13]);
    assert_eq!(sizes(r#"{"ramp": [1, 20, 15], "size": 15}"#, 40, 1), [1, 20, 15, 4]);
    assert_eq!(sizes(long, 60, 3), [3, 3, 9, 15, 24, 6]);
    assert_eq!(sizes(long, 3, 1), [1, 2]);
    assert_eq!(sizes(long, 1, 1), [1, 0], "nothing left still ends, with an empty end");
}
#[test]
fn double() {
    let json = r#"{"factor": 2, "max": 100}"#;
    assert_eq!(sizes(json, 350, 1), [25, 50, 100, 100, 75]);
    assert_eq!(sizes(r#"{"size": 3, "factor": 1.5}"#, 25, 1), [3, 4, 6, 10, 2]);
    assert_eq!(sizes(r#"{"size": 5, "factor": 1}"#, 12, 1), [5, 5, 2]);
}
#[test]
fn the_first_chunk_is_chosen_once_and_in_order() {
    let policy = |initial| Policy::TwoPhase { initial, size: 25 };
    let busy = Load { active: 4, slots: 4 };
    let start = |requested_initial| StreamStart { requested_initial, load: busy, ..StreamStart::default() };
    assert_eq!(Chunker::new(policy(Initial::Frames(5)), start(Some(7))).initial(), 7, "the request first");
    assert_eq!(Chunker::new(policy(Initial::Frames(5)), start(None)).initial(), 5, "then the port");
    assert_eq!(Chunker::new(policy(Initial::Dynamic), start(None)).initial(), 16, "then the load");
    assert_eq!(Chunker::new(policy(Initial::Dynamic), StreamStart::default()).initial(), 2);
    assert_eq!(Chunker::new(policy(Initial::Dynamic), start(Some(0))).initial(), 25, "zero is fixed");
    let clamped = Chunker::new(policy(Initial::Dynamic), start(Some(40)));
    assert!(clamped.initial_clamped());
    assert_eq!(clamped.initial(), 25);
}
#[test]
fn a_segment_end_restarts_the_counters_and_keeps_the_first_size() {
    let mut c = chunker(r#"{"ramp": [1, 4, 25]}"#);
    for _ in 0..2 {
        assert_eq!(c.push(1, Mono::ZERO), Some(Emission { first: 0, frames: 1 }));
        assert_eq!(c.push(2, Mono::ZERO), None);
        assert_eq!(c.push(0, Mono::ZERO), None);
        assert_eq!(c.finish(), Emission { first: 1, frames: 2 });
    }
    assert_eq!(c.finish(), Emission { first: 0, frames: 0 });
    c.push(1, Mono::ZERO);
    c.push(3, Mono::ZERO);
    assert_eq!(c.clear(), 3);
    assert_eq!((c.held(), c.emitted()), (0, 0));
}
/// An adaptive chunker with `emitted` frames out whose next target is exactly `target`.
fn primed(emitted: u64, target: u64) -> Chunker {
    let rule = Adaptive { delta_min: 1, ..Adaptive::default() };
    let start = StreamStart { requested_initial: Some(target as u32), ..StreamStart::default() };
    let mut c = Chunker::new(Policy::Adaptive { initial: Initial::Dynamic, rule }, start);
    if emitted > 0 {
        c.segment.accepted = emitted;
        c.segment.emitted = emitted;
        c.segment.headroom.emitted = emitted;
        c.segment.headroom.last_target = target - 1;
    }
    c
}
#[test]
fn adaptive_emit_rule() {
    let rows = [
        (4, 0, 4, Some(4)),
        (3, 0, 4, None),
        (12, 4, 8, Some(8)),
        (10, 4, 8, None),
        (10, 0, 4, Some(10)),
        (20, 4, 8, Some(16)),
    ];
    for (len, emitted, target, want) in rows {
        let mut c = primed(emitted, target);
        let got = c.push((len - emitted) as usize, Mono::ZERO).map(|e| e.frames);
        assert_eq!(got, want, "len {len}, emitted {emitted}, target {target}");
    }
    let mut c = primed(4, 8);
    assert_eq!(c.push(2, Mono::ZERO), None);
    assert_eq!(c.finish().frames, 2);
    assert_eq!(primed(4, 8).finish().frames, 0);
}
#[test]
fn adaptive_grows_with_the_headroom_and_restarts_with_the_segment() {
    let mut c = chunker(r#"{"adaptive": true, "initial": 4}"#);
    let mut sizes = Vec::new();
    for i in 0..400u64 {
        sizes.extend(c.push(1, Mono((i + 1) * 50_000_000)).map(|e| e.frames));
    }
    assert_eq!(sizes[0], 4);
    assert!(sizes.is_sorted(), "targets never shrink: {sizes:?}");
    assert_eq!(sizes.last(), Some(&25));
    c.finish();
    assert_eq!(c.segment.headroom, Headroom::default());
    let first = (0..10).find_map(|_| c.push(1, Mono(0)).map(|e| e.frames));
    assert_eq!(first, Some(4));
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let initial = prop_oneof![Just(Initial::Dynamic), (0u32..40).prop_map(Initial::Frames)];
    prop_oneof![
        (initial.clone(), 1u32..40).prop_map(|(initial, size)| Policy::TwoPhase { initial, size }),
        (proptest::collection::vec(1u32..30, 2..7), 1u32..40).prop_map(|(sizes, size)| Policy::Ramp { sizes, size }),
        (1u32..40, 1.0f64..3.0, 1u32..200).prop_map(|(base, factor, max)| Policy::Double { base, factor, max }),
        (initial, 2u32..40).prop_map(|(initial, size)| {
            Policy::Adaptive { initial, rule: Adaptive { size, ..Adaptive::default() } }
        }),
    ]
}
/// All boundaries up to `last`, from the words of the policy.
fn boundaries(policy: &Policy, initial: u64, last: u64) -> Vec<u64> {
    let mut list = Vec::new();
    let mut sum = 0u64;
    for i in 0.. {
        sum += match policy {
            Policy::TwoPhase { size, .. } => {
                if i == 0 {
                    initial
                } else {
                    u64::from(*size)
                }
            }
            Policy::Ramp { sizes, size } => u64::from(*sizes.get(i).unwrap_or(size)),
            Policy::Double { base, factor, max } => {
                (f64::from(*base) * factor.powf(i as f64)).floor().min(f64::from(*max)) as u64
            }
            Policy::Adaptive { .. } => unreachable!("has no boundaries"),
        };
        list.push(sum);
        if sum > last {
            return list;
        }
    }
    list
}
proptest! {
    #[test]
    fn no_frame_twice_none_lost(policy in any_policy(), bursts in proptest::collection::vec((0usize..60, 0u64..500), 0..80)) {
        let mut c = Chunker::new(policy, StreamStart::default());
        let (mut next, mut total, mut now) = (0, 0, 0);
        for (frames, ms) in bursts {
            now += ms * 1_000_000;
            total += frames as u64;
            if let Some(e) = c.push(frames, Mono(now)) {
                prop_assert_eq!(e.first, next);
                prop_assert!(e.frames > 0);
                next += e.frames;
                prop_assert_eq!(next, total, "a chunk takes all frames");
            }
        }
        let rest = c.finish();
        prop_assert_eq!(rest.first, next);
        prop_assert_eq!(next + rest.frames, total);
    }
    #[test]
    fn chunks_leave_at_the_smallest_boundary_passed(
        policy in any_policy().prop_filter("has boundaries", |p| !matches!(p, Policy::Adaptive { .. })),
        bursts in proptest::collection::vec(0usize..60, 0..60),
    ) {
        let mut c = Chunker::new(policy.clone(), StreamStart::default());
        let list = boundaries(&policy, c.initial(), bursts.iter().sum::<usize>() as u64 + 1);
        let (mut len, mut emitted) = (0u64, 0u64);
        for frames in bursts {
            len += frames as u64;
            let due = list.iter().copied().find(|&b| b > emitted).expect("one beyond the end");
            let want = (len >= due).then_some(len - emitted);
            prop_assert_eq!(c.push(frames, Mono::ZERO).map(|e| e.frames), want);
            if want.is_some() {
                emitted = len;
            }
        }
    }
}
