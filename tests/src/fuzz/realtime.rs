//! The Realtime protocol: a client's events, and the audio in them.

use base64::{Engine, engine::general_purpose::STANDARD};
use omni_flow_transports::realtime::config::format::{AudioFormat, Encoding};
use omni_flow_transports::realtime::rules::input::Input;
use omni_flow_transports::realtime::wire::client::{ClientEvent, MOST_BYTES, parse};
use omni_flow_transports::realtime::wire::code::Code;

/// Samples per second of a session; the first rate is none and the last ones are not offered.
const RATES: [u32; 8] = [0, 8000, 16_000, 24_000, 44_100, 48_000, 48_001, u32::MAX];

/// An event of a client: read, or refused with a reason. What is read does not depend on white space around it, and is
/// read up to its own length and no shorter.
pub fn client_event(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let read = parse(&text, MOST_BYTES);
    assert_eq!(read, parse(&text, text.len()));
    if let Some(less) = text.len().checked_sub(1) {
        assert!(parse(&text, less).is_err_and(|r| r.refusal.code == Code::EventTooLarge && r.event_id.is_none()));
    }
    match read {
        Err(rejected) => assert!(!rejected.to_string().is_empty()),
        Ok(incoming) => {
            assert_eq!(parse(&format!(" {text}\n"), MOST_BYTES).as_ref(), Ok(&incoming));
            match incoming.event {
                ClientEvent::Resume(resume) => drop(resume.claim()),
                ClientEvent::Append(append) => {
                    assert!(append.audio.is_some() || !append.video_frames.is_empty());
                    if let Ok(format) = append.audio_format(AudioFormat::pcm16(24_000), 24_000) {
                        assert!(format.checked("format").is_ok());
                    }
                    let _ = append.speech(0.0, 0.003);
                }
                _ => {}
            }
        }
    }
}

/// A client's audio: any cut gives the same samples, all within full scale, and what is refused changes nothing. The first
/// three bytes choose the encoding, the rate and the step; the bytes behind them are also taken as text that should be
/// base64.
pub fn client_audio(input: &[u8]) {
    let [encoding, rate, step, bytes @ ..] = input else { return };
    let encodings = [Encoding::Pcm16, Encoding::PcmF32, Encoding::Ulaw, Encoding::Alaw];
    let encoding = encodings[usize::from(*encoding) % encodings.len()];
    let format = AudioFormat { encoding, rate_hz: RATES[usize::from(*rate) % RATES.len()] };
    let good = (8000..=48_000).contains(&format.rate_hz);
    let text = String::from_utf8_lossy(bytes);
    let base64 = STANDARD.decode(text.as_bytes()).is_ok();
    let read = |step: usize| {
        let (mut input, mut out) = (Input::new(16_000), Vec::new());
        for piece in bytes.chunks(step) {
            let pushed = input.push(format, &STANDARD.encode(piece), &mut out);
            assert_eq!(pushed.is_ok(), good, "{pushed:?}");
            if !base64 {
                assert!(input.push(AudioFormat::pcm16(8000), &text, &mut out).is_err());
            }
        }
        input.finish(&mut out);
        (out, input.dropped_bytes(), input.repaired())
    };
    let whole = read(bytes.len().max(1));
    assert!(whole.0.iter().all(|sample| sample.abs() <= 1.0));
    assert!(good || whole == (Vec::new(), 0, 0));
    assert!(whole == read(1 + usize::from(*step)));
    let _ = Input::new(16_000).push(format, &text, &mut Vec::new());
}
