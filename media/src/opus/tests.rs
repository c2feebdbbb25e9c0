use std::path::PathBuf;

use super::*;

struct Line {
    seq: u64,
    ts: u64,
    packet: Vec<u8>,
}

fn vector(name: &str) -> Vec<Line> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/data/vectors").join(name);
    let field = |line: &str, key: &str| {
        let rest = line.split_once(&format!("\"{key}\": ")).unwrap().1;
        rest.trim_matches(['"', '}']).split([',', '"', '}']).next().unwrap().to_owned()
    };
    std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| {
            let hex = field(line, "hex");
            let packet = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
            Line { seq: field(line, "seq").parse().unwrap(), ts: field(line, "ts").parse().unwrap(), packet }
        })
        .collect()
}

fn receive(lines: &[Line], rate: u32, channels: u8) -> (Vec<Received>, ReceiverStats) {
    let mut receiver = OpusReceiver::new(ReceiverConfig::new(rate, channels)).unwrap();
    let mut out = Vec::new();
    for line in lines {
        receiver.receive(line.seq, line.ts, &line.packet, &mut out).unwrap();
    }
    (out, receiver.stats())
}

fn samples(received: &[Received]) -> Vec<f32> {
    received
        .iter()
        .flat_map(|r| match r {
            Received::Audio { samples, .. } => samples.clone(),
            Received::Discontinuity { .. } => Vec::new(),
        })
        .collect()
}

fn rms(samples: &[f32]) -> f64 {
    (samples.iter().map(|&s| f64::from(s).powi(2)).sum::<f64>() / samples.len() as f64).sqrt()
}

fn correlation(a: &[f32], b: &[f32]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
    dot / (rms(a) * rms(b) * a.len() as f64)
}

fn tone(frequency: f64, rate: u32, channels: usize, frames: usize) -> Vec<f32> {
    (0..frames)
        .flat_map(|n| {
            let v = 0.5 * (2.0 * std::f64::consts::PI * frequency * n as f64 / f64::from(rate)).sin() as f32;
            std::iter::repeat_n(v, channels)
        })
        .collect()
}

#[test]
fn f12_lossy_stream_keeps_its_time() {
    let full = vector("f12-opus-full.jsonl");
    let lossy = vector("f12-opus-lossy.jsonl");
    assert_eq!((full.len(), lossy.len()), (50, 48));
    let (received, stats) = receive(&lossy, 48_000, 1);
    let out = samples(&received);
    assert_eq!(out.len(), 69_120);
    assert_eq!(stats.lost, 4);
    assert_eq!(stats.silence_ms(), 400);
    assert_eq!(stats.dtx, 1);
    assert_eq!((stats.late, stats.illegal, stats.discontinuities), (0, 0, 0));
    // Each span starts where the one before it ended, and only packet 51 is DTX.
    let mut at = 0;
    let mut fills = Vec::new();
    for span in &received {
        let Received::Audio { timestamp, samples, fill } = span else { panic!("{span:?}") };
        assert_eq!(*timestamp, at);
        at += samples.len() as u64;
        fills.push(*fill);
    }
    assert_eq!(fills.iter().filter(|f| **f == Fill::Concealed).count(), 2);
    assert_eq!(fills.iter().filter(|f| **f == Fill::Fec).count(), 2);
    assert_eq!(fills.last(), Some(&Fill::Dtx));
    assert_eq!(fills[fills.len() - 2], Fill::Packet);
    // Frame 10 from FEC against the same frame of the whole stream.
    let (whole, whole_stats) = receive(&full, 48_000, 1);
    assert_eq!(whole_stats, ReceiverStats { packets: 50, ..ReceiverStats::default() });
    let whole = samples(&whole);
    let (rebuilt, real) = (&out[9_600..10_560], &whole[9_600..10_560]);
    let level = 20.0 * (rms(rebuilt) / rms(real)).log10();
    assert!(level.abs() <= 3.0, "{level} dB");
    let similar = correlation(rebuilt, real);
    assert!(similar >= 0.9, "{similar}");
    // The silence is silent.
    let pause = 31 * 960..31 * 960 + 19_200;
    assert!(out[pause].iter().all(|&v| v == 0.0));
}

#[test]
fn f12_holds_at_every_rate_and_layout() {
    let lossy = vector("f12-opus-lossy.jsonl");
    for rate in RATES {
        for channels in [1, 2] {
            let (received, stats) = receive(&lossy, rate, channels);
            let frames = samples(&received).len() / usize::from(channels);
            assert_eq!(frames, 69_120 * rate as usize / 48_000);
            assert_eq!((stats.lost, stats.silence_ms(), stats.dtx), (4, 400, 1));
        }
    }
}

#[test]
fn wild_timestamp_is_marked_not_filled() {
    let full = vector("f12-opus-full.jsonl");
    let mut receiver = OpusReceiver::new(ReceiverConfig::new(16_000, 1)).unwrap();
    let mut out = Vec::new();
    receiver.receive(0, 0, &full[0].packet, &mut out).unwrap();
    receiver.receive(1, 960 + 480_000, &full[1].packet, &mut out).unwrap();
    assert_eq!(receiver.stats().silence_ms(), 10_000);
    out.clear();
    receiver.receive(2, 2 * 960 + 480_000 + 480_001, &full[2].packet, &mut out).unwrap();
    assert_eq!(out[0], Received::Discontinuity { timestamp: 961_921, missing: 480_001 });
    assert_eq!((out.len(), receiver.stats().silence_ms()), (2, 10_000));
    out.clear();
    receiver.receive(3, u64::MAX - 3, &full[3].packet, &mut out).unwrap();
    receiver.receive(9, 5, &full[4].packet, &mut out).unwrap();
    assert_eq!(receiver.stats().discontinuities, 3);
    assert!(matches!(out[2], Received::Discontinuity { timestamp: 5, missing } if missing < 0));
}

#[test]
fn late_doubled_and_illegal_packets_take_no_time() {
    let full = vector("f12-opus-full.jsonl");
    let mut receiver = OpusReceiver::new(ReceiverConfig::new(48_000, 1)).unwrap();
    let mut out = Vec::new();
    receiver.receive(5, 4_800, &full[5].packet, &mut out).unwrap();
    receiver.receive(5, 4_800, &full[5].packet, &mut out).unwrap();
    receiver.receive(4, 3_840, &full[4].packet, &mut out).unwrap();
    receiver.receive(6, 5_760, &[], &mut out).unwrap();
    receiver.receive(6, 5_760, &[0x03, 0x00], &mut out).unwrap();
    receiver.receive(7, 6_720, &full[7].packet, &mut out).unwrap();
    let stats = receiver.stats();
    assert_eq!((stats.late, stats.illegal, stats.lost, stats.recovered), (2, 2, 1, 1));
    assert_eq!(samples(&out).len(), 3 * 960);
}

#[test]
fn odd_gaps_do_not_add_up() {
    // 41 ticks are 13.67 samples at 16 kHz: three of them are exactly 41.
    let full = vector("f12-opus-full.jsonl");
    let mut receiver = OpusReceiver::new(ReceiverConfig::new(16_000, 1)).unwrap();
    let mut out = Vec::new();
    for n in 0..30u64 {
        receiver.receive(n, n * (960 + 41), &full[n as usize].packet, &mut out).unwrap();
    }
    let ticks = 29 * 1_001 + 960;
    assert_eq!(samples(&out).len(), ticks * 16_000 / 48_000);
}

#[test]
fn dtx_is_told_by_framing_alone() {
    let dtx: [&[u8]; 6] = [&[0x48], &[0x49], &[0x4a, 0], &[0x4b, 0x01], &[0x4b, 0x02], &[0x4b, 0xc2, 3, 0, 9, 9, 9]];
    for packet in dtx {
        assert!(PacketInfo::parse(packet).unwrap().is_dtx(), "{packet:02x?}");
    }
    let not: [&[u8]; 5] = [&[0x48, 0], &[0x49, 1, 2], &[0x4a, 0, 7], &[0x4a, 1, 7], &[0x4b, 0x41, 1, 5, 0]];
    for packet in not {
        assert!(!PacketInfo::parse(packet).unwrap().is_dtx(), "{packet:02x?}");
    }
}

#[test]
fn framing_names_what_is_wrong() {
    assert_eq!(PacketInfo::parse(&[]), Err(PacketError::Empty));
    assert_eq!(PacketInfo::parse(&[0x49, 1]), Err(PacketError::Uneven { bytes: 1, frames: 2 }));
    assert_eq!(PacketInfo::parse(&[0x4a]), Err(PacketError::Truncated));
    assert_eq!(PacketInfo::parse(&[0x4a, 252]), Err(PacketError::Truncated));
    assert_eq!(PacketInfo::parse(&[0x4a, 2, 1]), Err(PacketError::Truncated));
    assert_eq!(PacketInfo::parse(&[0x4b]), Err(PacketError::Truncated));
    assert!(matches!(PacketInfo::parse(&[0x4b, 0]), Err(PacketError::Duration { frames: 0, .. })));
    assert!(matches!(PacketInfo::parse(&[0x4b, 7]), Err(PacketError::Duration { frames: 7, .. })));
    assert_eq!(PacketInfo::parse(&[0x4b, 0x41]), Err(PacketError::Truncated));
    assert_eq!(PacketInfo::parse(&[0x4b, 0x41, 255, 254, 0]), Err(PacketError::Truncated));
    let mut long = vec![0x48; 1277];
    assert_eq!(PacketInfo::parse(&long), Err(PacketError::FrameTooLong { bytes: 1276 }));
    long.pop();
    assert_eq!(PacketInfo::parse(&long).unwrap().ticks(), 960);
}

#[test]
fn every_frame_length_rate_and_layout_round_trips() {
    for rate in RATES {
        for channels in [1u8, 2] {
            for tenths in [25, 50, 100, 200, 400, 600, 800, 1000, 1200] {
                let config = EncoderConfig {
                    rate,
                    channels,
                    frame_tenths: tenths,
                    bitrate: 64_000,
                    application: Application::Audio,
                    ..EncoderConfig::default()
                };
                let mut encoder = OpusEncoder::new(config.clone()).unwrap();
                let mut decoder = OpusDecoder::new(rate, channels).unwrap();
                let frame = config.frame_len() * usize::from(channels);
                let count = (4_800usize).div_ceil(usize::from(tenths));
                let input = tone(440.0, rate, channels.into(), config.frame_len() * count);
                let mut out = Vec::new();
                for chunk in input.chunks(frame) {
                    let packet = encoder.encode(chunk).unwrap();
                    let before = out.len();
                    let info = decoder.decode(&packet, &mut out).unwrap();
                    assert_eq!(info.ticks(), config.frame_ticks());
                    assert_eq!(out.len() - before, frame);
                }
                let skip = encoder.lookahead() * usize::from(channels);
                let half = out.len() / 2;
                let similar = correlation(&out[half + skip..], &input[half..input.len() - skip]);
                assert!(similar > 0.9, "{rate} Hz {channels} ch {tenths}: {similar}");
            }
        }
    }
}

#[test]
fn decoder_follows_every_change_of_packet() {
    let mut decoder = OpusDecoder::new(16_000, 2).unwrap();
    let mut out = Vec::new();
    for (n, tenths) in [200u16, 25, 1200, 50, 600, 100, 800, 400, 1000].into_iter().enumerate() {
        let channels = 1 + (n % 2) as u8;
        let rate = RATES[n % 5];
        let config = EncoderConfig { rate, channels, frame_tenths: tenths, ..EncoderConfig::default() };
        let mut encoder = OpusEncoder::new(config.clone()).unwrap();
        let packet = encoder.encode(&tone(300.0, rate, channels.into(), config.frame_len())).unwrap();
        out.clear();
        decoder.decode(&packet, &mut out).unwrap();
        assert_eq!(out.len(), 2 * 16_000 * usize::from(tenths) / 10_000);
        assert!(decoder.decode(&[0x4b, 0], &mut out).is_err());
    }
}

#[test]
fn settings_have_their_effect() {
    let run = |config: EncoderConfig, input: &[f32]| -> Vec<usize> {
        let mut encoder = OpusEncoder::new(config.clone()).unwrap();
        input.chunks_exact(config.frame_len()).map(|frame| encoder.encode(frame).unwrap().len()).collect()
    };
    let voice = tone(220.0, 48_000, 1, 48_000);
    let cbr = run(EncoderConfig { vbr: false, ..EncoderConfig::default() }, &voice);
    assert!(cbr.iter().all(|&size| size == 80), "{cbr:?}");
    let low: usize =
        run(EncoderConfig { bitrate: 12_000, vbr: false, ..EncoderConfig::default() }, &voice).iter().sum();
    assert_eq!(low, 50 * 30);
    let dtx = run(EncoderConfig { dtx: true, rate: 16_000, ..EncoderConfig::default() }, &vec![0.0; 32_000]);
    assert!(dtx.iter().filter(|&&size| size <= 2).count() > 50, "{dtx:?}");
    let mut encoder = OpusEncoder::new(EncoderConfig {
        fec: true,
        expected_loss: 20,
        rate: 16_000,
        bitrate: 24_000,
        ..EncoderConfig::default()
    })
    .unwrap();
    let voice = tone(220.0, 16_000, 1, 16_000);
    let packets: Vec<_> = voice.chunks_exact(320).map(|frame| encoder.encode(frame).unwrap()).collect();
    assert!(packets.iter().filter(|p| PacketInfo::parse(p).unwrap().has_fec()).count() > 20);
}

#[test]
fn nonsense_settings_and_samples_are_refused_or_contained() {
    let with = |change: fn(&mut EncoderConfig)| {
        let mut config = EncoderConfig::default();
        change(&mut config);
        OpusEncoder::new(config).unwrap_err()
    };
    assert_eq!(with(|c| c.rate = 44_100), EncodeError::Rate { rate: 44_100 });
    assert_eq!(with(|c| c.channels = 3), EncodeError::Channels { channels: 3 });
    assert_eq!(with(|c| c.frame_tenths = 30), EncodeError::FrameLength { tenths: 30 });
    assert!(matches!(with(|c| c.bitrate = 100), EncodeError::Option { option: "bitrate", .. }));
    assert!(matches!(with(|c| c.complexity = 11), EncodeError::Option { option: "complexity", .. }));
    assert!(matches!(with(|c| c.expected_loss = 101), EncodeError::Option { option: "expected_loss", .. }));
    assert!(matches!(OpusDecoder::new(44_100, 1), Err(DecodeError::Rate { rate: 44_100 })));
    assert!(matches!(OpusDecoder::new(48_000, 0), Err(DecodeError::Channels { channels: 0 })));
    let mut encoder = OpusEncoder::new(EncoderConfig::default()).unwrap();
    assert_eq!(encoder.encode(&[0.0; 10]), Err(EncodeError::FrameSize { expected: 960, found: 10 }));
    let mut bad = vec![f32::NAN; 960];
    bad[5] = f32::INFINITY;
    bad[6] = -1e30;
    let mut decoder = OpusDecoder::new(48_000, 1).unwrap();
    let mut out = Vec::new();
    decoder.decode(&encoder.encode(&bad).unwrap(), &mut out).unwrap();
    for _ in 0..20 {
        out.clear();
        decoder.decode(&encoder.encode(&tone(440.0, 48_000, 1, 960)).unwrap(), &mut out).unwrap();
    }
    assert!(out.iter().all(|v| v.is_finite()) && rms(&out) > 0.1);
    assert!(matches!(decoder.conceal(961, &mut out), Err(DecodeError::Span { .. })));
    out.clear();
    decoder.conceal(48_000, &mut out).unwrap();
    assert_eq!(out.len(), 48_000);
}

#[test]
fn every_prefix_of_every_vector_is_survived() {
    let mut decoder = OpusDecoder::new(48_000, 1).unwrap();
    let mut out = Vec::new();
    for name in ["f12-opus-full.jsonl", "f12-opus-lossy.jsonl"] {
        for line in vector(name) {
            for end in 0..=line.packet.len() {
                out.clear();
                let _ = decoder.decode(&line.packet[..end], &mut out);
                assert!(out.len() <= 5_760);
                let _ = PacketInfo::parse(&line.packet[..end]);
            }
        }
    }
    // Ready for the next good one.
    let good = &vector("f12-opus-full.jsonl")[0].packet;
    out.clear();
    decoder.decode(good, &mut out).unwrap();
    assert_eq!(out.len(), 960);
}

/// A small deterministic generator (SplitMix64).
struct Seed(u64);

impl Seed {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }
}

#[test]
fn mutated_packets_never_panic_and_keep_their_duration() {
    let full = vector("f12-opus-full.jsonl");
    let mut seed = Seed(12);
    let mut decoder = OpusDecoder::new(16_000, 2).unwrap();
    let mut receiver = OpusReceiver::new(ReceiverConfig::new(24_000, 1)).unwrap();
    let (mut out, mut received) = (Vec::new(), Vec::new());
    let (mut sequence, mut timestamp) = (0u64, 0u64);
    for _ in 0..4_000 {
        let mut packet = full[seed.next(full.len())].packet.clone();
        for _ in 0..seed.next(4) {
            let at = seed.next(packet.len().min(8));
            packet[at] = seed.next(256) as u8;
        }
        packet.truncate(seed.next(packet.len() + 20));
        out.clear();
        match (PacketInfo::parse(&packet), decoder.decode(&packet, &mut out)) {
            (Ok(info), Ok(_)) => assert_eq!(out.len(), 2 * info.samples(16_000)),
            (Err(_), Ok(_)) => panic!("decoded an illegal packet"),
            (_, Err(_)) => assert!(out.is_empty()),
        }
        sequence += seed.next(4) as u64;
        timestamp += 120 * seed.next(30) as u64;
        received.clear();
        receiver.receive(sequence, timestamp, &packet, &mut received).unwrap();
        assert!(samples(&received).len() <= 10 * 24_000 + 2_880);
    }
    out.clear();
    decoder.decode(&full[0].packet, &mut out).unwrap();
    assert_eq!(out.len(), 640);
}
