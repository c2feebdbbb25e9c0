//! The header of a WAV file that is being written, with checked sizes.

use super::chunk::build_fmt;
use crate::pcm::{PcmSpec, SampleFormat};

/// The size fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WavSizes {
    /// Size of the `RIFF` chunk: all of the file behind its first eight bytes.
    pub riff: u32,
    /// Size of the `data` chunk: the payload without its pad byte.
    pub data: u32,
    /// Frames in the payload (for the `fact` chunk of formats that are not linear PCM).
    pub frames: u32,
}

impl WavSizes {
    /// "Until the end": for outputs that cannot be patched.
    pub const UNKNOWN: WavSizes = WavSizes { riff: u32::MAX, data: u32::MAX, frames: u32::MAX };
}

/// The sizes for a payload of so many bytes; `None` where a field of 32 bits would overflow.
pub fn wav_sizes(spec: &PcmSpec, payload: u64) -> Option<WavSizes> {
    let data = u32::try_from(payload).ok()?;
    let riff = (header_len(spec) as u64 - 8).checked_add(payload)?.checked_add(payload % 2)?;
    let frames = data / spec.frame_bytes() as u32;
    Some(WavSizes { riff: u32::try_from(riff).ok()?, data, frames })
}

/// Most payload bytes that a file of this format can hold: whole frames only.
pub(super) fn most_payload(spec: &PcmSpec) -> u64 {
    let room = u64::from(u32::MAX) - (header_len(spec) as u64 - 8);
    // The pad byte of an odd payload needs room too.
    let room = room - room % 2;
    room - room % spec.frame_bytes() as u64
}

/// Bytes in front of the first sample: 44 for linear PCM, 58 for float and G.711, 68 or 80 above two channels.
pub(super) fn header_len(spec: &PcmSpec) -> usize {
    12 + 8 + build_fmt(spec).len() + if has_fact(spec) { 12 } else { 0 } + 8
}

/// The whole header.
pub(super) fn build_header(spec: &PcmSpec, sizes: WavSizes) -> Vec<u8> {
    let fmt = build_fmt(spec);
    let mut header = Vec::with_capacity(header_len(spec));
    header.extend_from_slice(b"RIFF");
    header.extend_from_slice(&sizes.riff.to_le_bytes());
    header.extend_from_slice(b"WAVEfmt ");
    header.extend_from_slice(&(fmt.len() as u32).to_le_bytes());
    header.extend_from_slice(&fmt);
    if has_fact(spec) {
        header.extend_from_slice(b"fact");
        header.extend_from_slice(&4u32.to_le_bytes());
        header.extend_from_slice(&sizes.frames.to_le_bytes());
    }
    header.extend_from_slice(b"data");
    header.extend_from_slice(&sizes.data.to_le_bytes());
    header
}

fn has_fact(spec: &PcmSpec) -> bool {
    use SampleFormat::{Alaw, F32, F64, Mulaw};
    matches!(spec.format(), F32 | F64 | Alaw | Mulaw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcm::Layout;

    #[test]
    fn sizes_near_four_gibibytes_are_checked() {
        let spec = PcmSpec::new(SampleFormat::U8, 8000, Layout::MONO).unwrap();
        assert_eq!(wav_sizes(&spec, u64::from(u32::MAX)), None);
        assert_eq!(wav_sizes(&spec, u64::MAX), None);
        let most = most_payload(&spec);
        assert_eq!(wav_sizes(&spec, most).map(|s| u64::from(s.data)), Some(most));
        assert_eq!(wav_sizes(&spec, most + 2), None);
        for format in SampleFormat::ALL {
            for channels in [1, 2, 3, 7] {
                let spec = PcmSpec::new(format, 8000, Layout::of(channels)).unwrap();
                let most = most_payload(&spec);
                assert_eq!(most % spec.frame_bytes() as u64, 0);
                assert!(wav_sizes(&spec, most).is_some());
                assert!(wav_sizes(&spec, most + spec.frame_bytes() as u64 + 1).is_none());
            }
        }
    }

    #[test]
    fn the_header_has_its_stated_length() {
        for (format, channels, len) in [
            (SampleFormat::I16, 1, 44),
            (SampleFormat::F32, 2, 58),
            (SampleFormat::I24, 6, 68),
            (SampleFormat::Alaw, 3, 80),
        ] {
            let spec = PcmSpec::new(format, 8000, Layout::of(channels)).unwrap();
            assert_eq!(header_len(&spec), len);
            assert_eq!(build_header(&spec, WavSizes::UNKNOWN).len(), len);
        }
    }
}
