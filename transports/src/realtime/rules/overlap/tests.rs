use proptest::prelude::*;

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn auto() -> Settings {
    Settings { policy: OverlapPolicy::Auto, ..Settings::default() }
}

fn speech(length: u64) -> Append<'static> {
    Append { speech: true, duration: ms(length), ..Append::default() }
}

fn pair(d: Decision) -> (&'static str, &'static str) {
    (d.action.name(), d.reason.name())
}

#[test]
fn three_appends_of_half_a_second_are_acknowledged_then_added_up_then_obeyed() {
    let mut overlap = Overlap::new();
    let all: Vec<_> = (0..3).map(|_| pair(overlap.decide(&auto(), &speech(500)))).collect();
    let want =
        [("listen", "short_ack"), ("listen", "accumulating_overlap_speech"), ("barge_in", "long_overlap_speech")];
    assert_eq!(all, want);
}

#[test]
fn long_speech_interrupts_at_once_and_what_is_no_speech_is_dropped() {
    let mut overlap = Overlap::new();
    assert_eq!(pair(overlap.decide(&auto(), &speech(1300))), ("barge_in", "long_overlap_speech"));
    let quiet = Append { speech: false, ..speech(500) };
    let said = overlap.decide(&auto(), &quiet);
    assert_eq!((pair(said), said.keep, said.straight), (("drop", "silence_or_noise"), false, false));
}

#[test]
fn a_client_that_says_continue_is_obeyed_whatever_the_length() {
    let mut overlap = Overlap::new();
    overlap.decide(&auto(), &speech(900));
    let asked = Append { asked: Some(OverlapAction::Continue), ..speech(1300) };
    let said = overlap.decide(&auto(), &asked);
    assert_eq!((pair(said), said.keep), (("listen", "client_overlap_action"), false));
    assert_eq!(overlap.speech(), ms(0));
    assert_eq!(pair(overlap.decide(&auto(), &speech(700))), ("listen", "short_ack"));
}

#[test]
fn bounds_are_inclusive_as_written() {
    let first = |length| pair(Overlap::new().decide(&auto(), &speech(length))).1;
    assert_eq!(
        [700, 701, 1199, 1200].map(first),
        ["short_ack", "accumulating_overlap_speech", "accumulating_overlap_speech", "long_overlap_speech"]
    );
    let listen = |length| {
        let asked = Append { asked: Some(OverlapAction::Listen), ..speech(length) };
        Overlap::new().decide(&auto(), &asked).keep
    };
    assert_eq!([700, 701].map(listen), [false, true]);
}

#[test]
fn a_decision_is_said_once_within_an_answer() {
    let settings = Settings::default();
    let mut overlap = Overlap::new();
    let mut say = |append: &Append<'_>| overlap.decide(&settings, append).say;
    let quiet = Append::default();
    assert_eq!(
        [say(&speech(20)), say(&speech(20)), say(&quiet), say(&speech(20)), say(&quiet)],
        [true, false, true, false, false]
    );
    overlap.begin();
    assert!(overlap.decide(&settings, &speech(20)).say);
    let continuous = Settings { auto_respond: true, ..settings };
    let said = overlap.decide(&continuous, &speech(20));
    assert_eq!((pair(said), said.say, said.straight), (("listen", "auto_response_continuous"), false, true));
}

#[test]
fn the_detector_gives_the_reason_of_the_cancel() {
    let settings = Settings { policy: OverlapPolicy::BargeInOnSpeech, ..Settings::default() };
    let decide = |onset, auto_respond| {
        let settings = Settings { auto_respond, ..settings.clone() };
        let said = Overlap::new().decide(&settings, &Append { onset, ..speech(100) });
        (said.reason.name(), said.cancel_reason.map(CancelReason::as_str))
    };
    assert_eq!(decide(Onset::Starts, false), ("server_vad_speech_started", Some("turn_detected")));
    assert_eq!(decide(Onset::Unknown, false), ("policy_barge_in_on_speech", Some("barge_in")));
    assert_eq!(decide(Onset::Not, false), ("server_vad_utterance_active", None));
    assert_eq!(decide(Onset::Starts, true), ("server_vad_speech_started", Some("turn_detected")));
    assert_eq!(decide(Onset::Unknown, true), ("barge_in_on_speech", Some("barge_in")));
    assert_eq!(decide(Onset::Not, true), ("auto_response_continuous", None));
}

#[test]
fn acknowledgements_are_found_by_their_letters() {
    let mut acks = ShortAcks::default();
    for text in ["yes", " OK. ", "Go on!", "keep  going", "Please, continue", "嗯嗯。", "是的"] {
        assert!(acks.has(text), "{text}");
    }
    for text in ["", "...", "yes but", "no", "okay okay", "jawohl"] {
        assert!(!acks.has(text), "{text}");
    }
    acks.extend(["Jawohl", "?"]);
    assert!(acks.has("jawohl!") && !acks.has("?"));
}

#[test]
fn what_was_held_becomes_a_turn_only_if_it_is_no_short_sound() {
    let settings = Settings::default();
    let finish = |lengths: &[u64]| {
        let mut overlap = Overlap::new();
        for length in lengths {
            overlap.decide(&settings, &speech(*length));
        }
        overlap.finish(&settings)
    };
    assert_eq!([finish(&[]), finish(&[699]), finish(&[400, 300])], [false, false, true]);
}

/// The table again, as rows of conditions, by its own words.
fn model(s: &Settings, a: &Append<'_>, before: u64) -> (&'static str, &'static str, u64, char) {
    let (d, short, long) =
        (a.duration.as_millis() as u64, s.short_ack.as_millis() as u64, s.barge_in.as_millis() as u64);
    let sum = before + d;
    let demanded = a.force_barge_in || a.asked == Some(OverlapAction::BargeIn);
    let kept = |yes| if yes { 'k' } else { 'd' };
    let new = if s.auto_respond { 's' } else { 'k' };
    let (on_speech, auto) = (s.policy == OverlapPolicy::BargeInOnSpeech, s.policy == OverlapPolicy::Auto);
    let ack = a.transcript.is_some_and(|t| s.short_acks.has(t));
    let rows = [
        (
            demanded && !s.supports_barge_in,
            ("listen", "barge_in_unsupported", if a.speech { sum } else { before }, kept(a.speech)),
        ),
        (a.asked == Some(OverlapAction::BargeIn), ("barge_in", "client_overlap_action", before, new)),
        (a.asked == Some(OverlapAction::Listen), ("listen", "client_overlap_action", 0, kept(a.speech && d > short))),
        (a.asked == Some(OverlapAction::Continue), ("listen", "client_overlap_action", 0, 'd')),
        (a.asked == Some(OverlapAction::Drop), ("drop", "client_overlap_action", 0, 'd')),
        (a.force_barge_in, ("barge_in", "client_force_barge_in", before, new)),
        (
            s.auto_respond && a.speech && s.supports_barge_in && on_speech && a.onset == Onset::Starts,
            ("barge_in", "server_vad_speech_started", sum, new),
        ),
        (
            s.auto_respond && a.speech && s.supports_barge_in && on_speech && a.onset == Onset::Unknown,
            ("barge_in", "barge_in_on_speech", sum, new),
        ),
        (s.auto_respond, ("listen", "auto_response_continuous", before, 's')),
        (a.force_listen, ("listen", "client_force_listen", 0, kept(a.speech))),
        (!a.speech, ("drop", "silence_or_noise", before, 'd')),
        (ack, ("listen", "short_ack_transcript", 0, 'd')),
        (s.policy == OverlapPolicy::ListenOnly, ("listen", "policy_listen_only", sum, 'k')),
        (on_speech && !s.supports_barge_in, ("listen", "barge_in_unsupported", before, 'k')),
        (on_speech && a.onset == Onset::Not, ("listen", "server_vad_utterance_active", sum, 's')),
        (on_speech && a.onset == Onset::Starts, ("barge_in", "server_vad_speech_started", sum, new)),
        (on_speech, ("barge_in", "policy_barge_in_on_speech", sum, new)),
        (auto && d <= short && sum <= short, ("listen", "short_ack", sum, 'k')),
        (auto && sum >= long && s.supports_barge_in, ("barge_in", "long_overlap_speech", sum, new)),
        (auto && sum >= long, ("listen", "barge_in_unsupported", sum, 'k')),
        (true, ("listen", "accumulating_overlap_speech", sum, 'k')),
    ];
    rows.into_iter().find(|r| r.0).unwrap().1
}

fn appends() -> impl Strategy<Value = Append<'static>> {
    let asked = prop_oneof![
        4 => Just(None), 1 => Just(Some(OverlapAction::BargeIn)), 1 => Just(Some(OverlapAction::Listen)),
        1 => Just(Some(OverlapAction::Continue)), 1 => Just(Some(OverlapAction::Drop)),
    ];
    let onset = prop_oneof![Just(Onset::Unknown), Just(Onset::Starts), Just(Onset::Not)];
    let text = prop_oneof![3 => Just(None), 1 => Just(Some("yes")), 1 => Just(Some("well"))];
    let rare = || prop::bool::weighted(0.15);
    (prop::bool::weighted(0.8), prop_oneof![Just(700u64), Just(1200), 0u64..1500], asked, rare(), rare(), text, onset)
        .prop_map(|(speech, d, asked, force_listen, force_barge_in, transcript, onset)| Append {
            speech,
            duration: ms(d),
            asked,
            force_listen,
            force_barge_in,
            transcript,
            onset,
        })
}

proptest! {
    #[test]
    fn every_decision_is_the_first_row_that_fits(
        policy in prop_oneof![
            Just(OverlapPolicy::ListenOnly), Just(OverlapPolicy::BargeInOnSpeech), Just(OverlapPolicy::Auto),
        ],
        supports_barge_in in any::<bool>(),
        auto_respond in any::<bool>(),
        appends in prop::collection::vec(appends(), 1..12),
    ) {
        let settings = Settings { policy, supports_barge_in, auto_respond, ..Settings::default() };
        let (mut overlap, mut sum, mut said) = (Overlap::new(), 0, Vec::new());
        for append in appends {
            let got = overlap.decide(&settings, &append);
            let (action, reason, after, audio) = model(&settings, &append, sum);
            sum = after;
            prop_assert_eq!(pair(got), (action, reason));
            prop_assert_eq!(got.overlap_speech, ms(after));
            prop_assert_eq!((got.keep, got.straight), (audio == 'k', audio == 's'));
            prop_assert_eq!(got.cancel_reason.is_some(), action == "barge_in");
            prop_assert_eq!(got.say, reason != "auto_response_continuous" && !said.contains(&pair(got)));
            said.push(pair(got));
        }
    }
}
