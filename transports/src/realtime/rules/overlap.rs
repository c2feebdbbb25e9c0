//! What happens to the user's audio while the assistant speaks (Realtime protocol, overlap).
//!
//! One [`Overlap`] belongs to one session and is asked once per append while a response is active. The first row of the
//! protocol's table that fits decides; comments give the row's number. It keeps the overlap speech of this answer and
//! what was already said about it, nothing else: audio, transcripts and the cancel itself are the caller's.

use std::time::Duration;

use crate::realtime::{
    config::overlap::OverlapPolicy,
    wire::{client::append::OverlapAction, server::response::CancelReason},
};

/// What a voice detector says about one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Onset {
    /// There is no detector.
    #[default]
    Unknown,
    /// An utterance starts in this append.
    Starts,
    /// None starts: one is running already, or an onset has not been confirmed yet.
    Not,
}

/// The settings of a session that matter here. They may change between two appends.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What speech under an answer does (`overlap_policy`).
    pub policy: OverlapPolicy,
    /// Whether the graph can be interrupted.
    pub supports_barge_in: bool,
    /// Whether the session answers by itself (`auto_response`), so that audio goes straight into the model.
    pub auto_respond: bool,
    /// Up to this length (inclusive) overlap speech is an acknowledgement.
    pub short_ack: Duration,
    /// From this length on (inclusive) overlap speech interrupts under [`OverlapPolicy::Auto`].
    pub barge_in: Duration,
    /// Further short acknowledgements, see [`ShortAcks`].
    pub short_acks: ShortAcks,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: OverlapPolicy::ListenOnly,
            supports_barge_in: true,
            auto_respond: false,
            short_ack: Duration::from_millis(700),
            barge_in: Duration::from_millis(1200),
            short_acks: ShortAcks::default(),
        }
    }
}

/// The facts of one append.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Append<'a> {
    /// Whether it is speech.
    pub speech: bool,
    /// Its length.
    pub duration: Duration,
    /// `overlap_action`.
    pub asked: Option<OverlapAction>,
    /// `force_listen`.
    pub force_listen: bool,
    /// `force_barge_in`.
    pub force_barge_in: bool,
    /// What was said, where the client knows.
    pub transcript: Option<&'a str>,
    /// The detector's verdict.
    pub onset: Onset,
}

/// What becomes of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It goes on.
    Listen,
    /// It is cancelled.
    BargeIn,
    /// It goes on, and the audio is thrown away.
    Drop,
}

impl Action {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Listen => "listen",
            Self::BargeIn => "barge_in",
            Self::Drop => "drop",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $wire:literal),* $(,)?) => {
        /// Why. The documentation of each is its name on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Reason { $(#[doc = concat!("`", $wire, "`")] $(#[$doc])* $name),* }
        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Reason] = &[$(Reason::$name),*];
            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$name => $wire),* }
            }
        }
    };
}

reasons! {
    BargeInUnsupported = "barge_in_unsupported",
    ClientOverlapAction = "client_overlap_action",
    ClientForceBargeIn = "client_force_barge_in",
    ServerVadSpeechStarted = "server_vad_speech_started",
    BargeInOnSpeech = "barge_in_on_speech",
    AutoResponseContinuous = "auto_response_continuous",
    ClientForceListen = "client_force_listen",
    SilenceOrNoise = "silence_or_noise",
    ShortAckTranscript = "short_ack_transcript",
    PolicyListenOnly = "policy_listen_only",
    ServerVadUtteranceActive = "server_vad_utterance_active",
    PolicyBargeInOnSpeech = "policy_barge_in_on_speech",
    ShortAck = "short_ack",
    LongOverlapSpeech = "long_overlap_speech",
    AccumulatingOverlapSpeech = "accumulating_overlap_speech",
}

/// The verdict about one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What becomes of the answer.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// The audio is held for the next turn (after a barge-in: it is the beginning of that turn).
    pub keep: bool,
    /// The audio goes into the model now. Never together with `keep`; with neither, it is dropped.
    pub straight: bool,
    /// With [`Action::BargeIn`]: why the response is cancelled: by the detector or by a barge-in.
    pub cancel_reason: Option<CancelReason>,
    /// Whether the client is told (`overlap.decision`).
    pub say: bool,
    /// Overlap speech of this answer, this append included if it counts.
    pub overlap_speech: Duration,
}

/// The state of one answer's overlap.
#[derive(Debug, Clone, Default)]
pub struct Overlap {
    speech: Duration,
    kept: Duration,
    /// One bit for each pair of action and reason that was said.
    said: u64,
}

/// Where audio goes.
#[derive(Clone, Copy, PartialEq)]
enum Audio {
    Kept,
    Straight,
    Dropped,
}

impl Overlap {
    /// No overlap so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new response begins: nothing was overheard yet, and nothing was said about it.
    pub fn begin(&mut self) {
        *self = Self::default();
    }

    /// Overlap speech of this answer.
    pub fn speech(&self) -> Duration {
        self.speech
    }

    /// The answer ends. True: the audio held under it becomes the next turn's input. False: it was shorter than a short
    /// acknowledgement (or none), and is dropped.
    pub fn finish(&mut self, settings: &Settings) -> bool {
        let kept = std::mem::take(&mut self.kept);
        self.begin();
        !kept.is_zero() && kept >= settings.short_ack
    }

    /// Decides about one append.
    pub fn decide(&mut self, settings: &Settings, append: &Append<'_>) -> Decision {
        let (action, reason, audio) = self.row(settings, append);
        if action == Action::Listen && audio == Audio::Kept {
            self.kept = self.kept.saturating_add(append.duration);
        }
        let bit = 1u64 << (action as u32 * Reason::ALL.len() as u32 + reason as u32);
        let say = reason != Reason::AutoResponseContinuous && self.said & bit == 0;
        self.said |= bit;
        let cancel_reason = (action == Action::BargeIn).then_some(match reason {
            Reason::ServerVadSpeechStarted => CancelReason::TurnDetected,
            _ => CancelReason::BargeIn,
        });
        Decision {
            action,
            reason,
            keep: audio == Audio::Kept,
            straight: audio == Audio::Straight,
            cancel_reason,
            say,
            overlap_speech: self.speech,
        }
    }

    fn row(&mut self, settings: &Settings, append: &Append<'_>) -> (Action, Reason, Audio) {
        use Action::{BargeIn, Drop, Listen};
        let kept_if = |yes: bool| if yes { Audio::Kept } else { Audio::Dropped };
        // An interrupting append is input of the new turn, and gets there by the session's usual way.
        let interrupting = if settings.auto_respond { Audio::Straight } else { Audio::Kept };
        let can = settings.supports_barge_in;
        // 1
        if (append.force_barge_in || append.asked == Some(OverlapAction::BargeIn)) && !can {
            if append.speech {
                self.add(append);
            }
            return (Listen, Reason::BargeInUnsupported, kept_if(append.speech));
        }
        match append.asked {
            // 2a
            Some(OverlapAction::BargeIn) => return (BargeIn, Reason::ClientOverlapAction, interrupting),
            // 2b
            Some(asked @ (OverlapAction::Listen | OverlapAction::Continue)) => {
                self.speech = Duration::ZERO;
                let long = append.speech && append.duration > settings.short_ack;
                return (Listen, Reason::ClientOverlapAction, kept_if(asked == OverlapAction::Listen && long));
            }
            // 2c
            Some(OverlapAction::Drop) => {
                self.speech = Duration::ZERO;
                return (Drop, Reason::ClientOverlapAction, Audio::Dropped);
            }
            None => {}
        }
        // 3
        if append.force_barge_in {
            return (BargeIn, Reason::ClientForceBargeIn, interrupting);
        }
        if settings.auto_respond {
            let on_speech = settings.policy == OverlapPolicy::BargeInOnSpeech;
            // 4
            if append.speech && can && on_speech && append.onset != Onset::Not {
                self.add(append);
                let reason = match append.onset {
                    Onset::Starts => Reason::ServerVadSpeechStarted,
                    _ => Reason::BargeInOnSpeech,
                };
                return (BargeIn, reason, interrupting);
            }
            // 4'
            return (Listen, Reason::AutoResponseContinuous, Audio::Straight);
        }
        // 5
        if append.force_listen {
            self.speech = Duration::ZERO;
            return (Listen, Reason::ClientForceListen, kept_if(append.speech));
        }
        // 6
        if !append.speech {
            return (Drop, Reason::SilenceOrNoise, Audio::Dropped);
        }
        // 7
        if append.transcript.is_some_and(|text| settings.short_acks.has(text)) {
            self.speech = Duration::ZERO;
            return (Listen, Reason::ShortAckTranscript, Audio::Dropped);
        }
        match settings.policy {
            // 8
            OverlapPolicy::ListenOnly => {
                self.add(append);
                (Listen, Reason::PolicyListenOnly, Audio::Kept)
            }
            // 9a
            OverlapPolicy::BargeInOnSpeech if !can => (Listen, Reason::BargeInUnsupported, Audio::Kept),
            // 9b, 9c
            OverlapPolicy::BargeInOnSpeech => {
                self.add(append);
                match append.onset {
                    Onset::Not => (Listen, Reason::ServerVadUtteranceActive, Audio::Straight),
                    Onset::Starts => (BargeIn, Reason::ServerVadSpeechStarted, interrupting),
                    Onset::Unknown => (BargeIn, Reason::PolicyBargeInOnSpeech, interrupting),
                }
            }
            OverlapPolicy::Auto => {
                self.add(append);
                // 10a
                if append.duration <= settings.short_ack && self.speech <= settings.short_ack {
                    (Listen, Reason::ShortAck, Audio::Kept)
                // 10b
                } else if self.speech >= settings.barge_in {
                    if can {
                        (BargeIn, Reason::LongOverlapSpeech, interrupting)
                    } else {
                        (Listen, Reason::BargeInUnsupported, Audio::Kept)
                    }
                // 10c
                } else {
                    (Listen, Reason::AccumulatingOverlapSpeech, Audio::Kept)
                }
            }
        }
    }

    fn add(&mut self, append: &Append<'_>) {
        self.speech = self.speech.saturating_add(append.duration);
    }
}

/// Words that acknowledge and are no turn, compared by their letters and digits alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortAcks {
    words: Vec<String>,
    longest: usize,
}

/// The built-in acknowledgements.
const WORDS: [&str; 20] = [
    "yes",
    "yeah",
    "yep",
    "ok",
    "okay",
    "right",
    "continue",
    "go on",
    "keep going",
    "please continue",
    "嗯",
    "嗯嗯",
    "对",
    "对的",
    "好",
    "好的",
    "继续",
    "继续说",
    "可以",
    "是的",
];

impl Default for ShortAcks {
    fn default() -> Self {
        let mut made = Self { words: Vec::new(), longest: 0 };
        made.extend(WORDS);
        made
    }
}

impl ShortAcks {
    /// Adds acknowledgements; what has neither letter nor digit is left out.
    pub fn extend<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        for word in words {
            let word: String = letters(word).collect();
            if !word.is_empty() && !self.words.contains(&word) {
                self.longest = self.longest.max(word.chars().count());
                self.words.push(word);
            }
        }
    }

    /// Whether a transcript is one of them.
    pub fn has(&self, transcript: &str) -> bool {
        // One letter more than the longest is enough to tell, however long the transcript.
        let heard: String = letters(transcript).take(self.longest + 1).collect();
        self.words.contains(&heard)
    }
}

fn letters(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
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
            (
                a.asked == Some(OverlapAction::Listen),
                ("listen", "client_overlap_action", 0, kept(a.speech && d > short)),
            ),
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
        (
            prop::bool::weighted(0.8),
            prop_oneof![Just(700u64), Just(1200), 0u64..1500],
            asked,
            rare(),
            rare(),
            text,
            onset,
        )
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
}
