//! One Opus packet: its framing, and the decoder on it, on its redundancy, and after it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use omni_flow_media::opus::{OpusDecoder, PacketInfo};

fuzz_target!(|packet: &[u8]| {
    let Ok(mut decoder) = OpusDecoder::new(48_000, 2) else { return };
    let mut out = Vec::new();
    let info = PacketInfo::parse(packet);
    let decoded = decoder.decode(packet, &mut out);
    if let (Ok(info), Ok(_)) = (&info, &decoded) {
        assert_eq!(out.len(), 2 * info.samples(48_000));
    }
    assert!(info.is_ok() || decoded.is_err());
    let _ = decoder.decode_fec(packet, 960, &mut out);
    let _ = decoder.conceal(960, &mut out);
    assert!(out.iter().all(|v| v.is_finite()));
});
