//! Audio formats as they are spelled on the wire.

use serde_json::{Value, json};

use crate::realtime::wire::code::{Code, Refusal};

/// Rates offered for PCM, in Hz.
pub const PCM_RATES: std::ops::RangeInclusive<u32> = 8_000..=48_000;
/// The only rate of G.711, in Hz.
pub const G711_RATE: u32 = 8_000;

/// How one sample is written. Always mono.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Signed 16 bits, little endian.
    Pcm16,
    /// 32-bit float, little endian, full scale 1.0.
    PcmF32,
    /// G.711 µ-law.
    Ulaw,
    /// G.711 A-law.
    Alaw,
}

impl Encoding {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "pcm16" | "pcm_s16le" | "s16le" => Encoding::Pcm16,
            "pcm_f32le" => Encoding::PcmF32,
            "g711_ulaw" => Encoding::Ulaw,
            "g711_alaw" => Encoding::Alaw,
            _ => return None,
        })
    }
    fn typed(name: &str) -> Option<Self> {
        Some(match name {
            "audio/pcm" => Encoding::Pcm16,
            "audio/pcmu" => Encoding::Ulaw,
            "audio/pcma" => Encoding::Alaw,
            // What is echoed for the one encoding that has no media type of its own.
            "pcm_f32le" => Encoding::PcmF32,
            _ => return None,
        })
    }
    /// The flat name (`pcm16`).
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Pcm16 => "pcm16",
            Encoding::PcmF32 => "pcm_f32le",
            Encoding::Ulaw => "g711_ulaw",
            Encoding::Alaw => "g711_alaw",
        }
    }
    /// True for the two laws, which are always at 8 kHz.
    pub fn is_g711(self) -> bool {
        matches!(self, Encoding::Ulaw | Encoding::Alaw)
    }
    /// Bytes of one sample.
    pub fn sample_bytes(self) -> usize {
        match self {
            Encoding::Pcm16 => 2,
            Encoding::PcmF32 => 4,
            Encoding::Ulaw | Encoding::Alaw => 1,
        }
    }
}

/// A format as asked for: the rate may be left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatSpec {
    /// How samples are written.
    pub encoding: Encoding,
    /// Samples per second, if said.
    pub rate_hz: Option<u32>,
}

impl FormatSpec {
    /// Reads either spelling: a name, or an object with `type` and `rate`. `param` names the field in a refusal.
    ///
    /// # Errors
    /// `unsupported_audio_format` for anything that is not offered.
    pub fn parse(value: &Value, param: &str) -> Result<Self, Refusal> {
        let unknown = || {
            let offered =
                "pcm16, pcm_f32le, g711_ulaw, g711_alaw, or an object of type audio/pcm, audio/pcmu or audio/pcma";
            Refusal::new(Code::UnsupportedAudioFormat, format!("unknown audio format; use {offered}")).about(param)
        };
        match value {
            Value::String(name) => Ok(Self { encoding: Encoding::named(name).ok_or_else(unknown)?, rate_hz: None }),
            Value::Object(map) => {
                let name = map.get("type").and_then(Value::as_str).ok_or_else(unknown)?;
                let encoding = Encoding::typed(name).ok_or_else(unknown)?;
                let rate_hz = match map.get("rate") {
                    None | Some(Value::Null) => None,
                    Some(rate) => Some(read_rate(rate, &format!("{param}.rate"))?),
                };
                // Checked here too, so that a wrong rate is never kept until somebody resolves it.
                if let Some(rate_hz) = rate_hz {
                    AudioFormat { encoding, rate_hz }.checked(&format!("{param}.rate"))?;
                }
                Ok(Self { encoding, rate_hz })
            }
            _ => Err(unknown()),
        }
    }
    /// The whole format, with `pcm_rate_hz` where a PCM rate was left open.
    pub fn resolve(self, pcm_rate_hz: u32) -> AudioFormat {
        let rate_hz = if self.encoding.is_g711() { G711_RATE } else { self.rate_hz.unwrap_or(pcm_rate_hz) };
        AudioFormat { encoding: self.encoding, rate_hz }
    }
}

/// Reads a rate in Hz. Any number that is no rate is refused as a format.
///
/// # Errors
/// `bad_event` for another type, `unsupported_audio_format` for a number that is not a whole rate on offer.
pub fn read_rate(value: &Value, param: &str) -> Result<u32, Refusal> {
    let Some(rate) = value.as_f64() else {
        return Err(Refusal::bad(param, format!("`{param}` must be a number of samples per second")));
    };
    if rate.fract() == 0.0 && (f64::from(*PCM_RATES.start())..=f64::from(*PCM_RATES.end())).contains(&rate) {
        return Ok(rate as u32);
    }
    let message = format!("`{param}` must be a whole number of Hz from {} to {}", PCM_RATES.start(), PCM_RATES.end());
    Err(Refusal::new(Code::UnsupportedAudioFormat, message).about(param))
}

/// A complete audio format, mono.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AudioFormat {
    /// How samples are written.
    pub encoding: Encoding,
    /// Samples per second.
    pub rate_hz: u32,
}

impl AudioFormat {
    /// 16-bit PCM at `rate_hz`.
    pub fn pcm16(rate_hz: u32) -> Self {
        Self { encoding: Encoding::Pcm16, rate_hz }
    }
    /// The same if its rate is on offer for its encoding.
    ///
    /// # Errors
    /// `unsupported_audio_format`.
    pub fn checked(self, param: &str) -> Result<Self, Refusal> {
        let ok = if self.encoding.is_g711() { self.rate_hz == G711_RATE } else { PCM_RATES.contains(&self.rate_hz) };
        if ok {
            return Ok(self);
        }
        let message = if self.encoding.is_g711() {
            format!("G.711 is always at {G711_RATE} Hz, not {}", self.rate_hz)
        } else {
            format!("PCM is offered from {} to {} Hz, not at {}", PCM_RATES.start(), PCM_RATES.end(), self.rate_hz)
        };
        Err(Refusal::new(Code::UnsupportedAudioFormat, message).about(param))
    }
    /// The same as an output format, of which there are fewer.
    ///
    /// # Errors
    /// `unsupported_audio_format` for 32-bit float.
    pub fn for_output(self, param: &str) -> Result<Self, Refusal> {
        if self.encoding == Encoding::PcmF32 {
            let message = "output audio is pcm16, g711_ulaw or g711_alaw";
            return Err(Refusal::new(Code::UnsupportedAudioFormat, message).about(param));
        }
        Ok(self)
    }
    /// What one append is in: `format` or else the encoding of `self`, the session's format; `rate_hz` or else the rate
    /// of `format`, or else the session's own. `pcm_rate_hz` is for PCM in a session whose own format is G.711.
    ///
    /// # Errors
    /// `unsupported_audio_format` for a rate that the encoding does not have.
    pub fn overridden(
        self,
        format: Option<FormatSpec>,
        rate_hz: Option<u32>,
        pcm_rate_hz: u32,
    ) -> Result<Self, Refusal> {
        let open = if self.encoding.is_g711() { pcm_rate_hz } else { self.rate_hz };
        let mut one = format.map_or(self, |f| f.resolve(open));
        if let Some(rate_hz) = rate_hz {
            one.rate_hz = rate_hz;
        }
        one.checked("sample_rate_hz")
    }
    /// The nested spelling. G.711 carries no rate, as in the stock protocol.
    pub fn to_json(self) -> Value {
        match self.encoding {
            Encoding::Pcm16 => json!({"type": "audio/pcm", "rate": self.rate_hz}),
            Encoding::PcmF32 => json!({"type": "pcm_f32le", "rate": self.rate_hz}),
            Encoding::Ulaw => json!({"type": "audio/pcmu"}),
            Encoding::Alaw => json!({"type": "audio/pcma"}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read_and_its_nested_echo_reads_back() {
        let table = [
            (json!("pcm16"), Encoding::Pcm16, 16_000),
            (json!("pcm_s16le"), Encoding::Pcm16, 16_000),
            (json!("s16le"), Encoding::Pcm16, 16_000),
            (json!({"type": "audio/pcm"}), Encoding::Pcm16, 16_000),
            (json!({"type": "audio/pcm", "rate": 48000}), Encoding::Pcm16, 48_000),
            (json!({"type": "audio/pcm", "rate": null}), Encoding::Pcm16, 16_000),
            (json!("pcm_f32le"), Encoding::PcmF32, 16_000),
            (json!("g711_ulaw"), Encoding::Ulaw, 8_000),
            (json!({"type": "audio/pcmu"}), Encoding::Ulaw, 8_000),
            (json!({"type": "audio/pcmu", "rate": 8000}), Encoding::Ulaw, 8_000),
            (json!("g711_alaw"), Encoding::Alaw, 8_000),
            (json!({"type": "audio/pcma"}), Encoding::Alaw, 8_000),
        ];
        for (text, encoding, rate_hz) in table {
            let format = FormatSpec::parse(&text, "format").unwrap().resolve(16_000);
            assert_eq!(format, AudioFormat { encoding, rate_hz }, "{text}");
            assert_eq!(FormatSpec::parse(&format.to_json(), "f").unwrap().resolve(16_000), format);
            assert_eq!(FormatSpec::parse(&json!(encoding.name()), "f").unwrap().encoding, encoding);
        }
    }

    #[test]
    fn what_is_not_offered_is_refused_as_a_format() {
        for text in [
            json!("mp3"),
            json!("PCM16"),
            json!(16),
            json!({}),
            json!({"type": "audio/opus"}),
            json!({"type": "audio/pcm", "rate": 7999}),
            json!({"type": "audio/pcm", "rate": 48001}),
            json!({"type": "audio/pcm", "rate": 16000.5}),
            json!({"type": "audio/pcm", "rate": -16000}),
            json!({"type": "audio/pcm", "rate": 1e300}),
            json!({"type": "audio/pcmu", "rate": 16000}),
        ] {
            let refusal = FormatSpec::parse(&text, "format").unwrap_err();
            assert_eq!(refusal.code, Code::UnsupportedAudioFormat, "{text}");
            assert!(refusal.param.is_some_and(|p| p.starts_with("format")), "{text}");
        }
        assert_eq!(read_rate(&json!(true), "rate").unwrap_err().code, Code::BadEvent);
        assert!(AudioFormat { encoding: Encoding::PcmF32, rate_hz: 16_000 }.for_output("f").is_err());
    }

    #[test]
    fn an_override_takes_encoding_and_rate_by_their_own_precedence() {
        let session = AudioFormat::pcm16(48_000);
        let spec = |v: Value| Some(FormatSpec::parse(&v, "f").unwrap());
        let got = |f, r| session.overridden(f, r, 16_000).map(|f| (f.encoding, f.rate_hz));
        assert_eq!(got(None, None), Ok((Encoding::Pcm16, 48_000)));
        assert_eq!(got(None, Some(8_000)), Ok((Encoding::Pcm16, 8_000)));
        assert_eq!(got(spec(json!("pcm_f32le")), None), Ok((Encoding::PcmF32, 48_000)));
        assert_eq!(got(spec(json!({"type": "audio/pcm", "rate": 24000})), None), Ok((Encoding::Pcm16, 24_000)));
        assert_eq!(got(spec(json!({"type": "audio/pcm", "rate": 24000})), Some(16_000)), Ok((Encoding::Pcm16, 16_000)));
        assert_eq!(got(spec(json!("g711_ulaw")), None), Ok((Encoding::Ulaw, 8_000)));
        assert!(got(spec(json!("g711_ulaw")), Some(16_000)).is_err());
        let phone = AudioFormat { encoding: Encoding::Alaw, rate_hz: 8_000 };
        assert_eq!(phone.overridden(spec(json!("pcm16")), None, 16_000), Ok(AudioFormat::pcm16(16_000)));
    }
}
