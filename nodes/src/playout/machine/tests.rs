use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const RATE: u32 = 24_000;
const FRAME: usize = 480;

fn at(ms: u64) -> Mono {
    Mono(ms * MS)
}
fn playout(change: impl FnOnce(&mut PlayoutConfig)) -> Playout {
    let mut config = PlayoutConfig::new(RATE);
    change(&mut config);
    Playout::new(config).expect("valid settings")
}
fn ramp(from: usize, n: usize) -> Vec<f32> {
    (from..from + n).map(|i| i as f32).collect()
}
/// All frames that leave at `now`.
fn drain(p: &mut Playout, now: Mono) -> Vec<PlayoutFrame> {
    std::iter::from_fn(|| p.poll(now)).collect()
}

#[test]
fn playing_starts_with_the_lead_and_keeps_the_grid() {
    let mut p = playout(|_| {});
    p.push(&ramp(0, 2 * FRAME), at(5)).unwrap();
    assert_eq!((p.poll(at(100)), p.next_due(at(100))), (None, None));
    p.push(&ramp(2 * FRAME, FRAME), at(101)).unwrap();
    for n in 0..3u64 {
        assert_eq!(p.next_due(at(101)).map(|t| t.max(at(101))), Some(at(101 + 20 * n)));
        assert_eq!(drain(&mut p, Mono(at(101 + 20 * n).0 - 1)), []);
        let frames = drain(&mut p, at(101 + 20 * n));
        assert_eq!(frames.len(), 1);
        assert_eq!((frames[0].position, frames[0].due), (n * FRAME as u64, at(101 + 20 * n)));
        assert_eq!(frames[0].audio, ramp(n as usize * FRAME, FRAME));
    }
}
#[test]
fn a_short_answer_starts_at_its_end_without_the_lead() {
    for pad_last in [false, true] {
        let mut p = playout(|c| c.pad_last = pad_last);
        p.push(&ramp(0, 500), at(0)).unwrap();
        assert_eq!(p.poll(at(1)), None);
        p.end_segment(at(2)).unwrap();
        assert_eq!(p.poll(at(2)).unwrap().valid, FRAME);
        assert_eq!(p.segments_ended(), 0);
        let last = p.poll(at(22)).expect("due");
        assert_eq!((last.valid, last.audio.len()), (20, if pad_last { FRAME } else { 20 }));
        assert_eq!((p.segments_ended(), p.next_due(at(22))), (1, None));
        assert_eq!(p.underruns(), Underruns::default());
    }
}
#[test]
fn an_empty_segment_ends_at_once_and_an_empty_push_changes_nothing() {
    let mut p = playout(|_| {});
    p.push(&[], at(0)).unwrap();
    p.end_segment(at(0)).unwrap();
    assert_eq!((p.segments_ended(), p.poll(at(1)), p.next_due(at(1))), (1, None, None));
}
#[test]
fn the_buffer_is_bounded() {
    let mut p = playout(|_| {});
    assert_eq!(p.push(&ramp(0, 4_801), at(0)), Err(PlayoutError::Full { room: 4_800 }));
    p.push(&ramp(0, 4_800), at(0)).unwrap();
    assert_eq!(p.push(&[0.0], at(0)), Err(PlayoutError::Full { room: 0 }));
    for _ in 0..MOST_ENDS {
        p.end_segment(at(0)).unwrap();
    }
    assert_eq!(p.end_segment(at(0)), Err(PlayoutError::TooManySegments));
}
#[test]
fn settings_that_cannot_work_are_refused() {
    let make = |change: fn(&mut PlayoutConfig)| {
        let mut config = PlayoutConfig::new(RATE);
        change(&mut config);
        Playout::new(config).err()
    };
    assert_eq!(make(|c| c.rate = 0), Some(PlayoutError::BadFormat));
    assert_eq!(make(|c| c.frame = Duration::ZERO), Some(PlayoutError::BadFormat));
    assert_eq!(make(|c| c.frame = Duration::MAX), Some(PlayoutError::BadFormat));
    assert_eq!(make(|c| c.lead = Duration::from_millis(201)), Some(PlayoutError::BadCapacity));
    assert_eq!(make(|c| c.capacity = Duration::MAX), Some(PlayoutError::BadCapacity));
    assert_eq!(make(|c| c.lead = Duration::ZERO), None);
}
#[test]
fn a_dry_buffer_is_an_underrun_and_moves_the_grid() {
    let mut p = playout(|_| {});
    p.push(&ramp(0, 3 * FRAME), at(0)).unwrap();
    for t in [0, 20, 40] {
        assert_eq!(drain(&mut p, at(t)).len(), 1);
    }
    assert_eq!((p.poll(at(60)), p.next_due(at(60))), (None, None));
    p.push(&ramp(3 * FRAME, 2 * FRAME), at(130)).unwrap();
    let gaps = p.underruns();
    assert_eq!((gaps.count, gaps.total, gaps.longest), (1, Duration::from_millis(70), Duration::from_millis(70)));
    assert_eq!(drain(&mut p, at(130)).len(), 1, "no burst after the wait");
    assert_eq!(p.next_due(at(130)), Some(at(150)));
    assert_eq!(p.played(at(140)).position, 3 * 480 + 240);
    assert_eq!(drain(&mut p, at(150)).len(), 1);
    // The end comes late, after the last sample: nothing was missing.
    p.end_segment(at(400)).unwrap();
    assert_eq!((p.underruns().count, p.segments_ended()), (1, 1));
}
#[test]
fn rebuffering_waits_for_more() {
    let mut p = playout(|c| c.rebuffer = Duration::from_millis(40));
    p.push(&ramp(0, 3 * FRAME), at(0)).unwrap();
    for t in [0, 20, 40] {
        drain(&mut p, at(t));
    }
    p.push(&ramp(0, FRAME), at(70)).unwrap();
    assert_eq!(p.poll(at(70)), None);
    p.push(&ramp(0, FRAME), at(80)).unwrap();
    assert!(p.poll(at(80)).is_some());
    assert_eq!(p.underruns().total, Duration::from_millis(20));
}
#[test]
fn a_stall_of_two_seconds_is_made_up_without_a_burst() {
    let mut p = playout(|_| {});
    let (mut pushed, mut now, mut times, mut next) = (0, at(0), Vec::new(), 0);
    while now < at(10_000) {
        loop {
            let n = p.room();
            p.push(&ramp(pushed, n), now).unwrap();
            pushed += n;
            let Some(frame) = p.poll(now) else { break };
            assert_eq!(frame.position, next, "in order, none lost");
            next += frame.valid as u64;
            times.push(now.0 / MS);
        }
        now = p.next_due(now).expect("there is always audio");
        if times.len() == 151 {
            now = now.plus(Duration::from_secs(2));
        }
    }
    assert!(times.chunk_by(|a, b| a / 20 == b / 20).all(|i| i.len() <= 2));
    let late = times.iter().enumerate().rposition(|(n, &t)| t != n as u64 * 20).expect("some are late");
    assert!(times[late] <= 3_020 + 4_040, "back on the grid two seconds after the stall: {}", times[late]);
    assert_eq!(times.len(), 500);
    assert_eq!(p.underruns().count, 0, "a stall is no underrun");
}
#[test]
fn a_fence_drops_what_has_not_left_and_says_what_was_played() {
    let mut p = playout(|_| {});
    p.push(&ramp(0, 4_800), at(0)).unwrap();
    p.end_segment(at(0)).unwrap();
    for t in [0, 20, 40] {
        drain(&mut p, at(t));
    }
    let fenced = p.fence(at(50));
    assert_eq!(fenced.played, Played { position: 1_200, in_answer: 1_200 });
    assert_eq!((fenced.in_flight, fenced.dropped), (240, 4_800 - 1_440));
    assert_eq!((p.poll(at(60)), p.held(), p.next_due(at(60)), p.segments_ended()), (None, 0, None, 0));
    p.push(&ramp(4_800, 3 * FRAME), at(70)).unwrap();
    let frame = p.poll(at(70)).expect("a new answer starts at once");
    assert_eq!((frame.position, frame.audio[0]), (4_800, 4_800.0));
    assert_eq!(p.played(at(75)).in_answer, 120);
    let again = p.fence(at(80));
    assert_eq!(again.played.in_answer, 240);
    assert_eq!(
        p.fence(at(80)),
        Fenced {
            played: Played { position: again.played.position + 240 + 960, in_answer: 0 },
            in_flight: 0,
            dropped: 0
        }
    );
}
#[test]
fn answers_that_follow_each_other_do_not_overlap() {
    let mut p = playout(|_| {});
    p.push(&ramp(0, FRAME), at(0)).unwrap();
    p.end_segment(at(0)).unwrap();
    assert_eq!(drain(&mut p, at(0)).len(), 1);
    p.push(&ramp(FRAME, FRAME), at(5)).unwrap();
    p.end_segment(at(5)).unwrap();
    assert_eq!(p.poll(at(5)), None, "the first still sounds");
    assert_eq!(p.next_due(at(5)), Some(at(20)));
    assert_eq!(p.played(at(10)).position, 240);
    assert_eq!(drain(&mut p, at(20)).len(), 1);
    p.push(&ramp(2 * FRAME, 3 * FRAME), at(500)).unwrap();
    assert_eq!(p.poll(at(500)).expect("a new grid").due, at(500));
}

#[derive(Clone, Debug)]
enum Act {
    Push(usize),
    End,
    Fence,
    Wait(u64),
}
fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        5 => (0usize..2_000).prop_map(Act::Push),
        1 => Just(Act::End),
        1 => Just(Act::Fence),
        8 => (0u64..70_000_000).prop_map(Act::Wait),
    ];
    proptest::collection::vec(act, 1..150)
}
proptest! {
    #[test]
    fn what_leaves_is_what_was_pushed_less_what_was_fenced(acts in acts(), pad_last: bool) {
        let mut p = playout(|c| c.pad_last = pad_last);
        let (mut now, mut pushed, mut next, mut played) = (at(3), 0usize, 0u64, 0u64);
        let mut ends = 0;
        for act in acts {
            match act {
                Act::Push(n) => {
                    let n = n.min(p.room());
                    p.push(&ramp(pushed, n), now).unwrap();
                    pushed += n;
                }
                Act::End => {
                    p.end_segment(now).unwrap();
                    ends += 1;
                }
                Act::Fence => {
                    let before = p.played(now);
                    let f = p.fence(now);
                    prop_assert_eq!(f.played, before);
                    prop_assert_eq!(f.played.position + f.in_flight, next);
                    next += f.dropped;
                    prop_assert_eq!(next, pushed as u64);
                }
                Act::Wait(ns) => now = now.plus(Duration::from_nanos(ns)),
            }
            let frames = drain(&mut p, now);
            prop_assert!(frames.len() <= 4, "a burst of {}", frames.len());
            for f in frames {
                prop_assert!(f.due <= now);
                prop_assert_eq!(f.position, next);
                prop_assert!(f.valid > 0 && f.valid <= FRAME);
                prop_assert_eq!(&f.audio[..f.valid], &ramp(next as usize, f.valid)[..]);
                prop_assert_eq!(f.audio.len(), if pad_last { FRAME } else { f.valid });
                next += f.valid as u64;
            }
            let is = p.played(now);
            prop_assert!(is.position >= played && is.position <= next && is.in_answer <= is.position);
            played = is.position;
            prop_assert!(p.held() <= 4_800);
        }
        // To the end: everything leaves.
        p.end_segment(now).unwrap();
        for _ in 0..40 {
            now = now.plus(Duration::from_millis(20));
            for f in drain(&mut p, now) {
                next += f.valid as u64;
            }
        }
        prop_assert_eq!((next, p.held(), p.next_due(now)), (pushed as u64, 0, None));
        prop_assert!(p.segments_ended() <= ends + 1);
        prop_assert_eq!(p.played(now.plus(Duration::from_secs(1))).position, next);
    }
}
