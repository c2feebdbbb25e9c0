//! The bodies of the `fmt ` and `ds64` chunks.

use super::WavError;
use crate::pcm::{Layout, PcmSpec, SampleFormat};

/// Bytes of a `fmt ` body that are ever looked at: the EXTENSIBLE form ends there.
pub(super) const FMT_USED: usize = 40;
/// Shortest `fmt ` body.
pub(super) const FMT_LEAST: u32 = 16;
/// Bytes of a `ds64` body that are looked at: RIFF size and data size.
pub(super) const DS64_USED: usize = 16;

const TAG_PCM: u16 = 1;
const TAG_FLOAT: u16 = 3;
const TAG_ALAW: u16 = 6;
const TAG_MULAW: u16 = 7;
const TAG_EXTENSIBLE: u16 = 0xFFFE;
/// What follows the tag in the GUIDs of all sub-formats that stem from a tag.
const GUID_TAIL: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71];

/// Chunks that may follow an empty `data`. On a pipe any other four bytes there are samples.
pub(super) const KNOWN_CHUNKS: [&[u8; 4]; 30] = [
    b"LIST", b"list", b"fact", b"cue ", b"bext", b"JUNK", b"junk", b"id3 ", b"ID3 ", b"PEAK", b"smpl", b"inst",
    b"iXML", b"axml", b"aXML", b"chna", b"PAD ", b"FLLR", b"afsp", b"DISP", b"plst", b"note", b"labl", b"umid",
    b"levl", b"cart", b"slnt", b"_PMX", b"acid", b"strc",
];

/// Reads the first [`FMT_USED`] bytes (or fewer, if the chunk is shorter; at least 16) of a `fmt ` body.
///
/// The width of the container decides the stride: it is the bits rounded up to bytes, or four bytes where 17 to 24 bits
/// are stored with a block size that says so. Byte rate and valid bits are not looked at.
pub(super) fn parse_fmt(body: &[u8]) -> Result<PcmSpec, WavError> {
    let word = |at: usize| u16::from_le_bytes([body[at], body[at + 1]]);
    let long = |at: usize| u32::from_le_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
    if body.len() < FMT_LEAST as usize {
        return Err(WavError::Malformed { what: "its `fmt ` chunk is shorter than 16 bytes" });
    }
    let (mut tag, channels, rate, align, bits) = (word(0), word(2), long(4), word(12), word(14));
    let mut layout = Layout::of(channels);
    if tag == TAG_EXTENSIBLE {
        if body.len() < FMT_USED || word(16) < 22 {
            return Err(WavError::Malformed { what: "its EXTENSIBLE part is shorter than 22 bytes" });
        }
        if body[26..40] != GUID_TAIL {
            let guid: String = body[24..40].iter().map(|b| format!("{b:02x}")).collect();
            return Err(WavError::UnsupportedFormat { what: format!("the sub-format {guid}") });
        }
        tag = word(24);
        layout = Layout::with_mask(channels, long(20));
    }
    let unsupported = |what: String| Err(WavError::UnsupportedFormat { what });
    let format = match (tag, bits) {
        (TAG_PCM, 0) => return Err(WavError::Malformed { what: "its samples have 0 bits" }),
        (TAG_PCM, 1..=8) => SampleFormat::U8,
        (TAG_PCM, 9..=16) => SampleFormat::I16,
        (TAG_PCM, 17..=24) if u32::from(align) == 4 * u32::from(channels) => SampleFormat::I32,
        (TAG_PCM, 17..=24) => SampleFormat::I24,
        (TAG_PCM, 25..=32) => SampleFormat::I32,
        (TAG_PCM, _) => return unsupported(format!("PCM of {bits} bits")),
        (TAG_FLOAT, 32) => SampleFormat::F32,
        (TAG_FLOAT, 64) => SampleFormat::F64,
        (TAG_FLOAT, _) => return unsupported(format!("float of {bits} bits")),
        // Old writers leave the bits of companded samples at 0, or state those of the decoded ones.
        (TAG_ALAW, 0 | 8 | 16) => SampleFormat::Alaw,
        (TAG_MULAW, 0 | 8 | 16) => SampleFormat::Mulaw,
        _ => return unsupported(format!("format tag 0x{tag:04X} with {bits} bits")),
    };
    Ok(PcmSpec::new(format, rate, layout)?)
}

/// The 64-bit data size of a `ds64` body, unless it is a placeholder.
pub(super) fn parse_ds64(body: &[u8]) -> Option<u64> {
    let size = u64::from_le_bytes(*body.get(8..)?.first_chunk()?);
    (size != 0 && size != u64::MAX && size != u64::from(u32::MAX)).then_some(size)
}

/// The body of a `fmt ` chunk for writing: 16 bytes for linear PCM, 18 for float and G.711, 40 above two channels.
pub(super) fn build_fmt(spec: &PcmSpec) -> Vec<u8> {
    let tag = match spec.format() {
        SampleFormat::F32 | SampleFormat::F64 => TAG_FLOAT,
        SampleFormat::Alaw => TAG_ALAW,
        SampleFormat::Mulaw => TAG_MULAW,
        _ => TAG_PCM,
    };
    let extensible = spec.channels() > 2;
    let bits = 8 * spec.format().bytes() as u16;
    let mut body = Vec::with_capacity(FMT_USED);
    body.extend_from_slice(&if extensible { TAG_EXTENSIBLE } else { tag }.to_le_bytes());
    body.extend_from_slice(&spec.layout().channels().to_le_bytes());
    body.extend_from_slice(&spec.rate().to_le_bytes());
    body.extend_from_slice(&(spec.rate() * spec.frame_bytes() as u32).to_le_bytes());
    body.extend_from_slice(&(spec.frame_bytes() as u16).to_le_bytes());
    body.extend_from_slice(&bits.to_le_bytes());
    if extensible {
        body.extend_from_slice(&22u16.to_le_bytes());
        body.extend_from_slice(&bits.to_le_bytes());
        body.extend_from_slice(&spec.layout().mask().to_le_bytes());
        body.extend_from_slice(&tag.to_le_bytes());
        body.extend_from_slice(&GUID_TAIL);
    } else if tag != TAG_PCM {
        body.extend_from_slice(&0u16.to_le_bytes());
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fmt(tag: u16, channels: u16, rate: u32, align: u16, bits: u16) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend_from_slice(&tag.to_le_bytes());
        body.extend_from_slice(&channels.to_le_bytes());
        body.extend_from_slice(&rate.to_le_bytes());
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(&align.to_le_bytes());
        body.extend_from_slice(&bits.to_le_bytes());
        body
    }

    #[test]
    fn what_is_written_is_read_back() {
        for format in SampleFormat::ALL {
            for channels in [1, 2, 3, 6, 64] {
                let spec = PcmSpec::new(format, 44_100, Layout::of(channels)).unwrap();
                assert_eq!(parse_fmt(&build_fmt(&spec)), Ok(spec));
            }
        }
    }

    #[test]
    fn the_container_decides_the_stride() {
        let format = |body: Vec<u8>| parse_fmt(&body).unwrap().format();
        assert_eq!(format(fmt(1, 1, 48_000, 2, 12)), SampleFormat::I16);
        assert_eq!(format(fmt(1, 1, 48_000, 3, 20)), SampleFormat::I24);
        assert_eq!(format(fmt(1, 2, 48_000, 8, 24)), SampleFormat::I32);
        // A block size that makes no sense is not used.
        assert_eq!(format(fmt(1, 2, 48_000, 0, 24)), SampleFormat::I24);
        assert_eq!(format(fmt(1, 1, 48_000, 4, 16)), SampleFormat::I16);
        assert_eq!(format(fmt(7, 1, 8000, 1, 0)), SampleFormat::Mulaw);
    }

    #[test]
    fn what_no_stream_may_have_is_refused_by_type() {
        let unsupported = |body: Vec<u8>| matches!(parse_fmt(&body), Err(WavError::UnsupportedFormat { .. }));
        assert!(unsupported(fmt(2, 1, 8000, 256, 4)));
        assert!(unsupported(fmt(0x55, 2, 44_100, 1, 0)));
        assert!(unsupported(fmt(3, 1, 8000, 2, 16)));
        assert!(unsupported(fmt(1, 1, 8000, 8, 64)));
        assert!(matches!(parse_fmt(&fmt(1, 0, 8000, 2, 16)), Err(WavError::Spec(SpecError::Channels(0)))));
        assert!(matches!(parse_fmt(&fmt(1, 1, 0, 2, 16)), Err(WavError::Spec(SpecError::Rate(0)))));
        assert!(matches!(parse_fmt(&fmt(1, 1, 8000, 2, 0)), Err(WavError::Malformed { .. })));
        assert!(matches!(parse_fmt(&fmt(0xFFFE, 1, 8000, 2, 16)), Err(WavError::Malformed { .. })));
    }

    use crate::pcm::SpecError;
}
