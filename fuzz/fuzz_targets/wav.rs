//! The WAV parser: any split gives the same result, and nothing comes out that did not go in. The first byte chooses the
//! origin and the step.
#![no_main]

use libfuzzer_sys::fuzz_target;
use omni_flow_media::wav::{WavOrigin, WavReader};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let origin = match choice % 3 {
        0 => WavOrigin::Pipe,
        1 => WavOrigin::File { len: bytes.len() as u64 },
        _ => WavOrigin::Pieces,
    };
    let read = |step: usize| {
        let (mut reader, mut out) = (WavReader::new(origin), Vec::new());
        let pushed = bytes.chunks(step).try_for_each(|piece| reader.push(piece, &mut out));
        let end = pushed.and_then(|()| reader.finish(&mut out));
        assert!(out.len() <= bytes.len());
        (end, out)
    };
    let whole = read(bytes.len().max(1));
    assert_eq!(whole, read(1));
    assert_eq!(whole, read(1 + usize::from(choice / 3)));
    let (mut reader, mut out) = (WavReader::new(WavOrigin::Pieces), Vec::new());
    for piece in bytes.chunks(1 + usize::from(choice)) {
        let _ = reader.push_piece(piece, &mut out);
    }
    let _ = reader.finish(&mut out);
    assert!(out.len() <= bytes.len());
});
