//! MP3, by `rusty_mp3`.

use rusty_mp3::{Error, Mp3Encoder, Mp3EncoderConfig};

use super::{ClipError, integers};

/// Rates that MPEG layer III has.
pub(super) const RATES: [u32; 9] = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];

pub(super) fn encode(samples: &[f32], rate: u32, channels: usize) -> Result<Vec<u8>, ClipError> {
    let failed = |e: Error| ClipError::Codec { format: "mp3", why: e.to_string() };
    // Generous for speech: 64 kbit/s and channel up to 24 kHz, 96 above.
    let bitrate_kbps = if rate > 24_000 { 96 } else { 64 } * channels as u32;
    let mut encoder = Mp3Encoder::new(Mp3EncoderConfig { bitrate_kbps, vbr_quality: None });
    let mut file = Vec::new();
    let mut take = |encoder: &mut Mp3Encoder| loop {
        match encoder.next_packet() {
            Ok(packet) => file.extend_from_slice(&packet),
            Err(Error::Again | Error::Eof) => return Ok(()),
            Err(e) => return Err(failed(e)),
        }
    };
    for block in integers(samples).chunks(8192 * channels) {
        encoder.push_pcm_s16(block, channels as u16, rate).map_err(failed)?;
        take(&mut encoder)?;
    }
    encoder.finish();
    take(&mut encoder)?;
    // The first frame tells how long the file is; that is known only now.
    if let (Some(tag), true) = (encoder.lame_tag_frame(), !file.is_empty())
        && let Some(first) = file.get_mut(..tag.len())
    {
        first.copy_from_slice(tag);
    }
    Ok(file)
}
