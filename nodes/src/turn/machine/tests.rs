#![allow(clippy::single_range_in_vec_init, reason = "traces are lists of ranges of windows")]

use super::super::TurnConfig;
use super::*;
use proptest::prelude::*;
use std::ops::Range;

const W: u64 = WINDOW as u64;

fn machine(config: TurnConfig) -> TurnMachine {
    TurnMachine::new(config.rules().expect("valid settings"))
}
fn ramp(samples: usize) -> Vec<f32> {
    (0..samples).map(|i| i as f32 - 24_000.0).collect()
}
/// A detector that calls window `k` speech if it is in one of `speech`, counting calls.
fn scripted(speech: Vec<Range<usize>>) -> impl FnMut(&[f32]) -> f32 {
    let mut k = 0;
    move |window| {
        assert_eq!(window.len(), WINDOW);
        k += 1;
        if speech.iter().any(|r| r.contains(&(k - 1))) { 0.9 } else { 0.1 }
    }
}
fn run(config: TurnConfig, signal: &[f32], chunk: usize, speech: &[Range<usize>]) -> Vec<TurnEvent> {
    let (mut m, mut detect, mut out) = (machine(config), scripted(speech.to_vec()), Vec::new());
    for piece in signal.chunks(chunk) {
        m.push(piece, &mut detect, &mut out);
        m.push(&[], &mut detect, &mut out);
    }
    let last = (m.clock() > m.window_start()).then_some(0.0);
    m.end(last, &mut out);
    assert_eq!(m.clock(), signal.len() as u64);
    out
}
/// Start, end, reason and audio of the ended turns.
fn items<'a>(events: &'a [TurnEvent]) -> Vec<(u64, u64, EndReason, &'a [f32])> {
    let item = |e: &'a TurnEvent| match e {
        TurnEvent::TurnEnded { start, end, reason, audio, .. } => Some((*start, *end, *reason, &audio[..])),
        _ => None,
    };
    events.iter().filter_map(item).collect()
}
fn starts(events: &[TurnEvent]) -> Vec<u64> {
    events
        .iter()
        .filter_map(|e| if let TurnEvent::SpeechStarted { start, .. } = e { Some(*start) } else { None })
        .collect()
}

#[test]
fn f19_the_prefix_is_in_the_item() {
    let events = run(TurnConfig::default(), &ramp(48_000), 320, &[40..61]);
    let items = items(&events);
    assert_eq!(items.len(), 1);
    let (start, end, reason, audio) = items[0];
    assert_eq!((start, reason), (20_480 - 4_800, EndReason::Silence));
    assert_eq!(audio[0], -8_320.0);
    assert_eq!(audio.len() as u64, end - start);
    assert_eq!(starts(&events), [start]);
}
#[test]
fn f19_items_that_follow_quickly_are_one_unbroken_ramp() {
    let config = TurnConfig { silence_duration_ms: 64, ..TurnConfig::default() };
    let signal = ramp(48_000);
    let events = run(config, &signal, 700, &[40..61, 64..71]);
    let items = items(&events);
    assert_eq!(items.len(), 2);
    assert_eq!(items[1].0, items[0].1, "the second starts where the first ended");
    let joined: Vec<f32> = items.iter().flat_map(|i| i.3).copied().collect();
    assert_eq!(joined, signal[items[0].0 as usize..items[1].1 as usize]);
}
#[test]
fn f17_results_do_not_depend_on_the_cut() {
    let mut signal = ramp(48_000);
    signal.truncate(93 * WINDOW + 100);
    let speech = [10..12, 20..40, 70..93];
    let whole = run(TurnConfig::default(), &signal, 48_000, &speech);
    assert_eq!(items(&whole).len(), 2);
    assert_eq!(items(&whole)[1].1, signal.len() as u64, "the last 100 samples belong to the last item");
    assert_eq!(items(&whole)[1].2, EndReason::EndOfInput);
    for chunk in [1, 160, 320, 441, 512, 720] {
        assert_eq!(run(TurnConfig::default(), &signal, chunk, &speech), whole, "chunks of {chunk}");
    }
}
#[test]
fn f20_blips_do_not_start_a_turn_and_a_short_word_does() {
    let on = |ms: std::ops::RangeInclusive<usize>, k: usize| ms.contains(&(k * 32 + 16));
    let blips: Vec<_> =
        (0..60).filter(|&k| (0..10).any(|n| on(n * 100 + 500..=n * 100 + 559, k))).map(|k| k..k + 1).collect();
    assert!(blips.len() >= 15, "the trace has speech: {blips:?}");
    assert_eq!(run(TurnConfig::default(), &ramp(48_000), 512, &blips), []);

    let word: Vec<_> = (0..60).filter(|&k| on(500..=700, k)).map(|k| k..k + 1).collect();
    let (mut m, mut detect, mut out) = (machine(TurnConfig::default()), scripted(word), Vec::new());
    let signal = ramp(48_000);
    for (n, piece) in signal.chunks(WINDOW).enumerate() {
        m.push(piece, &mut detect, &mut out);
        if !out.is_empty() {
            assert!((n + 1) * 32 <= 500 + 300, "decided at {} ms", (n + 1) * 32);
            break;
        }
    }
    assert_eq!(starts(&out).len(), 1);
}
#[test]
fn f21_the_longest_item_ends_and_the_next_goes_on() {
    let config = TurnConfig { max_utterance_s: 1.0, ..TurnConfig::default() };
    let signal = ramp(90 * WINDOW);
    let events = run(config, &signal, 333, &[10..80]);
    let items = items(&events);
    let reasons: Vec<_> = items.iter().map(|i| i.2).collect();
    assert_eq!(reasons, [EndReason::Longest, EndReason::Longest, EndReason::EndOfInput]);
    let joined: Vec<f32> = items.iter().flat_map(|i| i.3).copied().collect();
    assert_eq!(joined, signal[10 * WINDOW - 4_800..], "no sample lost or doubled");
    assert!(items.iter().all(|i| i.1 - i.0 <= 16_000));
    assert_eq!(starts(&events), items.iter().map(|i| i.0).collect::<Vec<_>>());
}
#[test]
fn f21_silence_at_the_cut_makes_no_empty_turn() {
    // 1 s from window 0 is 31.25 windows: the cut falls into the silence after window 25.
    let config = TurnConfig { max_utterance_s: 1.0, speculate_after_ms: 0, ..TurnConfig::default() };
    let ended = run(config, &ramp(60 * WINDOW), 512, &[0..25]);
    assert_eq!(ended.len(), 2, "{ended:?}");
    // The speaker goes on before the silence is long enough: no sample is lost.
    let goes_on = run(config, &ramp(60 * WINDOW), 512, &[0..25, 35..40]);
    let items = items(&goes_on);
    assert_eq!(items.len(), 2);
    assert_eq!((items[0].1, items[1].0), (16_000, 16_000));
}
#[test]
fn f23_commit_and_clear() {
    let (mut m, mut out) = (machine(TurnConfig::default()), Vec::new());
    let signal = ramp(16_000);
    assert_eq!(m.commit(&mut out), Commit::Empty);
    m.push(&[], |_| 0.9, &mut out);
    assert_eq!(m.commit(&mut out), Commit::Empty);
    m.push(&signal, |_| 0.0, &mut out);
    assert_eq!(m.commit(&mut out), Commit::NoSpeech { start: 0, end: 16_000 });
    let told: Vec<_> = items(&out).iter().map(|i| (i.0, i.1, i.2)).collect();
    let commit = EndReason::Commit;
    assert_eq!(told, [(0, 0, commit), (0, 0, commit), (16_000, 16_000, commit)], "each is told, silence is no turn");
    assert_eq!(out.len(), 3);
    out.clear();
    let mut k = 0;
    let mut burst = |_: &[f32]| {
        k += 1;
        if k <= 8 { 0.9 } else { 0.0 }
    };
    m.push(&signal[..24 * WINDOW], &mut burst, &mut out);
    assert_eq!(items(&out).len(), 1);
    assert_eq!(m.commit(&mut out), Commit::Empty, "right after the one that detection made");
    assert!(items(&out)[1].3.is_empty());
    m.push(&signal[..100], |_| 0.0, &mut out);
    assert!(matches!(m.commit(&mut out), Commit::NoSpeech { .. }), "trailing noise is never speech");
    out.clear();
    m.push(&signal[..10 * WINDOW + 7], |_| 0.9, &mut out);
    let before = starts(&out)[0];
    let clock = m.clock();
    m.clear(&mut out);
    assert_eq!(out.last(), Some(&TurnEvent::TurnCleared { at: clock, start: Some(before) }));
    assert_eq!((m.clock(), m.window_start(), m.held()), (clock, clock, 0));
    out.clear();
    m.push(&signal[..10 * WINDOW], |_| 0.9, &mut out);
    assert_eq!(starts(&out), [clock], "never before the clear, and later than all before");
    assert_eq!(m.commit(&mut out), Commit::Speech);
    assert_eq!(items(&out)[0].3, &signal[..10 * WINDOW]);
}
#[test]
fn guesses_hold_until_the_speaker_goes_on() {
    let speech = [0..10, 18..30];
    let events = run(TurnConfig::default(), &ramp(60 * WINDOW), 512, &speech);
    let kinds: Vec<_> = events
        .iter()
        .map(|e| match e {
            TurnEvent::SpeechStarted { .. } => "start".to_owned(),
            TurnEvent::Guess { id, end, start, audio } => {
                assert_eq!(audio.len() as u64, end - start);
                format!("guess {id} to {}", end / W)
            }
            TurnEvent::GuessCancelled { id } => format!("cancel {id}"),
            TurnEvent::TurnEnded { guess, end, speech_end, .. } => {
                format!("end {guess:?} {} {}", speech_end / W, end / W)
            }
            TurnEvent::TurnCleared { .. } => "clear".to_owned(),
        })
        .collect();
    assert_eq!(kinds, ["start", "guess 0 to 15", "cancel 0", "guess 1 to 35", "end Some(1) 30 46"]);
    let off = TurnConfig { speculate_after_ms: 0, ..TurnConfig::default() };
    assert!(!run(off, &ramp(60 * WINDOW), 512, &speech).iter().any(|e| matches!(e, TurnEvent::Guess { .. })));
    let (mut m, mut out) = (machine(TurnConfig::default()), Vec::new());
    m.push(&ramp(20 * WINDOW), scripted(vec![0..10]), &mut out);
    m.clear(&mut out);
    assert!(out.contains(&TurnEvent::GuessCancelled { id: 0 }));
}
#[test]
fn the_silence_clock_runs_through_fading_windows_which_cannot_end_the_turn() {
    let (mut m, mut out) = (machine(TurnConfig { speculate_after_ms: 0, ..TurnConfig::default() }), Vec::new());
    let mut probs = vec![0.9; 5];
    probs.push(0.1);
    probs.extend([0.4; 20]);
    let n = probs.len();
    let mut p = probs.into_iter();
    m.push(&ramp(n * WINDOW), |_| p.next().expect("one per window"), &mut out);
    assert_eq!(items(&out).len(), 0);
    m.push(&ramp(WINDOW), |_| 0.1, &mut out);
    assert_eq!(items(&out)[0].1, (n as u64 + 1) * W);
    let mut onset = Vec::new();
    machine(TurnConfig::default()).push(&ramp(20 * WINDOW), |_| 0.45, &mut onset);
    assert_eq!(onset, [], "a fading window is no onset");
}
#[test]
fn what_is_no_probability_is_counted_and_does_no_harm() {
    let (mut m, mut out) = (machine(TurnConfig::default()), Vec::new());
    m.push(&ramp(10 * WINDOW), |_| f32::NAN, &mut out);
    assert_eq!((out.len(), m.bad_probabilities()), (0, 10));
    m.push(&ramp(10 * WINDOW), |_| f32::NEG_INFINITY, &mut out);
    assert!(out.is_empty());
    m.push(&ramp(10 * WINDOW), |_| f32::INFINITY, &mut out);
    assert_eq!(starts(&out).len(), 1);
    m.end(Some(f32::NAN), &mut out);
    assert_eq!(items(&out).len(), 1);
    m.end(Some(0.9), &mut out);
    assert_eq!(items(&out).len(), 1, "a second end says nothing");
}
#[test]
fn audio_and_probabilities_may_come_apart() {
    let (mut m, mut out) = (machine(TurnConfig::default()), Vec::new());
    assert_eq!(m.probability(0.9, &mut out), Err(TurnError::NoAudio { at: 0 }));
    m.audio(&ramp(511)).unwrap();
    assert_eq!(m.probability(0.9, &mut out), Err(TurnError::NoAudio { at: 0 }));
    m.audio(&[0.0]).unwrap();
    assert_eq!(m.probability(0.9, &mut out), Ok(()));
    m.audio(&vec![0.0; 160_000]).unwrap();
    assert_eq!(m.audio(&[0.0]), Err(TurnError::AudioAhead { held: 160_001, most: 160_000 }));
    assert_eq!(m.clock(), 512 + 160_000, "what is refused is not taken");
}
#[test]
fn silence_is_not_kept() {
    let (mut m, mut out) = (machine(TurnConfig::default()), Vec::new());
    for _ in 0..2_000 {
        m.push(&[0.0; 720], |_| 0.0, &mut out);
        assert!(m.held() <= 4_800 + WINDOW, "{}", m.held());
    }
}

/// The items of a whole signal, seen at once: (start, end, last speech, reason, a guess holds).
fn naive(probs: &[f32], config: TurnConfig, total: u64) -> Vec<(u64, u64, u64, EndReason, bool)> {
    let r = config.rules().unwrap();
    let speech = |k: usize| probs[k] >= r.threshold;
    let silent = |k: usize| probs[k] < r.bound;
    let need = (r.min_speech as usize).div_ceil(WINDOW);
    let span = |from: usize, to: usize| (to + 1 - from) as u64 * W;
    let (mut reset, mut from, mut out) = (0u64, 0usize, Vec::new());
    while let Some(first) = (from..probs.len()).find(|&k| k + need <= probs.len() && (k..k + need).all(speech)) {
        let start = reset.max((first as u64 * W).saturating_sub(r.prefix));
        let open = first + need;
        // The silence clock at window j: since the first silent window after the latest speech.
        let clock = |j: usize| {
            let after = (open..=j).rev().find(|&k| speech(k)).map_or(open, |k| k + 1);
            (after..=j).find(|&k| silent(k))
        };
        let quiet = |j: usize, least: u64| silent(j) && clock(j).is_some_and(|s| span(s, j) >= least);
        let last = (open..probs.len()).find(|&j| quiet(j, r.silence));
        let (end, reason) = last.map_or((total, EndReason::EndOfInput), |j| ((j as u64 + 1) * W, EndReason::Silence));
        let stop = last.unwrap_or(probs.len());
        let latest = (open..stop).rev().find(|&k| speech(k)).map_or(open, |k| k + 1);
        let guess = r.speculate.is_some_and(|s| (latest..stop).any(|j| quiet(j, s)));
        let faded = (latest..stop).find(|&k| silent(k)).unwrap_or(stop);
        out.push((start, end, (faded as u64 * W).min(end), reason, guess));
        reset = end;
        from = last.map_or(probs.len(), |j| j + 1);
    }
    out
}
fn probabilities() -> impl Strategy<Value = Vec<f32>> {
    let p = prop_oneof![4 => Just(0.9f32), 4 => Just(0.1f32), 1 => Just(0.4f32), 1 => 0.0f32..1.0];
    proptest::collection::vec((p, 1usize..8), 1..60)
        .prop_map(|runs| runs.into_iter().flat_map(|(p, n)| std::iter::repeat_n(p, n)).collect())
}
fn play(config: TurnConfig, probs: &[f32], extra: usize, cuts: &[usize]) -> (Vec<TurnEvent>, Vec<f32>) {
    let signal: Vec<f32> = (0..probs.len() * WINDOW + extra).map(|i| i as f32).collect();
    let (mut m, mut out, mut k) = (machine(config), Vec::new(), 0);
    let bound = (m.rules.longest + m.rules.prefix + m.rules.min_speech + 2 * W) as usize;
    let (mut rest, mut cuts) = (&signal[..], cuts.iter().cycle());
    while !rest.is_empty() {
        let (now, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
        rest = later;
        let detect = |_: &[f32]| {
            k += 1;
            probs[k - 1]
        };
        m.push(now, detect, &mut out);
        assert!(m.held() <= bound + now.len(), "{} held", m.held());
    }
    m.end((extra > 0).then_some(0.0), &mut out);
    (out, signal)
}
proptest! {
    #[test]
    fn items_are_those_of_the_whole_signal(
        probs in probabilities(), extra in 0usize..WINDOW, cuts in proptest::collection::vec(1usize..3000, 1..8),
        silence in 0u32..900, min_speech in 0u32..300, prefix in 0u32..700, speculate in 0u32..400,
    ) {
        let config = TurnConfig {
            silence_duration_ms: silence, min_speech_duration_ms: min_speech, prefix_padding_ms: prefix,
            speculate_after_ms: speculate, max_utterance_s: 3600.0, ..TurnConfig::default()
        };
        let (events, signal) = play(config, &probs, extra, &cuts);
        // The short last window counts as a whole one in the model, cut to the signal.
        let mut all = probs.clone();
        all.extend((extra > 0).then_some(0.0));
        let mut want = naive(&all, config, signal.len() as u64);
        want.iter_mut().for_each(|i| i.1 = i.1.min(signal.len() as u64));
        let mut got = Vec::new();
        for e in &events {
            if let TurnEvent::TurnEnded { start, end, speech_end, reason, guess, audio } = e {
                prop_assert_eq!(&audio[..], &signal[*start as usize..*end as usize]);
                got.push((*start, *end, *speech_end, *reason, guess.is_some()));
            }
        }
        // Within a short last window the silence is as long as the samples, which the model does not know.
        if extra > 0 && let (Some(g), Some(w)) = (got.last_mut(), want.last_mut()) && w.1 == signal.len() as u64 {
            (g.3, g.4, g.2) = (w.3, w.4, w.2);
        }
        prop_assert_eq!(got, want);
    }
    #[test]
    fn the_longest_item_loses_nothing(probs in probabilities(), cuts in proptest::collection::vec(1usize..3000, 1..8)) {
        let config = TurnConfig { max_utterance_s: 1.0, ..TurnConfig::default() };
        let (events, signal) = play(config, &probs, 0, &cuts);
        let mut covered = vec![false; signal.len()];
        let mut last = 0;
        for (start, end, _, audio) in items(&events) {
            prop_assert!(start >= last && end - start <= 16_000 && start < end);
            prop_assert_eq!(audio, &signal[start as usize..end as usize]);
            covered[start as usize..end as usize].fill(true);
            last = end;
        }
        let mut first = 0;
        for k in 0..=probs.len() {
            if k < probs.len() && probs[k] >= 0.5 {
                continue;
            }
            if k - first >= 3 {
                prop_assert!(covered[first * WINDOW..k * WINDOW].iter().all(|&c| c), "speech {first}..{k} in no item");
            }
            first = k + 1;
        }
        // Starts and ends alternate.
        let order = events.iter().filter_map(|e| match e {
            TurnEvent::SpeechStarted { start, .. } => Some((0, *start)),
            TurnEvent::TurnEnded { start, .. } => Some((1, *start)),
            _ => None,
        });
        for pair in order.collect::<Vec<_>>().chunks(2) {
            prop_assert_eq!(pair.len(), 2);
            prop_assert_eq!((pair[0].0, pair[1].0, pair[0].1), (0, 1, pair[1].1));
        }
    }
}

mod changes;
