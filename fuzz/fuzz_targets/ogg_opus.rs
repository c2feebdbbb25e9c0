//! Ogg Opus with right checksums over any content: the input is a list of pages, each a type, a serial number, a sequence
//! number, a position and a body in segments. Any cut of the bytes gives the same samples.
#![no_main]

use libfuzzer_sys::fuzz_target;
use omni_flow_media::ogg_opus::{OggOpusDecoder, Page};

/// More samples than this are made by a few positions far apart; there is nothing to learn from more.
const MOST: usize = 1 << 22;

fuzz_target!(|input: &[u8]| {
    let Some((&step, mut rest)) = input.split_first() else { return };
    let mut bytes = Vec::new();
    while let [kind, serial, sequence, position, segments, after @ ..] = rest {
        let lacing: Vec<u8> = after.iter().take(usize::from(segments % 8)).copied().collect();
        let after = &after[lacing.len()..];
        let length = lacing.iter().map(|l| usize::from(*l)).sum::<usize>().min(after.len());
        let (body, next) = after.split_at(length);
        let mut body = body.to_vec();
        body.resize(lacing.iter().map(|l| usize::from(*l)).sum(), 0);
        let page = Page {
            continued: kind & 1 != 0,
            first: kind & 2 != 0,
            last: kind & 4 != 0,
            serial: u32::from(serial % 3),
            sequence: u32::from(*sequence),
            granule: i64::from(*position) * 480 - 480,
            lacing,
            body,
        };
        page.write(&mut bytes);
        rest = next;
    }
    let decode = |step: usize| {
        let Ok(mut decoder) = OggOpusDecoder::new(16_000, 1) else { return Vec::new() };
        let mut out = Vec::new();
        for piece in bytes.chunks(step) {
            let _ = decoder.push(piece, &mut out);
            if out.len() > MOST {
                return Vec::new();
            }
        }
        let _ = decoder.finish(&mut out);
        out
    };
    let (whole, pieces) = (decode(bytes.len().max(1)), decode(1 + usize::from(step)));
    assert!(whole.is_empty() || pieces.is_empty() || whole.len() == pieces.len());
});
