//! `input_audio_buffer.append`: audio, hints about it, and camera frames.
//!
//! Base64 is not decoded here, and frames are only looked at from outside: how many, how long, and how they begin.

use serde_json::Value;

use crate::realtime::config::format::{AudioFormat, FormatSpec, read_rate};
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::fields::Fields;

/// From this probability on, audio is speech.
const SPEECH: f64 = 0.5;
/// Frames in one append.
const MOST_FRAMES: usize = 2;
/// Base64 characters of one frame or image.
pub const MOST_IMAGE_CHARS: usize = 4_000_000;

/// What the client wants done with audio while an answer is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlapAction {
    /// `barge_in`, `interrupt`, `cancel`: end the answer.
    BargeIn,
    /// `listen`: go on, and keep this audio.
    Listen,
    /// `continue`, `continue_output`, `ack`: go on, and do not keep it.
    Continue,
    /// `drop`, `ignore`, `silence`: forget it.
    Drop,
}

impl OverlapAction {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "barge_in" | "interrupt" | "cancel" => Self::BargeIn,
            "listen" => Self::Listen,
            "continue" | "continue_output" | "ack" => Self::Continue,
            "drop" | "ignore" | "silence" => Self::Drop,
            _ => return None,
        })
    }
}

/// What the client's own voice detection says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClientVad {
    /// Its verdict.
    pub is_speech: Option<bool>,
    /// Its probability of speech.
    pub speech_probability: Option<f64>,
    /// True if an utterance begins here, false if it says that none does.
    pub speech_started: Option<bool>,
    /// The level below which it calls audio silent, full scale 1.0; replaces the session's for this append.
    pub silence_rms: Option<f64>,
}

/// One append.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Append {
    /// Base64 audio, not decoded. Absent only together with [`Append::video_frames`].
    pub audio: Option<String>,
    /// The format named on the event.
    pub format: Option<FormatSpec>,
    /// The rate named on the event, in Hz.
    pub rate_hz: Option<u32>,
    /// The client's explicit verdict.
    pub is_speech: Option<bool>,
    /// The client's own voice detection.
    pub vad: ClientVad,
    /// Probability of speech given outside `vad`.
    pub speech_probability: Option<f64>,
    /// Length in ms as the client states it.
    pub duration_ms: Option<f64>,
    /// Where it begins, in ms of the client's clock.
    pub audio_start_ms: Option<f64>,
    /// Where it ends, in ms of the client's clock.
    pub audio_end_ms: Option<f64>,
    /// Do not interrupt the answer.
    pub force_listen: bool,
    /// Interrupt the answer.
    pub force_barge_in: bool,
    /// What to do while an answer is spoken. A word that is not known counts as none.
    pub overlap_action: Option<OverlapAction>,
    /// What was said, as the client knows it.
    pub transcript: Option<String>,
    /// Base64 JPEG or PNG, at most two.
    pub video_frames: Vec<String>,
}

impl Append {
    /// Reads the fields of the event.
    ///
    /// # Errors
    /// `bad_event`, `unsupported_audio_format` or `invalid_video_frames`.
    pub fn read(f: &mut Fields) -> Result<Self, Refusal> {
        let audio = f.either(["audio", "delta"], Fields::string)?;
        let video_frames = read_frames(f)?;
        if audio.is_none() && video_frames.is_empty() {
            return Err(Refusal::bad(
                f.path("audio"),
                "`audio` is required: base64 text in the session's input format",
            ));
        }
        let format = f.either(["format", "input_audio_format"], |f, name| {
            f.value(name).map(|v| FormatSpec::parse(&v, &f.path(name))).transpose()
        })?;
        let rate_hz = f.either(["sample_rate_hz", "sample_rate"], |f, name| {
            f.value(name).map(|v| read_rate(&v, &f.path(name))).transpose()
        })?;
        let vad = match f.object("vad")? {
            None => ClientVad::default(),
            Some(mut vad) => ClientVad {
                is_speech: vad.boolean("is_speech")?,
                speech_probability: vad.either(["speech_probability", "probability"], Fields::number)?,
                speech_started: vad.boolean("speech_started")?,
                silence_rms: vad.length("silence_rms")?,
            },
        };
        Ok(Self {
            audio,
            format,
            rate_hz,
            is_speech: f.either(["is_speech", "speech"], Fields::boolean)?,
            vad,
            speech_probability: f.number("speech_probability")?,
            duration_ms: f.either(["duration_ms", "audio_duration_ms"], Fields::length)?,
            audio_start_ms: f.length("audio_start_ms")?,
            audio_end_ms: f.length("audio_end_ms")?,
            force_listen: f.boolean("force_listen")?.unwrap_or(false),
            force_barge_in: f.boolean("force_barge_in")?.unwrap_or(false),
            overlap_action: f
                .either(["overlap_action", "overlap"], Fields::string)?
                .and_then(|word| OverlapAction::named(&word)),
            transcript: f.either(["transcript", "text"], Fields::string)?,
            video_frames,
        })
    }
    /// What this audio is in: the event's own words before the session's. `pcm_rate_hz` is for PCM in a session whose
    /// own format is G.711.
    ///
    /// # Errors
    /// `unsupported_audio_format`.
    pub fn audio_format(&self, session: AudioFormat, pcm_rate_hz: u32) -> Result<AudioFormat, Refusal> {
        session.overridden(self.format, self.rate_hz, pcm_rate_hz)
    }
    /// Is it speech? The client's word first, then probabilities, then the level: `rms` of the samples against
    /// `silence_rms` of the session, both with full scale 1.0. A level that is not a number is no speech.
    pub fn speech(&self, rms: f64, silence_rms: f64) -> bool {
        let probability = self.vad.speech_probability.or(self.speech_probability);
        self.is_speech
            .or(self.vad.is_speech)
            .or(probability.map(|p| p >= SPEECH))
            .unwrap_or_else(|| rms >= self.vad.silence_rms.unwrap_or(silence_rms))
    }
}

fn read_frames(f: &mut Fields) -> Result<Vec<String>, Refusal> {
    let (path, slices) = (f.path("video_frames"), f.path("max_slice_nums"));
    let refuse = |param: &str, message: &'static str| Refusal::new(Code::InvalidVideoFrames, message).about(param);
    if f.value("max_slice_nums").is_some_and(|v| v.as_u64() != Some(1)) {
        return Err(refuse(&slices, "only max_slice_nums 1 is offered; leave it out"));
    }
    let list = match f.value("video_frames") {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(refuse(&path, "video_frames must be a list of base64 JPEG or PNG images")),
    };
    if list.len() > MOST_FRAMES {
        return Err(refuse(&path, "at most 2 video frames per append; send the others with the next one"));
    }
    let mut frames = Vec::with_capacity(list.len());
    for (i, frame) in list.into_iter().enumerate() {
        let at = format!("{path}[{i}]");
        let Value::String(frame) = frame else {
            return Err(refuse(&at, "a video frame must be a base64 string"));
        };
        if frame.len() > MOST_IMAGE_CHARS {
            return Err(refuse(&at, "a video frame may have at most 4000000 base64 characters; send it smaller"));
        }
        if !looks_like_image(&frame) {
            return Err(refuse(&at, "a video frame must be bare base64 of a JPEG or PNG, with no data: prefix"));
        }
        frames.push(frame);
    }
    Ok(frames)
}

/// True if base64 text begins as that of a JPEG (ff d8 ff) or a PNG (89 50 4e 47 0d 0a 1a 0a).
pub fn looks_like_image(base64: &str) -> bool {
    base64.starts_with("/9j/") || base64.starts_with("iVBORw0KGgo")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::config::format::Encoding;
    use serde_json::json;

    fn read(value: Value) -> Result<Append, Refusal> {
        let Value::Object(map) = value else { panic!("not an object") };
        Append::read(&mut Fields::top(map))
    }
    fn refused(value: Value) -> (Code, Option<String>) {
        let refusal = read(value).unwrap_err();
        (refusal.code, refusal.param)
    }

    #[test]
    fn aliases_are_read_and_the_first_spelling_wins() {
        let got =
            read(json!({"delta": "AA==", "speech": true, "audio_duration_ms": 20, "text": "hi", "overlap": "ack",
            "sample_rate": 8000, "input_audio_format": "pcm16", "vad": {"probability": 0.2}}))
            .unwrap();
        assert_eq!(got.audio.as_deref(), Some("AA=="));
        assert_eq!((got.is_speech, got.duration_ms, got.rate_hz), (Some(true), Some(20.0), Some(8000)));
        assert_eq!(got.transcript.as_deref(), Some("hi"));
        assert_eq!(got.overlap_action, Some(OverlapAction::Continue));
        assert_eq!(got.vad.speech_probability, Some(0.2));
        let got = read(json!({"audio": "BB==", "delta": "AA==", "format": "g711_ulaw", "input_audio_format": "pcm16",
            "sample_rate_hz": 8000, "sample_rate": 9000, "is_speech": false, "speech": true}))
        .unwrap();
        assert_eq!(got.audio.as_deref(), Some("BB=="));
        assert_eq!((got.format.unwrap().encoding, got.rate_hz), (Encoding::Ulaw, Some(8000)));
        assert_eq!(got.is_speech, Some(false));
    }

    #[test]
    fn wrong_fields_are_refused_by_name() {
        let bad = |param: &str| (Code::BadEvent, Some(param.to_owned()));
        assert_eq!(refused(json!({})), bad("audio"));
        assert_eq!(refused(json!({"audio": 1})), bad("audio"));
        assert_eq!(refused(json!({"audio": "", "is_speech": 1})), bad("is_speech"));
        assert_eq!(refused(json!({"audio": "", "speech_probability": true})), bad("speech_probability"));
        assert_eq!(refused(json!({"audio": "", "duration_ms": -1})), bad("duration_ms"));
        assert_eq!(refused(json!({"audio": "", "duration_ms": 1e300})), bad("duration_ms"));
        assert_eq!(refused(json!({"audio": "", "vad": true})), bad("vad"));
        assert_eq!(refused(json!({"audio": "", "vad": {"is_speech": "yes"}})), bad("vad.is_speech"));
        assert_eq!(refused(json!({"audio": "", "overlap_action": 3})), bad("overlap_action"));
        let format = |param: &str| (Code::UnsupportedAudioFormat, Some(param.to_owned()));
        assert_eq!(refused(json!({"audio": "", "format": "mp3"})), format("format"));
        assert_eq!(refused(json!({"audio": "", "sample_rate_hz": 4000})), format("sample_rate_hz"));
    }

    #[test]
    fn frames_are_checked_from_outside() {
        let ok = read(json!({"video_frames": ["/9j/4AAQ", "iVBORw0KGgoAAAAN"], "max_slice_nums": 1})).unwrap();
        assert_eq!((ok.audio, ok.video_frames.len()), (None, 2));
        for value in [
            json!({"audio": "", "video_frames": "/9j/"}),
            json!({"audio": "", "video_frames": [1]}),
            json!({"audio": "", "video_frames": ["data:image/png;base64,iVBORw0KGgoA"]}),
            json!({"audio": "", "video_frames": ["R0lGODlh"]}),
            json!({"audio": "", "video_frames": ["/9j/", "/9j/", "/9j/"]}),
            json!({"audio": "", "video_frames": [format!("/9j/{}", "A".repeat(MOST_IMAGE_CHARS))]}),
            json!({"audio": "", "max_slice_nums": 2}),
            json!({"audio": "", "max_slice_nums": true}),
        ] {
            assert_eq!(refused(value).0, Code::InvalidVideoFrames);
        }
        assert!(read(json!({"video_frames": [format!("/9j/{}", "A".repeat(MOST_IMAGE_CHARS - 4))]})).is_ok());
    }

    #[test]
    fn speech_is_decided_by_the_first_hint_there_is() {
        let speech = |mut hints: Value, rms: f64| {
            hints["audio"] = json!("");
            read(hints).unwrap().speech(rms, 0.003)
        };
        let vad = |is: Value, p: Value| json!({"vad": {"is_speech": is, "speech_probability": p}});
        assert!(speech(json!({}), 0.003) && !speech(json!({}), 0.0029) && !speech(json!({}), f64::NAN));
        assert!(speech(json!({"speech_probability": 0.5}), 0.0));
        assert!(!speech(json!({"speech_probability": 0.49}), 1.0));
        assert!(!speech(json!({"speech_probability": -7}), 1.0));
        let mut both = vad(json!(null), json!(0.9));
        both["speech_probability"] = json!(0.1);
        assert!(speech(both, 0.0));
        assert!(!speech(vad(json!(false), json!(0.9)), 1.0));
        let mut told = vad(json!(false), json!(0.0));
        told["speech"] = json!(true);
        assert!(speech(told, 0.0));
        assert!(!speech(json!({"vad": {"silence_rms": 0.2}}), 0.1));
    }
}
