//! FLAC, by `flacenc`.

use flacenc::bitsink::ByteSink;
use flacenc::component::BitRepr as _;
use flacenc::error::Verify as _;

use super::{ClipError, integers};

pub(super) fn encode(samples: &[f32], rate: u32, channels: usize) -> Result<Vec<u8>, ClipError> {
    let failed = |why: String| ClipError::Codec { format: "flac", why };
    let samples: Vec<i32> = integers(samples).into_iter().map(i32::from).collect();
    let config = flacenc::config::Encoder::default().into_verified().map_err(|(_, e)| failed(e.to_string()))?;
    let source = flacenc::source::MemSource::from_samples(&samples, channels, 16, rate as usize);
    let mut stream =
        flacenc::encode_with_fixed_block_size(&config, source, config.block_size).map_err(|e| failed(e.to_string()))?;
    // All frames but the last are of one size; the library counts the last one too, and strict readers stumble over that.
    stream
        .stream_info_mut()
        .set_block_sizes(config.block_size, config.block_size)
        .map_err(|e| failed(e.to_string()))?;
    let mut sink = ByteSink::new();
    stream.write(&mut sink).map_err(|e| failed(e.to_string()))?;
    Ok(sink.into_inner())
}
