//! Turn detection as a client asks for it.

use serde_json::{Map, Value, json};

use super::capability::Capabilities;
use super::overlap::OverlapPolicy;
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::fields::Fields;

/// The shortest speech that the detector can tell, in ms: one frame.
const FRAME_MS: u32 = 32;

/// Which detector was asked for. Both are served by the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detector {
    /// `server_vad`.
    ServerVad,
    /// `semantic_vad`: mapped to the graph's own turn detection.
    SemanticVad,
}

/// Turn detection that is on.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnDetection {
    /// Which was asked for.
    pub detector: Detector,
    /// From this probability on a frame is speech.
    pub threshold: f64,
    /// Audio kept from before the speech, in ms.
    pub prefix_padding_ms: u32,
    /// Silence that ends a turn, in ms.
    pub silence_duration_ms: u32,
    /// Speech that begins a turn, in ms; at least one frame.
    pub min_speech_duration_ms: u32,
    /// A turn that ends is answered.
    pub create_response: bool,
    /// A turn that begins ends the answer being spoken.
    pub interrupt_response: bool,
    /// What is echoed besides: fields that are not known, and for `semantic_vad` all that was given.
    pub given: Map<String, Value>,
}

/// What turns are where a client does not say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vad {
    /// From this probability on a frame is speech.
    pub threshold: f64,
    /// Audio kept from before the speech, in ms.
    pub prefix_padding_ms: u32,
    /// Silence that ends a turn, in ms.
    pub silence_duration_ms: u32,
    /// Speech that begins a turn, in ms; at least one frame.
    pub min_speech_duration_ms: u32,
}

impl Default for Vad {
    /// 0.5, 300 ms, 500 ms, 96 ms.
    fn default() -> Self {
        Self { threshold: 0.5, prefix_padding_ms: 300, silence_duration_ms: 500, min_speech_duration_ms: 96 }
    }
}

impl TurnDetection {
    /// Server VAD with the defaults of `vad`.
    pub fn server_vad(vad: &Vad, interrupt_response: bool) -> Self {
        Self {
            detector: Detector::ServerVad,
            threshold: vad.threshold,
            prefix_padding_ms: vad.prefix_padding_ms,
            silence_duration_ms: vad.silence_duration_ms,
            min_speech_duration_ms: vad.min_speech_duration_ms.max(FRAME_MS),
            create_response: true,
            interrupt_response,
            given: Map::new(),
        }
    }
    /// What a graph gets where server VAD is the default: it interrupts if the graph can be interrupted, and there is
    /// none where a model that owns its turns cannot be, or where nothing finds turns.
    pub fn default_for(capabilities: &Capabilities, vad: &Vad) -> Option<Self> {
        let fits = capabilities.detects && (capabilities.barge_in || !capabilities.native());
        fits.then(|| Self::server_vad(vad, capabilities.barge_in))
    }
    /// Reads `turn_detection`; `null` is off. `path` names the field in a refusal; `vad` is what is not said.
    ///
    /// # Errors
    /// `unsupported_turn_detection`, naming the field inside; `server_vad_unavailable` where nothing could detect.
    pub fn parse(value: Value, path: &str, capabilities: &Capabilities, vad: &Vad) -> Result<Option<Self>, Refusal> {
        let refuse = |param: String, message: &str| {
            Refusal::new(Code::UnsupportedTurnDetection, message.to_owned()).about(param)
        };
        let map = match value {
            Value::Null => return Ok(None),
            Value::Object(map) => map,
            _ => return Err(refuse(path.to_owned(), "turn detection is null or an object with a type")),
        };
        let mut f = Fields::at(path, map.clone());
        let detector = match f.value("type").as_ref().and_then(Value::as_str) {
            Some("server_vad") => Detector::ServerVad,
            Some("semantic_vad") => Detector::SemanticVad,
            _ => return Err(refuse(f.path("type"), "turn detection is server_vad, semantic_vad or null")),
        };
        if detector == Detector::ServerVad && !capabilities.detects {
            let message = "this graph finds no turns; set turn_detection to null and commit them";
            return Err(Refusal::new(Code::ServerVadUnavailable, message).about(path.to_owned()));
        }
        let mut read = Self::read(detector, &mut f, vad).map_err(|r| r.under(Code::UnsupportedTurnDetection))?;
        let interrupt = f.boolean("interrupt_response").map_err(|r| r.under(Code::UnsupportedTurnDetection))?;
        if interrupt == Some(false) && capabilities.native() {
            let message = "this model takes its turns itself, so interrupt_response cannot be false; leave it out";
            return Err(refuse(f.path("interrupt_response"), message));
        }
        read.interrupt_response = match detector {
            Detector::ServerVad => interrupt.unwrap_or(true),
            Detector::SemanticVad => interrupt.unwrap_or(true) && capabilities.barge_in,
        };
        if read.interrupt_response && !capabilities.barge_in {
            let message = "this graph cannot be interrupted; set interrupt_response to false or turn_detection to null";
            return Err(refuse(f.path("interrupt_response"), message));
        }
        read.given = match detector {
            Detector::ServerVad => f.rest(),
            Detector::SemanticVad => map,
        };
        Ok(Some(read))
    }

    fn read(detector: Detector, f: &mut Fields, vad: &Vad) -> Result<Self, Refusal> {
        let mut read = Self { detector, ..Self::server_vad(vad, true) };
        if let Some(threshold) = f.number("threshold")? {
            if !(threshold > 0.15 && threshold <= 1.0) {
                return Err(Refusal::bad(f.path("threshold"), "threshold must be above 0.15 and at most 1"));
            }
            read.threshold = threshold;
        }
        for (name, slot) in [
            ("prefix_padding_ms", &mut read.prefix_padding_ms),
            ("silence_duration_ms", &mut read.silence_duration_ms),
            ("min_speech_duration_ms", &mut read.min_speech_duration_ms),
        ] {
            if let Some(ms) = f.length(name)? {
                if ms > f64::from(u32::MAX) {
                    return Err(Refusal::bad(f.path(name), "that is longer than any session; give fewer milliseconds"));
                }
                *slot = ms as u32;
            }
        }
        read.min_speech_duration_ms = read.min_speech_duration_ms.max(FRAME_MS);
        if let Some(create) = f.boolean("create_response")? {
            read.create_response = create;
        }
        if detector == Detector::SemanticVad {
            let eagerness = f.string("eagerness")?;
            if eagerness.is_some_and(|e| !["low", "medium", "high", "auto"].contains(&e.as_str())) {
                return Err(Refusal::bad(f.path("eagerness"), "eagerness is low, medium, high or auto"));
            }
        }
        Ok(read)
    }
    /// The overlap policy that goes with it.
    pub fn policy(&self) -> OverlapPolicy {
        if self.interrupt_response { OverlapPolicy::BargeInOnSpeech } else { OverlapPolicy::ListenOnly }
    }
    /// The object on the wire: all fields for `server_vad`, what was given for `semantic_vad`.
    pub fn to_json(&self) -> Value {
        let mut map = self.given.clone();
        if self.detector == Detector::ServerVad {
            let ours = json!({
                "type": "server_vad",
                "threshold": self.threshold,
                "prefix_padding_ms": self.prefix_padding_ms,
                "silence_duration_ms": self.silence_duration_ms,
                "min_speech_duration_ms": self.min_speech_duration_ms,
                "create_response": self.create_response,
                "interrupt_response": self.interrupt_response,
            });
            if let Value::Object(ours) = ours {
                map.extend(ours);
            }
        }
        Value::Object(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: Value, capabilities: &Capabilities) -> Result<Option<TurnDetection>, Refusal> {
        TurnDetection::parse(value, "turn_detection", capabilities, &Vad::default())
    }

    #[test]
    fn defaults_are_filled_and_echoed() {
        let td = parse(json!({"type": "server_vad", "idle_timeout_ms": 5000}), &Capabilities::profile_d(20)).unwrap();
        let expected = json!({"type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 500,
            "min_speech_duration_ms": 96, "create_response": true, "interrupt_response": true, "idle_timeout_ms": 5000});
        assert_eq!(td.unwrap().to_json(), expected);
        assert_eq!(parse(json!(null), &Capabilities::profile_d(20)), Ok(None));
        let td =
            parse(json!({"type": "server_vad", "min_speech_duration_ms": 0}), &Capabilities::profile_d(20)).unwrap();
        assert_eq!(td.unwrap().min_speech_duration_ms, 32);
    }

    #[test]
    fn every_rule_names_its_field() {
        let cascaded = Capabilities::profile_d(20);
        let vad = |name: &str, value: Value| json!({"type": "server_vad", name: value});
        let field = |name: &str| format!("turn_detection.{name}");
        let table = [
            (json!({"type": "magic_vad"}), field("type")),
            (json!({}), field("type")),
            (json!(true), "turn_detection".to_owned()),
            (json!("server_vad"), "turn_detection".to_owned()),
            (vad("threshold", json!(0.15)), field("threshold")),
            (vad("threshold", json!(1.01)), field("threshold")),
            (vad("threshold", json!(-0.5)), field("threshold")),
            (vad("threshold", json!(true)), field("threshold")),
            (vad("threshold", json!("NaN")), field("threshold")),
            (vad("prefix_padding_ms", json!(-1)), field("prefix_padding_ms")),
            (vad("silence_duration_ms", json!(-1)), field("silence_duration_ms")),
            (vad("silence_duration_ms", json!(1e12)), field("silence_duration_ms")),
            (vad("min_speech_duration_ms", json!(false)), field("min_speech_duration_ms")),
            (vad("create_response", json!(1)), field("create_response")),
            (vad("interrupt_response", json!("no")), field("interrupt_response")),
            (json!({"type": "semantic_vad", "eagerness": "wild"}), field("eagerness")),
        ];
        for (value, param) in table {
            let refusal = parse(value.clone(), &cascaded).unwrap_err();
            assert_eq!((refusal.code, refusal.param), (Code::UnsupportedTurnDetection, Some(param)), "{value}");
        }
        for ok in [0.151, 1.0] {
            assert!(parse(vad("threshold", json!(ok)), &cascaded).is_ok());
        }
    }

    #[test]
    fn interruption_follows_what_the_graph_can_do() {
        let quiet = json!({"type": "server_vad", "interrupt_response": false});
        let loud = json!({"type": "server_vad"});
        let semantic = json!({"type": "semantic_vad", "eagerness": "low", "create_response": false});
        let deaf = Capabilities { barge_in: false, ..Capabilities::profile_d(20) };
        let policy = |value: &Value, capabilities: &Capabilities| {
            parse(value.clone(), capabilities).map(|td| td.map(|td| td.policy()))
        };
        use OverlapPolicy::{BargeInOnSpeech, ListenOnly};
        assert_eq!(policy(&quiet, &Capabilities::profile_d(20)), Ok(Some(ListenOnly)));
        assert_eq!(policy(&loud, &Capabilities::profile_d(20)), Ok(Some(BargeInOnSpeech)));
        assert_eq!(policy(&quiet, &deaf), Ok(Some(ListenOnly)));
        assert!(policy(&loud, &deaf).is_err());
        assert!(policy(&quiet, &Capabilities::profile_a()).is_err());
        assert_eq!(policy(&loud, &Capabilities::profile_a()), Ok(Some(BargeInOnSpeech)));
        assert!(policy(&loud, &Capabilities::profile_b()).is_err());
        assert_eq!(policy(&semantic, &Capabilities::profile_b()), Ok(Some(ListenOnly)));
        let td = parse(semantic.clone(), &Capabilities::profile_d(20)).unwrap().unwrap();
        assert_eq!((td.to_json(), td.create_response, td.policy()), (semantic, false, BargeInOnSpeech));
        assert_eq!(TurnDetection::default_for(&Capabilities::profile_b(), &Vad::default()), None);
        assert_eq!(
            TurnDetection::default_for(&deaf, &Vad::default()),
            Some(TurnDetection::server_vad(&Vad::default(), false))
        );
    }
}
