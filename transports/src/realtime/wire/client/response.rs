//! Options of `response.create`. They hold for that response only.

use serde_json::{Map, Value};

use crate::realtime::config::format::FormatSpec;
use crate::realtime::config::modality::{self, Modality};
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::fields::Fields;

/// Bytes of `metadata` as JSON at most: it comes back twice, each time in one frame.
const MOST_METADATA: usize = 64 * 1024;

/// What the client asks of one response. Absent and `null` are the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseOptions {
    /// What it is made of.
    pub modalities: Option<Vec<Modality>>,
    /// What its audio is in.
    pub output_format: Option<FormatSpec>,
    /// `auto` or `none`.
    pub conversation: Option<String>,
    /// The client's own object, which comes back with the response.
    pub metadata: Option<Map<String, Value>>,
    /// A prompt reference, kept as given.
    pub prompt: Option<Value>,
    /// Options of ours, kept as given.
    pub extra_body: Option<Map<String, Value>>,
    /// Instructions in place of the session's.
    pub instructions: Option<String>,
    /// The voice in place of the session's.
    pub voice: Option<String>,
    /// The temperature in place of the session's.
    pub temperature: Option<f64>,
    /// The token limit in place of the session's; absent for `"inf"`.
    pub max_output_tokens: Option<u64>,
    /// Tools in place of the session's.
    pub tools: Option<Vec<Value>>,
    /// The choice of tools in place of the session's.
    pub tool_choice: Option<Value>,
    /// The speed in place of the session's.
    pub speed: Option<f64>,
}

impl ResponseOptions {
    /// Reads `response{}`, which may be absent. The nested spelling wins.
    ///
    /// # Errors
    /// `bad_event` or `unsupported_audio_format`.
    pub fn read(event: &mut Fields) -> Result<Self, Refusal> {
        let Some(mut f) = event.object("response")? else { return Ok(Self::default()) };
        let mut audio = f.object("audio")?.unwrap_or_default();
        let mut output = audio.object("output")?.unwrap_or_default();
        let read_format = |f: &mut Fields, name: &str| {
            f.value(name).map(|v| FormatSpec::parse(&v, &f.path(name)).and_then(for_output(f.path(name)))).transpose()
        };
        let output_format = match read_format(&mut output, "format")? {
            Some(format) => Some(format),
            None => read_format(&mut f, "output_audio_format")?,
        };
        let voice = match modality::voice(&mut output, "voice")? {
            Some(voice) => Some(voice),
            None => modality::voice(&mut f, "voice")?,
        };
        let speed = match output.length("speed")? {
            Some(speed) => Some(speed),
            None => f.length("speed")?,
        };
        Ok(Self {
            modalities: f.either(["output_modalities", "modalities"], modality::list)?,
            output_format,
            conversation: f.string("conversation")?,
            metadata: metadata(&mut f)?,
            prompt: f.value("prompt"),
            extra_body: f.object("extra_body")?.map(Fields::rest),
            instructions: f.string("instructions")?,
            voice,
            temperature: f.length("temperature")?,
            max_output_tokens: modality::max_tokens(&mut f)?.flatten(),
            tools: f.list("tools")?,
            tool_choice: f.value("tool_choice"),
            speed,
        })
    }
    /// Refuses what a model-native graph cannot apply to one response.
    ///
    /// # Errors
    /// `unsupported_native_response_options`, naming the first such option.
    pub fn check_native(&self) -> Result<(), Refusal> {
        let set = [
            ("instructions", self.instructions.is_some()),
            ("voice", self.voice.is_some()),
            ("temperature", self.temperature.is_some()),
            ("max_output_tokens", self.max_output_tokens.is_some()),
            ("tools", self.tools.is_some()),
            ("tool_choice", self.tool_choice.is_some()),
            ("speed", self.speed.is_some()),
        ];
        match set.into_iter().find(|(_, set)| *set) {
            None => Ok(()),
            Some((name, _)) => {
                let message = format!("this model cannot change `{name}` for one response; set it with session.update");
                Err(Refusal::new(Code::UnsupportedNativeResponseOptions, message).about(format!("response.{name}")))
            }
        }
    }
}

fn metadata(f: &mut Fields) -> Result<Option<Map<String, Value>>, Refusal> {
    let path = f.path("metadata");
    let Some(given) = f.object("metadata")? else { return Ok(None) };
    let given = Value::Object(given.rest());
    if given.to_string().len() > MOST_METADATA {
        return Err(Refusal::bad(path, "metadata may have at most 65536 bytes as JSON; keep what is larger yourself"));
    }
    Ok(match given {
        Value::Object(given) => Some(given),
        _ => None,
    })
}

fn for_output(path: String) -> impl FnOnce(FormatSpec) -> Result<FormatSpec, Refusal> {
    move |spec| spec.resolve(24_000).for_output(&path).map(|_| spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<ResponseOptions, Refusal> {
        let Value::Object(map) = json!({ "response": value }) else { panic!("not an object") };
        ResponseOptions::read(&mut Fields::top(map))
    }

    #[test]
    fn nested_wins_and_null_is_nothing() {
        let got = read(json!({"voice": "a", "output_audio_format": "pcm16", "modalities": ["text"],
            "output_modalities": ["audio"], "max_output_tokens": "inf", "temperature": null,
            "audio": {"output": {"voice": "b", "format": {"type": "audio/pcmu"}, "speed": 1.5}}}))
        .unwrap();
        assert_eq!(got.voice.as_deref(), Some("b"));
        assert_eq!(got.output_format.unwrap().encoding.name(), "g711_ulaw");
        assert_eq!(got.modalities, Some(vec![Modality::Audio]));
        assert_eq!((got.max_output_tokens, got.temperature, got.speed), (None, None, Some(1.5)));
        assert_eq!(read(json!(null)), Ok(ResponseOptions::default()));
    }

    #[test]
    fn wrong_types_are_refused_by_name() {
        for (value, param) in [
            (json!(1), "response"),
            (json!({"metadata": "x"}), "response.metadata"),
            (json!({"metadata": {"x": "x".repeat(65536)}}), "response.metadata"),
            (json!({"modalities": ["smell"]}), "response.modalities"),
            (json!({"audio": {"output": {"speed": true}}}), "response.audio.output.speed"),
            (json!({"max_tokens": -1}), "response.max_tokens"),
            (json!({"output_audio_format": "pcm_f32le"}), "response.output_audio_format"),
        ] {
            assert_eq!(read(value).unwrap_err().param.as_deref(), Some(param));
        }
    }

    #[test]
    fn a_native_model_refuses_each_option_of_the_second_group_and_no_other() {
        for (name, value) in [
            ("instructions", json!("x")),
            ("voice", json!("x")),
            ("temperature", json!(0.5)),
            ("max_output_tokens", json!(7)),
            ("tools", json!([])),
            ("tool_choice", json!("auto")),
            ("speed", json!(1)),
        ] {
            let refusal = read(json!({ name: value })).unwrap().check_native().unwrap_err();
            assert_eq!(refusal.code, Code::UnsupportedNativeResponseOptions);
            assert_eq!(refusal.param, Some(format!("response.{name}")));
            assert_eq!(read(json!({ name: null })).unwrap().check_native(), Ok(()));
        }
        let first =
            json!({"modalities": ["audio"], "conversation": "auto", "metadata": {}, "prompt": {}, "extra_body": {}});
        assert_eq!(read(first).unwrap().check_native(), Ok(()));
    }
}
