//! Frame splitter and sample formats (G.711 among them). The first two bytes choose format, channels and step.
#![no_main]

use libfuzzer_sys::fuzz_target;
use omni_flow_media::pcm::{FrameSplitter, SampleFormat};

fuzz_target!(|input: &[u8]| {
    let [choice, step, bytes @ ..] = input else { return };
    let format = SampleFormat::ALL[usize::from(choice % 8)];
    let frame = format.bytes() * (1 + usize::from(choice / 8));
    let (mut splitter, mut whole) = (FrameSplitter::new(frame), Vec::new());
    for piece in bytes.chunks(1 + usize::from(*step)) {
        splitter.push(piece, &mut whole);
    }
    assert_eq!(whole, bytes[..bytes.len() - bytes.len() % frame]);
    assert_eq!(splitter.clear(), bytes.len() % frame);
    let (mut floats, mut again) = (Vec::new(), Vec::new());
    format.decode(&whole, &mut floats);
    assert!(floats.iter().all(|v| !v.is_nan()));
    format.encode(&floats, &mut again);
    assert_eq!(again.len(), whole.len());
});
