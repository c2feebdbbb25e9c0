//! Port kinds: what an input takes and an output gives, with parameters.
//!
//! There is no negotiation. Two ends of an edge agree or the graph file is wrong: `audio 16000 mono f32` meets
//! `audio 16000 mono f32`. A parameter that is left out means "any" on an input and "as it comes" on an output.

use std::fmt;
use std::str::FromStr;

/// The medium of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Medium {
    /// UTF-8 text.
    Text,
    /// Uncompressed audio.
    Audio,
    /// Uncompressed pictures of a stream.
    Video,
    /// One uncompressed picture.
    Image,
    /// Numbers.
    Tensor,
    /// Token ids.
    Tokens,
    /// Encoded media.
    Packet,
    /// Events.
    Signal,
    /// Anything: for nodes that look at no payload (tee, gate, delay).
    Any,
}

impl Medium {
    /// All media a port can name in a message or schema.
    pub const ALL: [Self; 9] = [
        Self::Text,
        Self::Audio,
        Self::Video,
        Self::Image,
        Self::Tensor,
        Self::Tokens,
        Self::Packet,
        Self::Signal,
        Self::Any,
    ];
    /// Its name in graph files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Image => "image",
            Self::Tensor => "tensor",
            Self::Tokens => "tokens",
            Self::Packet => "packet",
            Self::Signal => "signal",
            Self::Any => "any",
        }
    }
}

/// How an audio sample is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleType {
    /// 32-bit float, full scale -1 ..= 1.
    F32,
    /// Signed 16-bit little-endian.
    I16,
}

impl SampleType {
    /// Bytes of one sample.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::I16 => 2,
        }
    }
}

/// What a port takes or gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The medium.
    pub medium: Medium,
    /// Audio: samples per second.
    pub rate: Option<u32>,
    /// Audio: channels.
    pub channels: Option<u16>,
    /// Audio: sample type.
    pub sample: Option<SampleType>,
    /// Packet: codec.
    pub codec: Option<String>,
}

impl Kind {
    /// A medium with no parameter.
    pub const fn of(medium: Medium) -> Self {
        Self { medium, rate: None, channels: None, sample: None, codec: None }
    }
    /// Mono f32 audio at `rate` Hz.
    pub fn mono(rate: u32) -> Self {
        Self { rate: Some(rate), channels: Some(1), sample: Some(SampleType::F32), ..Self::of(Medium::Audio) }
    }
    /// Packets of one codec.
    pub fn packet(codec: &str) -> Self {
        Self { codec: Some(codec.to_owned()), ..Self::of(Medium::Packet) }
    }
    /// True if what `self` gives can be fed to an input that takes `input`.
    pub fn feeds(&self, input: &Self) -> bool {
        fn agree<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
            a.is_none() || b.is_none() || a == b
        }
        if self.medium == Medium::Any || input.medium == Medium::Any {
            return true;
        }
        self.medium == input.medium
            && agree(&self.rate, &input.rate)
            && agree(&self.channels, &input.channels)
            && agree(&self.sample, &input.sample)
            && agree(&self.codec, &input.codec)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.medium.name())?;
        if let Some(r) = self.rate {
            write!(f, " {r}")?;
        }
        match self.channels {
            Some(1) => f.write_str(" mono")?,
            Some(2) => f.write_str(" stereo")?,
            Some(n) => write!(f, " {n}ch")?,
            None => {}
        }
        match self.sample {
            Some(SampleType::F32) => f.write_str(" f32")?,
            Some(SampleType::I16) => f.write_str(" i16")?,
            None => {}
        }
        if let Some(c) = &self.codec {
            write!(f, " {c}")?;
        }
        Ok(())
    }
}

/// A kind that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not part of a port kind; write for instance `audio 16000 mono f32`, `text` or `packet opus`")]
pub struct KindError {
    /// The word at fault.
    pub word: String,
}

impl FromStr for Kind {
    type Err = KindError;
    fn from_str(s: &str) -> Result<Self, KindError> {
        let err = |w: &str| KindError { word: w.to_owned() };
        let mut words = s.split_whitespace();
        let first = words.next().ok_or_else(|| err(s))?;
        let medium = Medium::ALL.into_iter().find(|m| m.name() == first).ok_or_else(|| err(first))?;
        let mut k = Self::of(medium);
        for w in words {
            match (medium, w) {
                (Medium::Audio, "mono") => k.channels = Some(1),
                (Medium::Audio, "stereo") => k.channels = Some(2),
                (Medium::Audio, "f32") => k.sample = Some(SampleType::F32),
                (Medium::Audio, "i16") => k.sample = Some(SampleType::I16),
                (Medium::Audio, w) => {
                    if let Some(n) = w.strip_suffix("ch") {
                        k.channels = Some(n.parse().ok().filter(|n| *n > 0).ok_or_else(|| err(w))?);
                    } else {
                        k.rate = Some(w.parse().ok().filter(|n| *n > 0).ok_or_else(|| err(w))?);
                    }
                }
                (Medium::Packet, w) => k.codec = Some(w.to_owned()),
                (_, w) => return Err(err(w)),
            }
        }
        Ok(k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_as_written() {
        for s in ["audio 16000 mono f32", "audio 48000 stereo i16", "audio 44100 6ch", "text", "packet opus", "any"] {
            assert_eq!(s.parse::<Kind>().unwrap().to_string(), s);
        }
        for s in ["", "adio", "audio 0", "audio loud", "text mono", "audio 0ch"] {
            assert!(s.parse::<Kind>().is_err(), "{s}");
        }
    }
    #[test]
    fn a_missing_parameter_agrees_with_all() {
        let k = |s: &str| s.parse::<Kind>().unwrap();
        assert!(k("audio").feeds(&k("audio 16000 mono")));
        assert!(k("audio 16000 mono f32").feeds(&k("audio 16000")));
        assert!(!k("audio 48000 mono").feeds(&k("audio 16000 mono")));
        assert!(!k("text").feeds(&k("audio")));
        assert!(k("text").feeds(&k("any")));
    }
}
