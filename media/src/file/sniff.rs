//! What a file is, by its first bytes.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Empty,
    Wav,
    /// With the channels that its head states.
    OggOpus {
        channels: u8,
    },
    Other,
}

pub(super) fn kind(head: &[u8]) -> Kind {
    match head {
        [] => Kind::Empty,
        // A cut header goes to the WAV reader too, whose errors say more.
        _ if [b"RIFF", b"RIFX", b"RF64", b"BW64"].iter().any(|riff| head.starts_with(*riff))
            && head.get(8..12).is_none_or(|form| form == b"WAVE") =>
        {
            Kind::Wav
        }
        // The first page of Ogg Opus has one segment; its packet begins at byte 28 (RFC 7845).
        _ if head.starts_with(b"OggS") && head.get(28..36) == Some(b"OpusHead") => {
            Kind::OggOpus { channels: head.get(37).copied().unwrap_or(0) }
        }
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_decide() {
        assert_eq!(kind(b""), Kind::Empty);
        assert_eq!(kind(b"RIFF\0\0\0\0WAVEfmt "), Kind::Wav);
        assert_eq!(kind(b"RF64\xff\xff\xff\xffWAVE"), Kind::Wav);
        assert_eq!(kind(b"BW64\xff\xff\xff\xffWAVE"), Kind::Wav);
        assert_eq!(kind(b"RIFX\0\0\0\0WAVE"), Kind::Wav);
        assert_eq!(kind(b"RIFF\0\0"), Kind::Wav);
        assert_eq!(kind(b"RIFF\0\0\0\0AVI "), Kind::Other);
        assert_eq!(kind(b"fLaC"), Kind::Other);
        let mut ogg = b"OggS".to_vec();
        ogg.resize(28, 0);
        assert_eq!(kind(&ogg), Kind::Other);
        ogg.extend_from_slice(b"OpusHead");
        assert_eq!(kind(&ogg), Kind::OggOpus { channels: 0 });
        ogg.extend_from_slice(&[1, 2]);
        assert_eq!(kind(&ogg), Kind::OggOpus { channels: 2 });
    }
}
