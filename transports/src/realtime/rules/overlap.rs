//! What happens to the user's audio while the assistant speaks (Realtime protocol, overlap).
//!
//! One [`Overlap`] belongs to one session and is asked once per append while a response is active. The first row of the
//! protocol's table that fits decides; comments give the row's number. It keeps the overlap speech of this answer and
//! what was already said about it, nothing else: audio, transcripts and the cancel itself are the caller's.

use std::sync::Arc;
use std::time::Duration;

use super::short_acks::ShortAcks;
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
    pub short_acks: Arc<ShortAcks>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: OverlapPolicy::ListenOnly,
            supports_barge_in: true,
            auto_respond: false,
            short_ack: Duration::from_millis(700),
            barge_in: Duration::from_millis(1200),
            short_acks: Arc::default(),
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

#[cfg(test)]
mod tests;
