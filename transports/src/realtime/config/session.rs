//! The configuration, and the rules for changing it.

use serde_json::{Map, Value};

use super::capability::Capabilities;
use super::facts::SessionFacts;
use super::format::AudioFormat;
use super::modality::Modality;
use super::overlap::{CommitPolicy, Overlap};
use super::read;
use super::turn::{TurnDetection, Vad};
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::profile::Profile;

/// A session object must fit one frame of less than 1 MiB together with its envelope.
const MOST_SHOWN: usize = 960 * 1024;

/// What a deployment sets for sessions that ask for nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// The model's name.
    pub model: Option<String>,
    /// The voice.
    pub voice: Option<String>,
    /// The instructions.
    pub instructions: Option<String>,
    /// Input rate in Hz; else that of the profile.
    pub input_rate_hz: Option<u32>,
    /// Output rate in Hz; else that of the profile.
    pub output_rate_hz: Option<u32>,
    /// Server VAD on or off; else as the profile says.
    pub server_vad: Option<bool>,
    /// Silence of a socket before it counts as disconnected, in seconds.
    pub idle_timeout_s: f64,
    /// What server VAD is, where a client does not say.
    pub vad: Vad,
    /// Overlap settings.
    pub overlap: Overlap,
    /// What of a finished answer enters history.
    pub playback_commit_policy: CommitPolicy,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            model: None,
            voice: None,
            instructions: None,
            input_rate_hz: None,
            output_rate_hz: None,
            server_vad: None,
            idle_timeout_s: 300.0,
            vad: Vad::default(),
            overlap: Overlap::default(),
            playback_commit_policy: CommitPolicy::default(),
        }
    }
}

/// How far a session is, as far as changes depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Audio of an answer was made or sent.
    pub audio_sent: bool,
    /// The model has accepted a unit of input, after which its instructions are locked.
    pub context_locked: bool,
    /// There was an input, a commit or a response; before that an update may set anything.
    pub started: bool,
}

/// The effective configuration of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionConfig {
    /// The profile it was opened under.
    pub profile: Profile,
    /// The model.
    pub model: Option<String>,
    /// What answers are made of.
    pub modalities: Vec<Modality>,
    /// The instructions.
    pub instructions: Option<String>,
    /// Text taken as the user's opening turn.
    pub initial_user_text: Option<String>,
    /// The voice; the graph's own if absent.
    pub voice: Option<String>,
    /// A voice sample, as a data or http(s) URL.
    pub ref_audio: Option<String>,
    /// What input is in unless an append says otherwise.
    pub input: AudioFormat,
    /// What output is in.
    pub output: AudioFormat,
    /// PCM input rate in Hz where a format names none.
    pub input_rate_hz: u32,
    /// PCM output rate in Hz where a format names none.
    pub output_rate_hz: u32,
    /// Speed of speech.
    pub speed: Option<f64>,
    /// Temperature.
    pub temperature: Option<f64>,
    /// Tokens of one answer at most.
    pub max_output_tokens: Option<u64>,
    /// Turn detection, if on.
    pub turn_detection: Option<TurnDetection>,
    /// What server VAD is, where the client does not say. Not shown.
    pub vad: Vad,
    /// Overlap settings; the policy agrees with the turn detection.
    pub overlap: Overlap,
    /// What of a finished answer enters history.
    pub playback_commit_policy: CommitPolicy,
    /// Silence of a socket before it counts as disconnected, in seconds.
    pub idle_timeout_s: f64,
    /// Transcription settings, kept for the echo.
    pub transcription: Option<Value>,
    /// Noise reduction settings, kept for the echo.
    pub noise_reduction: Option<Value>,
    /// Tools.
    pub tools: Option<Vec<Value>>,
    /// The choice of tools.
    pub tool_choice: Option<Value>,
    /// Stock fields that are kept for the echo: `prompt`, `include`, `metadata`, `tracing`, `truncation`.
    pub kept: Map<String, Value>,
    /// A commit is answered unless it says otherwise.
    pub auto_response: bool,
    /// Units to which the model must listen first.
    pub force_listen_count: Option<u64>,
    /// Measurements per stage are sent along.
    pub return_stage_metrics: bool,
    /// `extra_body` as given, without what is shown elsewhere.
    pub extra_body: Map<String, Value>,
    /// Fields that are not known, kept for the echo.
    pub unknown: Map<String, Value>,
    /// Fields of `audio.input` that are not known.
    pub unknown_input: Map<String, Value>,
    /// Fields of `audio.output` that are not known.
    pub unknown_output: Map<String, Value>,
}

impl SessionConfig {
    /// What a session is when the client says nothing.
    pub fn default_for(profile: Profile, capabilities: &Capabilities, defaults: &Defaults) -> Self {
        let input_rate_hz = defaults.input_rate_hz.unwrap_or(profile.input_rate_hz());
        let output_rate_hz = defaults.output_rate_hz.unwrap_or(profile.output_rate_hz());
        let vad = defaults.server_vad.unwrap_or(profile.server_vad());
        let turn_detection = if vad { TurnDetection::default_for(capabilities, &defaults.vad) } else { None };
        let mut overlap = defaults.overlap;
        read::agree(&mut overlap.policy, turn_detection.as_ref());
        Self {
            profile,
            model: defaults.model.clone(),
            modalities: vec![Modality::Text, Modality::Audio],
            instructions: defaults.instructions.clone(),
            initial_user_text: None,
            voice: defaults.voice.clone(),
            ref_audio: None,
            input: AudioFormat::pcm16(input_rate_hz),
            output: AudioFormat::pcm16(output_rate_hz),
            input_rate_hz,
            output_rate_hz,
            speed: None,
            temperature: None,
            max_output_tokens: None,
            turn_detection,
            vad: defaults.vad,
            overlap,
            playback_commit_policy: defaults.playback_commit_policy,
            idle_timeout_s: defaults.idle_timeout_s,
            transcription: None,
            noise_reduction: None,
            tools: None,
            tool_choice: None,
            kept: Map::new(),
            auto_response: capabilities.native(),
            force_listen_count: None,
            return_stage_metrics: false,
            extra_body: Map::new(),
            unknown: Map::new(),
            unknown_input: Map::new(),
            unknown_output: Map::new(),
        }
    }
    /// Opens with the fields of `given`, the configuration object of a client.
    ///
    /// # Errors
    /// The first field that cannot be had; nothing is opened then.
    pub fn open(
        profile: Profile,
        given: &Map<String, Value>,
        capabilities: &Capabilities,
        defaults: &Defaults,
    ) -> Result<Self, Refusal> {
        let mut config = Self::default_for(profile, capabilities, defaults);
        read::apply(&mut config, given, capabilities)?;
        config.fits()
    }
    /// The configuration after the fields of `given` have been applied, all of them. `self` is as before either way.
    ///
    /// # Errors
    /// The first field that cannot be had, or that can no longer be changed.
    pub fn update(
        &self,
        given: &Map<String, Value>,
        capabilities: &Capabilities,
        phase: &Phase,
    ) -> Result<Self, Refusal> {
        let mut config = self.clone();
        read::apply(&mut config, given, capabilities)?;
        if phase.started {
            self.may_become(&config, capabilities, phase)?;
        }
        config.fits()
    }

    fn may_become(&self, next: &Self, capabilities: &Capabilities, phase: &Phase) -> Result<(), Refusal> {
        let refuse = |code, param: &str, message: &'static str| Err(Refusal::new(code, message).about(param));
        if next.model != self.model {
            let message = "the model is fixed once a session is open; open another session for another model";
            return refuse(Code::ModelUpdateUnsupported, "model", message);
        }
        if next.voice != self.voice {
            if capabilities.fixed_voice {
                let message = "this graph fixes the voice when a session opens; open another session for another voice";
                return refuse(Code::VoiceUpdateUnsupported, "voice", message);
            }
            if phase.audio_sent {
                let message = "the voice is fixed after the first audio; open another session for another voice";
                return refuse(Code::VoiceUpdateAfterAudioUnsupported, "voice", message);
            }
        }
        if next.ref_audio != self.ref_audio {
            let message = "the voice sample is fixed once a session has begun; give it when opening";
            return refuse(Code::RefAudioUpdateUnsupported, "ref_audio", message);
        }
        if next.instructions.as_deref().unwrap_or_default() != self.instructions.as_deref().unwrap_or_default() {
            if capabilities.fixed_persona {
                let message = "this graph fixes its persona when a session opens; give instructions when opening";
                return refuse(Code::PersonaUpdateUnsupported, "instructions", message);
            }
            if capabilities.native() && phase.context_locked {
                let message = "the model has begun to listen and its context is locked; the old instructions stay";
                return refuse(Code::InstructionsUpdateUnsupported, "instructions", message);
            }
        }
        Ok(())
    }

    fn fits(self) -> Result<Self, Refusal> {
        let shown = self.to_json(&SessionFacts::default(), self.profile).to_string().len();
        if shown > MOST_SHOWN {
            let message =
                format!("the session would take {shown} bytes to show, {MOST_SHOWN} are allowed; make it shorter");
            return Err(Refusal::new(Code::InvalidSessionConfig, message));
        }
        Ok(self)
    }
}
