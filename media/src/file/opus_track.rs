//! Opus inside another container (WebM, Matroska, MP4): packets come from symphonia, which has no decoder for them.
//!
//! Always 48 kHz. The pre-skip is dropped and the gain applied. Padding at the end stays where the container says
//! nothing of it that reaches us: up to one packet of near silence.

use super::AudioFileError;
use crate::ogg_opus::OpusHead;
use crate::opus::{DecodeError, OpusDecoder, TICKS};

pub(super) struct OpusTrack {
    decoder: OpusDecoder,
    gain: f32,
    /// Samples over all channels that are still to be dropped.
    skip: usize,
}

impl OpusTrack {
    /// A decoder for the track with this head, as Matroska and MP4 store it.
    pub(super) fn new(head: &[u8], name: &str) -> Result<Self, AudioFileError> {
        let head = OpusHead::parse(&little_endian(head)).map_err(|error| AudioFileError::Unsupported {
            name: name.to_owned(),
            what: format!("its Opus track ({error})"),
        })?;
        let decoder = OpusDecoder::new(TICKS, head.channels)
            .map_err(|e| AudioFileError::Damaged { name: name.to_owned(), what: e.to_string() })?;
        let skip = usize::from(head.pre_skip) * usize::from(head.channels);
        Ok(Self { decoder, gain: head.gain_factor(), skip })
    }

    pub(super) fn channels(&self) -> usize {
        self.decoder.channels().into()
    }

    /// Replaces `out` by the samples of a packet, of which `trim` frames at the end are padding.
    pub(super) fn decode(&mut self, packet: &[u8], trim: u64, out: &mut Vec<f32>) -> Result<(), DecodeError> {
        out.clear();
        self.decoder.decode(packet, out)?;
        let trim = usize::try_from(trim).unwrap_or(usize::MAX).saturating_mul(self.channels());
        out.truncate(out.len().saturating_sub(trim));
        let skip = self.skip.min(out.len());
        self.skip -= skip;
        out.drain(..skip);
        if self.gain != 1.0 {
            out.iter_mut().for_each(|sample| *sample *= self.gain);
        }
        Ok(())
    }
}

/// MP4 stores the head as version 0 with its numbers the other way round.
fn little_endian(head: &[u8]) -> Vec<u8> {
    let mut head = head.to_vec();
    if let Some([0, _, s0, s1, r0, r1, r2, r3, g0, g1, ..]) = head.get_mut(8..) {
        std::mem::swap(s0, s1);
        std::mem::swap(r0, r3);
        std::mem::swap(r1, r2);
        std::mem::swap(g0, g1);
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_of_bytes_give_the_same_head() {
        let head = OpusHead { channels: 2, pre_skip: 312, input_rate: 44_100, gain: -256 };
        let ogg = head.to_packet();
        let mut mp4 = ogg.clone();
        mp4[8] = 0;
        mp4[10..12].copy_from_slice(&312u16.to_be_bytes());
        mp4[12..16].copy_from_slice(&44_100u32.to_be_bytes());
        mp4[16..18].copy_from_slice(&(-256i16).to_be_bytes());
        for stored in [&ogg, &mp4] {
            assert_eq!(OpusHead::parse(&little_endian(stored)), Ok(head));
        }
    }

    #[test]
    fn a_head_that_is_cut_or_of_many_channels_is_refused_with_advice() {
        for head in [&b""[..], b"OpusHead", b"OpusHead\0\x01", b"OpusHead\x01\x06\0\0\0\0\0\0\0\0\x01"] {
            let Err(error) = OpusTrack::new(head, "talk.webm") else { panic!("{head:?}") };
            assert!(error.to_string().starts_with("`talk.webm`: its Opus track ("), "{error}");
        }
    }

    #[test]
    fn pre_skip_may_be_longer_than_the_first_packet() {
        let head = OpusHead { channels: 1, pre_skip: 1_000, input_rate: 48_000, gain: 0 };
        let mut track = OpusTrack::new(&head.to_packet(), "a").unwrap();
        let mut encoder = crate::opus::OpusEncoder::new(crate::opus::EncoderConfig::default()).unwrap();
        let packet = encoder.encode(&[0.1; 960]).unwrap();
        let mut out = Vec::new();
        let lengths = [0, 0, 60].map(|trim| {
            track.decode(&packet, trim, &mut out).unwrap();
            out.len()
        });
        assert_eq!(lengths, [0, 920, 900]);
    }
}
