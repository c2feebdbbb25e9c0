//! Commits, clears and changes of rules, against a model that sees the whole stream at once.

use super::*;

fn rules(config: TurnConfig) -> TurnRules {
    config.rules().expect("valid settings")
}
fn by_hand() -> TurnConfig {
    TurnConfig { mode: TurnMode::Manual, ..TurnConfig::default() }
}
/// Windows of one probability.
fn feed(m: &mut TurnMachine, windows: usize, p: f32, out: &mut Vec<TurnEvent>) {
    let from = m.clock() as usize;
    let audio: Vec<f32> = (from..from + windows * WINDOW).map(|i| i as f32).collect();
    m.window(&audio, p, out);
}
/// Start, end, end of speech and reason of the ended turns.
fn ended(events: &[TurnEvent]) -> Vec<(u64, u64, u64, EndReason)> {
    let item = |e: &TurnEvent| match e {
        TurnEvent::TurnEnded { start, end, speech_end, reason, audio, .. } => {
            assert!(audio.iter().enumerate().all(|(i, s)| *s == (*start + i as u64) as f32), "its own samples");
            assert_eq!(audio.len() as u64, end - start);
            Some((*start, *end, *speech_end, *reason))
        }
        _ => None,
    };
    events.iter().filter_map(item).collect()
}

#[test]
fn by_hand_all_since_the_last_commit_or_clear_is_a_turn() {
    let (mut m, mut out) = (machine(by_hand()), Vec::new());
    assert_eq!(m.commit(&mut out), Commit::Empty);
    feed(&mut m, 3, 0.0, &mut out);
    m.window(&[1536.0, 1537.0], 0.0, &mut out);
    assert_eq!(m.commit(&mut out), Commit::Speech, "speech or not");
    feed(&mut m, 2, 0.9, &mut out);
    feed(&mut m, 40, 0.0, &mut out);
    assert_eq!(m.commit(&mut out), Commit::Speech, "no silence ends it");
    feed(&mut m, 5, 0.9, &mut out);
    m.clear(&mut out);
    feed(&mut m, 1, 0.0, &mut out);
    m.commit(&mut out);
    feed(&mut m, 5, 0.9, &mut out);
    m.end(None, &mut out);
    let (a, c) = (1_538, EndReason::Commit);
    let b = a + 42 * W;
    let cleared = b + 5 * W;
    let want = [(0, 0, 0, c), (0, a, 0, c), (a, b, a + 2 * W, c), (cleared, cleared + W, cleared, c)];
    assert_eq!(ended(&out), want, "what was not committed when the stream ended is no turn");
    assert!(out.contains(&TurnEvent::TurnCleared { at: cleared, start: Some(b) }));
    assert!(starts(&out).is_empty(), "nothing is detected");
}
#[test]
fn by_hand_memory_is_bounded_and_nothing_is_lost() {
    let (mut m, mut out) = (machine(by_hand()), Vec::new());
    let most = MOST_BY_HAND as usize;
    for _ in 0..(most / WINDOW) * 2 + 3 {
        m.window(&[0.0; WINDOW], 0.0, &mut out);
        assert!(m.held() <= most);
    }
    m.commit(&mut out);
    let got: Vec<_> = items(&out).iter().map(|i| (i.0, i.1, i.2)).collect();
    let (l, c) = (MOST_BY_HAND, EndReason::Commit);
    assert_eq!(got, [(0, l, EndReason::Longest), (l, 2 * l, EndReason::Longest), (2 * l, 2 * l + 3 * W, c)]);
}
#[test]
fn rules_hold_from_their_place_on_and_a_window_is_cut_there() {
    let (mut m, mut out) = (machine(TurnConfig::default()), Vec::new());
    let deaf = TurnConfig { threshold: 1.0, interrupt: false, ..TurnConfig::default() };
    m.change(10 * W + 100, Change::Rules(rules(deaf))).unwrap();
    feed(&mut m, 10, 0.9, &mut out);
    feed(&mut m, 1, 0.9, &mut out);
    // From here on 0.9 fades and does not count as speech any more.
    feed(&mut m, 1, 0.0, &mut out);
    feed(&mut m, 15, 0.0, &mut out);
    assert_eq!(ended(&out), [(0, 27 * W, 11 * W, EndReason::Silence)]);
    assert!(matches!(out[0], TurnEvent::SpeechStarted { interrupt: true, .. }));
    out.clear();
    feed(&mut m, 20, 0.99, &mut out);
    assert_eq!(out, []);
    // A change that comes late acts at once; the later of two at one place wins.
    m.change(0, Change::Rules(rules(deaf))).unwrap();
    m.change(0, Change::Rules(rules(TurnConfig { interrupt: false, ..TurnConfig::default() }))).unwrap();
    feed(&mut m, 3, 0.9, &mut out);
    let TurnEvent::SpeechStarted { start, interrupt: false, .. } = out[0] else { panic!("{out:?}") };
    assert_eq!(start, 47 * W - 4_800);
}
#[test]
fn a_longer_prefix_reaches_no_further_back_than_what_was_kept() {
    let short = TurnConfig { prefix_padding_ms: 32, ..TurnConfig::default() };
    let long = TurnConfig { prefix_padding_ms: 640, ..TurnConfig::default() };
    let (mut m, mut out) = (machine(short), Vec::new());
    feed(&mut m, 30, 0.0, &mut out);
    m.change(30 * W, Change::Rules(rules(long))).unwrap();
    feed(&mut m, 3, 0.9, &mut out);
    assert_eq!(starts(&out), [29 * W]);
    m.commit(&mut out);
    assert_eq!(ended(&out), [(29 * W, 33 * W, 33 * W, EndReason::Commit)]);
}
#[test]
fn a_turn_goes_on_by_hand_and_back() {
    let guessing = TurnConfig::default();
    let (mut m, mut out) = (machine(guessing), Vec::new());
    feed(&mut m, 5, 0.9, &mut out);
    feed(&mut m, 6, 0.0, &mut out);
    assert!(matches!(out.last(), Some(TurnEvent::Guess { id: 0, .. })));
    m.change(m.clock(), Change::Rules(rules(by_hand()))).unwrap();
    feed(&mut m, 40, 0.0, &mut out);
    assert_eq!(out.last(), Some(&TurnEvent::GuessCancelled { id: 0 }));
    assert!(m.is_open());
    m.change(m.clock(), Change::Rules(rules(guessing))).unwrap();
    feed(&mut m, 16, 0.0, &mut out);
    assert_eq!(ended(&out), [(0, 67 * W, 5 * W, EndReason::Silence)]);
    assert_eq!(starts(&out), [0], "told once");
    // Nothing was open: by hand begins at its place, and what was not committed is no turn.
    out.clear();
    m.change(m.clock(), Change::Rules(rules(by_hand()))).unwrap();
    feed(&mut m, 5, 0.9, &mut out);
    m.change(m.clock(), Change::Rules(rules(guessing))).unwrap();
    feed(&mut m, 30, 0.0, &mut out);
    m.commit(&mut out);
    let now = m.clock();
    assert_eq!(ended(&out), [(now, now, now, EndReason::Commit)]);
}
#[test]
fn a_commit_comes_before_what_changes_at_its_place() {
    let (mut m, mut out) = (machine(TurnConfig::default()), Vec::new());
    feed(&mut m, 5, 0.9, &mut out);
    m.change(5 * W, Change::Clear).unwrap();
    assert_eq!(m.commit(&mut out), Commit::Speech);
    assert_eq!(ended(&out), [(0, 5 * W, 5 * W, EndReason::Commit)]);
    // At the end of the stream a clear is not forgotten.
    feed(&mut m, 5, 0.9, &mut out);
    m.change(10 * W, Change::Clear).unwrap();
    m.end(None, &mut out);
    assert_eq!(ended(&out).len(), 1);
    assert!(out.contains(&TurnEvent::TurnCleared { at: 10 * W, start: Some(5 * W) }));
}
#[test]
fn a_clear_in_the_middle_of_a_window_keeps_what_follows() {
    let (mut m, mut out) = (machine(TurnConfig::default()), Vec::new());
    m.change(4 * W + 200, Change::Clear).unwrap();
    feed(&mut m, 20, 0.9, &mut out);
    assert!(out.contains(&TurnEvent::TurnCleared { at: 4 * W + 200, start: Some(0) }));
    assert_eq!(starts(&out), [0, 4 * W + 200]);
    m.commit(&mut out);
    assert_eq!(ended(&out), [(4 * W + 200, 20 * W, 20 * W, EndReason::Commit)]);
}
#[test]
fn changes_that_wait_are_bounded() {
    let mut m = machine(TurnConfig::default());
    for k in 0..64 {
        m.change(1_000 - k, Change::Clear).unwrap();
    }
    assert_eq!(m.change(0, Change::Clear), Err(TurnError::Changes { most: 64 }));
    let mut out = Vec::new();
    feed(&mut m, 2, 0.0, &mut out);
    let at: Vec<u64> = out.iter().map(|e| if let TurnEvent::TurnCleared { at, .. } = e { *at } else { 0 }).collect();
    assert_eq!(at, (937..=1_000).collect::<Vec<_>>());
}

/// A part of a window under one set of rules, and what comes before and after it.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    end: u64,
    p: f32,
    rules: TurnRules,
    clear: bool,
    commit: bool,
}
#[derive(Debug, Default, PartialEq)]
struct Found {
    ended: Vec<(u64, u64, u64, EndReason)>,
    cleared: Vec<(u64, Option<u64>)>,
}

/// Cuts the stream into stretches in which nothing is committed, cleared or switched, and looks at each as a whole.
fn whole(parts: &[Part], total: u64) -> Found {
    let mut found = Found::default();
    let (mut from, mut reset, mut kept) = (0, 0, 0);
    // An open turn that goes over from one stretch to the next: its start and the end of its speech.
    let mut open: Option<(u64, u64)> = None;
    while from < parts.len() {
        let mode = parts[from].rules.mode;
        let cut = |k: &usize| parts[*k].clear || parts[*k - 1].commit || parts[*k].rules.mode != mode;
        let to = (from + 1..parts.len()).find(cut).unwrap_or(parts.len());
        let (stretch, begin) = (&parts[from..to], parts[from].start);
        let end = stretch[stretch.len() - 1].end;
        open = match mode {
            TurnMode::Manual => {
                let (start, told) = open.unwrap_or((begin, begin));
                kept = kept.max(start);
                let speech = stretch.iter().rfind(|k| k.p >= k.rules.threshold).map_or(told, |k| k.end);
                Some((start, speech))
                    .filter(|_| open.is_some() || stretch[stretch.len() - 1].commit || cleared(parts, to))
            }
            TurnMode::Vad => detected(stretch, open, &mut reset, &mut kept, &mut found),
        };
        if stretch[stretch.len() - 1].commit {
            let (start, speech) = open.take().unwrap_or((end, end));
            found.ended.push((start, end, speech, EndReason::Commit));
            (reset, kept) = (end, end);
        }
        if cleared(parts, to) {
            found.cleared.push((end, open.take().map(|o| o.0)));
            (reset, kept) = (end, end);
        }
        from = to;
    }
    if let (Some((start, speech)), Some(last)) = (open, parts.last())
        && last.rules.mode == TurnMode::Vad
    {
        found.ended.push((start, total, speech, EndReason::EndOfInput));
    }
    found
}
fn cleared(parts: &[Part], k: usize) -> bool {
    parts.get(k).is_some_and(|p| p.clear)
}
/// The turns of a stretch that detection ends; gives the one that is open at its end.
fn detected(
    parts: &[Part],
    mut open: Option<(u64, u64)>,
    reset: &mut u64,
    kept: &mut u64,
    found: &mut Found,
) -> Option<(u64, u64)> {
    let speech = |k: usize| parts[k].p >= parts[k].rules.threshold;
    let silent = |k: usize| parts[k].p < parts[k].rules.bound;
    let mut from = 0;
    loop {
        let (start, told, first) = match open {
            Some((start, told)) => (start, told, from),
            None => {
                // The beginning of the run of speech that ends with part k.
                let run = |k: usize| (from..=k).rev().take_while(|j| speech(*j)).last().map(|j| parts[j].start);
                let long = |k: &usize| run(*k).is_some_and(|r| parts[*k].end - r >= parts[*k].rules.min_speech);
                let begins = (from..parts.len()).find(long);
                let until = begins.unwrap_or(parts.len());
                for (k, part) in parts.iter().enumerate().take(until).skip(from) {
                    *kept = (*kept).max(run(k).unwrap_or(part.end).saturating_sub(part.rules.prefix));
                }
                let k = begins?;
                let start = run(k)?.saturating_sub(parts[k].rules.prefix).max(*reset).max(*kept);
                (start, parts[k].end, k + 1)
            }
        };
        // Silence counts from the first silent part after the latest speech.
        let since = |k: usize| {
            let after = (first..=k).rev().find(|j| speech(*j)).map_or(first, |j| j + 1);
            (after..=k).find(|j| silent(*j)).map(|j| parts[j].start)
        };
        let over = |k: &usize| silent(*k) && since(*k).is_some_and(|s| parts[*k].end - s >= parts[*k].rules.silence);
        let last = (first..parts.len()).find(over);
        let stop = last.unwrap_or(parts.len());
        let latest = (first..stop).rev().find(|k| speech(*k)).map_or(first, |k| k + 1);
        let faded = (latest..=stop.min(parts.len() - 1)).find(|k| silent(*k)).unwrap_or(stop);
        let ends = if faded > first { parts[faded - 1].end } else { told };
        let Some(k) = last else { return Some((start, ends)) };
        found.ended.push((start, parts[k].end, ends, EndReason::Silence));
        (*reset, *kept) = (parts[k].end, parts[k].end);
        (from, open) = (k + 1, None);
        if from == parts.len() {
            return None;
        }
    }
}

fn config() -> impl Strategy<Value = TurnConfig> {
    (any::<bool>(), prop_oneof![Just(0.5f32), Just(0.95), Just(0.2)], 0u32..700, 0u32..400, 0u32..200).prop_map(
        |(hand, threshold, prefix_padding_ms, silence_duration_ms, min_speech_duration_ms)| TurnConfig {
            mode: if hand { TurnMode::Manual } else { TurnMode::Vad },
            interrupt: true,
            threshold,
            prefix_padding_ms,
            silence_duration_ms,
            min_speech_duration_ms,
            max_utterance_s: 3600.0,
            speculate_after_ms: 0,
        },
    )
}
/// Windows, most of them whole; the one that a commit ends may be shorter.
fn windows() -> impl Strategy<Value = Vec<(u64, f32, bool)>> {
    let one = (probabilities(), proptest::option::weighted(0.7, 1u64..=W));
    proptest::collection::vec(one, 1..4).prop_map(|runs| {
        let mut all = Vec::new();
        for (probs, commit) in runs {
            all.extend(probs.into_iter().map(|p| (W, p, false)));
            if let (Some(len), Some(last)) = (commit, all.last_mut()) {
                (last.0, last.2) = (len, true);
            }
        }
        all
    })
}
proptest! {
    #[test]
    fn commits_clears_and_rules_act_where_they_stand(
        first in config(), windows in windows(),
        changes in proptest::collection::vec((0.0f64..1.0, proptest::option::of(config()), 0usize..40), 0..6),
    ) {
        let total: u64 = windows.iter().map(|w| w.0).sum();
        let mut noted: Vec<(u64, Change)> = changes
            .iter()
            .map(|(x, c, _)| ((x * total as f64) as u64, c.map_or(Change::Clear, |c| Change::Rules(rules(c)))))
            .collect();
        // The machine is told of each some windows ahead of its place.
        let mut m = machine(first);
        let mut out = Vec::new();
        let mut told = vec![false; noted.len()];
        for (k, (len, p, commit)) in windows.iter().enumerate() {
            for (n, (at, change)) in noted.iter().enumerate() {
                let ahead = at.saturating_sub(changes[n].2 as u64 * W);
                // In the order of the list, where several stand at one place.
                if !told[n] && (m.clock() + len > ahead || k + 1 == windows.len()) {
                    told[n] = true;
                    m.change(*at, *change).unwrap();
                }
            }
            let from = m.clock();
            let audio: Vec<f32> = (from..from + len).map(|i| i as f32).collect();
            m.window(&audio, *p, &mut out);
            if *commit {
                m.commit(&mut out);
            }
        }
        m.end(None, &mut out);
        // The same as parts under one set of rules each.
        let places: std::collections::BTreeSet<u64> = noted.iter().map(|c| c.0).collect();
        prop_assume!(places.len() == noted.len());
        noted.sort_by_key(|c| c.0);
        let (mut parts, mut at, mut now) = (Vec::new(), 0, rules(first));
        for (len, p, commit) in windows {
            let end = at + len;
            let mut clear = false;
            let mut start = at;
            for (place, change) in noted.iter().filter(|c| (at..end).contains(&c.0)) {
                if *place > start {
                    parts.push(Part { start, end: *place, p, rules: now, clear, commit: false });
                    (start, clear) = (*place, false);
                }
                match change {
                    Change::Clear => clear = true,
                    Change::Rules(r) => now = *r,
                }
            }
            parts.push(Part { start, end, p, rules: now, clear, commit });
            at = end;
        }
        let mut want = whole(&parts, total);
        if parts[0].clear {
            want.cleared.insert(0, (0, None));
        }
        let cleared = |e: &TurnEvent| if let TurnEvent::TurnCleared { at, start } = e { Some((*at, *start)) } else { None };
        let got = Found { ended: ended(&out), cleared: out.iter().filter_map(cleared).collect() };
        prop_assert_eq!(got, want);
        prop_assert_eq!(m.clock(), total);
    }
}
