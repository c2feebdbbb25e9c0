//! Audio: WAV, raw samples, Ogg Opus, Opus packets, files of any kind.

use std::io::Cursor;

use omni_flow_media::file::{AudioFile, Input};
use omni_flow_media::ogg_opus::{OggOpusDecoder, Page};
use omni_flow_media::opus::{OpusDecoder, PacketInfo};
use omni_flow_media::pcm::{FrameSplitter, SampleFormat};
use omni_flow_media::wav::{WavOrigin, WavReader};

/// Most samples that an Ogg file is decoded to: a few positions far apart make more, and there is nothing to learn from it.
const MOST: usize = 1 << 20;
/// Most packets of an audio file that are read.
const PACKETS: usize = 1000;

/// Any audio file, from memory and through a pipe. A panic inside symphonia is caught by the reader and not looked for.
pub fn audio_file(input: &[u8]) {
    for source in [Input::memory(input.to_vec()), Input::pipe(Cursor::new(input.to_vec()))] {
        let Ok(mut file) = AudioFile::new(source, "fuzz") else { continue };
        let mut out = Vec::new();
        for _ in 0..PACKETS {
            out.clear();
            if !matches!(file.next(&mut out), Ok(1..)) {
                break;
            }
        }
    }
}

/// Ogg Opus with right checksums over any content: the input is a step, then a list of pages, each a type, a serial
/// number, a sequence number, a position, a number of segments, their lengths and a body. Any cut of the bytes gives the
/// same number of samples.
pub fn ogg_opus(input: &[u8]) {
    let Some((&step, mut rest)) = input.split_first() else { return };
    let mut bytes = Vec::new();
    while let [kind, serial, sequence, position, segments, after @ ..] = rest {
        let lacing: Vec<u8> = after.iter().take(usize::from(segments % 8)).copied().collect();
        let after = &after[lacing.len()..];
        let length: usize = lacing.iter().map(|l| usize::from(*l)).sum();
        let (body, next) = after.split_at(length.min(after.len()));
        let mut body = body.to_vec();
        body.resize(length, 0);
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
}

/// One Opus packet: its framing, and the decoder on it, on its redundancy, and after it.
pub fn opus_packet(packet: &[u8]) {
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
}

/// Frame splitter and sample formats (G.711 among them). The first two bytes choose format, channels and step.
pub fn samples(input: &[u8]) {
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
    assert_eq!(format.encode(&floats, &mut again).nan, 0);
    assert_eq!(again.len(), whole.len());
}

/// The WAV parser: any cut gives the same result, and nothing comes out that did not go in. The first byte chooses the
/// origin and the step.
pub fn wav(input: &[u8]) {
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
}
