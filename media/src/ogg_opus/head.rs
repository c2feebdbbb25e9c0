//! The two header packets of Ogg Opus: `OpusHead` and `OpusTags` (RFC 7845 §5).

/// Why an `OpusHead` packet cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The packet is no `OpusHead` or too short.
    #[error("OpusHead packet of {bytes} bytes is cut short or has another name; the stream is not Ogg Opus")]
    Malformed {
        /// Bytes of the packet.
        bytes: usize,
    },
    /// A major version other than 0.
    #[error("OpusHead version {version} is unknown; only versions 0 to 15 are defined")]
    Version {
        /// The version byte.
        version: u8,
    },
    /// More than stereo, or a mapping of several coded streams.
    #[error(
        "Ogg Opus with mapping family {family} and {channels} channels is not supported; convert to mono or stereo"
    )]
    Channels {
        /// Channel mapping family.
        family: u8,
        /// Channels announced.
        channels: u8,
    },
}

/// Parameters of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpusHead {
    /// 1 or 2.
    pub channels: u8,
    /// Samples at 48 kHz to drop at the start.
    pub pre_skip: u16,
    /// Rate of the material before encoding in Hz, for information; 0 if unknown.
    pub input_rate: u32,
    /// Gain to apply, in 1/256 dB.
    pub gain: i16,
}

impl OpusHead {
    /// Parses the packet.
    ///
    /// # Errors
    /// [`HeadError`]: cut, of another name or version, or of more than two channels.
    pub fn parse(packet: &[u8]) -> Result<Self, HeadError> {
        let malformed = HeadError::Malformed { bytes: packet.len() };
        let Some(&[version, channels, s0, s1, r0, r1, r2, r3, g0, g1, family]) =
            packet.strip_prefix(b"OpusHead").and_then(|rest| rest.first_chunk::<11>())
        else {
            return Err(malformed);
        };
        if version > 15 {
            return Err(HeadError::Version { version });
        }
        if channels == 0 {
            return Err(malformed);
        }
        if channels > 2 || family != 0 {
            return Err(HeadError::Channels { family, channels });
        }
        Ok(Self {
            channels,
            pre_skip: u16::from_le_bytes([s0, s1]),
            input_rate: u32::from_le_bytes([r0, r1, r2, r3]),
            gain: i16::from_le_bytes([g0, g1]),
        })
    }

    /// The packet.
    pub fn to_packet(&self) -> Vec<u8> {
        let mut packet = b"OpusHead\x01".to_vec();
        packet.push(self.channels);
        packet.extend_from_slice(&self.pre_skip.to_le_bytes());
        packet.extend_from_slice(&self.input_rate.to_le_bytes());
        packet.extend_from_slice(&self.gain.to_le_bytes());
        packet.push(0);
        packet
    }

    /// The gain as a factor.
    pub fn gain_factor(&self) -> f32 {
        10f32.powf(f32::from(self.gain) / (20.0 * 256.0))
    }
}

/// Names of the stream and of its encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpusTags {
    /// The encoder.
    pub vendor: String,
    /// `NAME=value` pairs.
    pub comments: Vec<String>,
}

impl Default for OpusTags {
    fn default() -> Self {
        Self { vendor: "omni-flow".to_owned(), comments: Vec::new() }
    }
}

impl OpusTags {
    /// Parses as much as is there: a packet that is cut, or lies about its lengths, gives the comments before the fault.
    /// `None` if the packet is no `OpusTags`.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let mut rest = packet.strip_prefix(b"OpusTags")?;
        let Some(vendor) = text(&mut rest) else {
            return Some(Self { vendor: String::new(), comments: Vec::new() });
        };
        let count = number(&mut rest).unwrap_or(0);
        let comments = (0..count).map_while(|_| text(&mut rest)).collect();
        Some(Self { vendor, comments })
    }

    /// The packet.
    pub fn to_packet(&self) -> Vec<u8> {
        let mut packet = b"OpusTags".to_vec();
        let mut put = |text: &str| {
            packet.extend_from_slice(&(text.len() as u32).to_le_bytes());
            packet.extend_from_slice(text.as_bytes());
        };
        put(&self.vendor);
        packet.extend_from_slice(&(self.comments.len() as u32).to_le_bytes());
        for comment in &self.comments {
            packet.extend_from_slice(&(comment.len() as u32).to_le_bytes());
            packet.extend_from_slice(comment.as_bytes());
        }
        packet
    }
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_le_bytes(*head))
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = number(rest)? as usize;
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(String::from_utf8_lossy(head).into_owned())
}
