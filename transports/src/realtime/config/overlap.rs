//! What happens to audio of the user while an answer is spoken: the settings.

/// The policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OverlapPolicy {
    /// Speech is kept for the next turn.
    #[default]
    ListenOnly,
    /// Speech ends the answer.
    BargeInOnSpeech,
    /// Long speech ends the answer, short acknowledgements do not.
    Auto,
}

impl OverlapPolicy {
    /// The policy of that name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "listen_only" => OverlapPolicy::ListenOnly,
            "barge_in_on_speech" => OverlapPolicy::BargeInOnSpeech,
            "auto" => OverlapPolicy::Auto,
            _ => return None,
        })
    }
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            OverlapPolicy::ListenOnly => "listen_only",
            OverlapPolicy::BargeInOnSpeech => "barge_in_on_speech",
            OverlapPolicy::Auto => "auto",
        }
    }
}

/// The settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overlap {
    /// The policy.
    pub policy: OverlapPolicy,
    /// Up to this length speech is a short acknowledgement, in ms.
    pub short_ack_ms: u64,
    /// From this length on speech interrupts, in ms.
    pub barge_in_ms: u64,
    /// From this level on audio is speech, full scale 1.0.
    pub silence_rms: f64,
}

impl Default for Overlap {
    fn default() -> Self {
        Self { policy: OverlapPolicy::ListenOnly, short_ack_ms: 700, barge_in_ms: 1200, silence_rms: 0.003 }
    }
}

/// What of a finished answer enters history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CommitPolicy {
    /// All of it, at its end.
    #[default]
    CommitAllOnDone,
    /// What the client says it has played.
    AckOnly,
}

impl CommitPolicy {
    /// The policy of that name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "commit_all_on_done" => CommitPolicy::CommitAllOnDone,
            "ack_only" => CommitPolicy::AckOnly,
            _ => return None,
        })
    }
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            CommitPolicy::CommitAllOnDone => "commit_all_on_done",
            CommitPolicy::AckOnly => "ack_only",
        }
    }
}
