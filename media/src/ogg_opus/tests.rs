use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::opus::{Application, EncoderConfig, PacketInfo, RATES};

fn voice(rate: u32, channels: usize, frames: usize) -> Vec<f32> {
    (0..frames)
        .flat_map(|n| {
            let t = n as f32 / rate as f32;
            let v = 0.3 * (t * 1_300.0).sin() * (1.0 + (t * 20.0).sin());
            (0..channels).map(move |c| if c == 0 { v } else { 0.5 * v })
        })
        .collect()
}

fn config(rate: u32, channels: u8) -> EncoderConfig {
    EncoderConfig { rate, channels, complexity: 1, ..EncoderConfig::default() }
}

fn encode(config: EncoderConfig, pcm: &[f32], serial: u32, page_ms: u32) -> Vec<u8> {
    let mut encoder = OggOpusEncoder::new(config, &OpusTags::default(), serial, page_ms).unwrap();
    let mut bytes = Vec::new();
    for piece in pcm.chunks(2 * 777) {
        encoder.push(piece).unwrap();
        bytes.append(&mut encoder.take());
    }
    bytes.extend(encoder.finish().unwrap());
    bytes
}

fn decode(bytes: &[u8], rate: u32, channels: u8, piece: usize) -> (Vec<f32>, OggOpusStats) {
    let mut decoder = OggOpusDecoder::new(rate, channels).unwrap();
    let mut out = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.push(piece, &mut out).unwrap();
    }
    decoder.finish(&mut out).unwrap();
    (out, decoder.stats())
}

fn pages(bytes: &[u8]) -> Vec<Page> {
    let mut parser = PageParser::new();
    parser.push(bytes);
    parser.finish();
    let pages: Vec<_> = std::iter::from_fn(|| parser.next_page()).collect();
    assert_eq!(parser.skipped(), 0);
    pages
}

fn write(pages: &[Page]) -> Vec<u8> {
    let mut bytes = Vec::new();
    pages.iter().for_each(|page| page.write(&mut bytes));
    bytes
}

fn rms(samples: &[f32]) -> f32 {
    (samples.iter().map(|s| s * s).sum::<f32>() / samples.len() as f32).sqrt()
}

#[test]
fn count_is_exact_at_every_rate() {
    for (rate, frames) in [(48_000, 48_000), (48_000, 1), (16_000, 12_345), (24_000, 23_999), (8_000, 161), (12_000, 0)]
    {
        for channels in [1u8, 2] {
            let bytes = encode(config(rate, channels), &voice(rate, channels.into(), frames), 7, 200);
            for to in RATES {
                let (out, stats) = decode(&bytes, to, channels, 1_000);
                let exact = (frames as f64 * f64::from(to) / f64::from(rate) + 0.5).floor() as usize;
                assert_eq!(out.len(), exact * usize::from(channels), "{frames} at {rate} to {to}");
                assert_eq!(stats, OggOpusStats { streams: 1, ..OggOpusStats::default() });
            }
        }
    }
}

#[test]
fn sound_comes_back_in_its_place() {
    let pcm = voice(48_000, 1, 48_000);
    let bytes =
        encode(EncoderConfig { bitrate: 128_000, application: Application::Audio, ..config(48_000, 1) }, &pcm, 1, 500);
    let (out, _) = decode(&bytes, 48_000, 1, 4_096);
    let difference: Vec<f32> = out.iter().zip(&pcm).map(|(a, b)| a - b).collect();
    assert!(rms(&difference[4_800..]) < 0.1 * rms(&pcm), "{}", rms(&difference[4_800..]));
}

#[test]
fn another_reader_agrees() {
    // Packets of 1275 bytes over pages of a minute: they cross pages.
    let big = EncoderConfig { bitrate: 510_000, vbr: false, application: Application::Audio, ..config(48_000, 2) };
    for (config, page_ms) in [(config(16_000, 1), 100), (big, 60_000)] {
        let channels = usize::from(config.channels);
        let pcm = voice(config.rate, channels, config.rate as usize * 3);
        let bytes = encode(config, &pcm, 99, page_ms);
        let mut theirs = ogg::PacketReader::new(Cursor::new(bytes.clone()));
        let mut ours = OggOpusReader::new();
        ours.push(&bytes);
        ours.finish();
        assert!(theirs.read_packet().unwrap().unwrap().first_in_stream());
        assert!(theirs.read_packet().unwrap().unwrap().data.starts_with(b"OpusTags"));
        let (mut count, mut ended) = (0, false);
        while let Some(item) = ours.next_item().unwrap() {
            match item {
                OggItem::Head(head) => assert_eq!(usize::from(head.channels), channels),
                OggItem::Tags(tags) => assert_eq!(tags, OpusTags::default()),
                OggItem::Audio(page) => {
                    assert!(!page.lost);
                    for packet in &page.packets {
                        let their = theirs.read_packet().unwrap().unwrap();
                        assert_eq!(&their.data, packet);
                        assert_eq!(their.stream_serial(), 99);
                        if their.last_in_page() {
                            assert_eq!(Some(their.absgp_page()), page.granule);
                        }
                        ended = their.last_in_stream();
                        count += 1;
                    }
                }
                OggItem::End => {}
            }
        }
        assert!(ended && count >= 150, "{count}");
        assert!(theirs.read_packet().unwrap().is_none());
        assert_eq!(pages(&bytes).iter().any(|p| p.continued), page_ms == 60_000);
    }
}

#[test]
fn pages_hold_no_more_than_asked() {
    let bytes = encode(config(48_000, 1), &voice(48_000, 1, 96_000), 1, 100);
    let pages = pages(&bytes);
    assert!(pages[0].first && pages.iter().rev().skip(1).all(|p| !p.last) && pages[pages.len() - 1].last);
    for (number, page) in pages.iter().enumerate() {
        assert_eq!(page.sequence as usize, number);
        assert!(number < 2 || page.lacing.iter().filter(|l| **l < 255).count() <= 5);
    }
}

#[test]
fn damaged_page_costs_only_what_it_held() {
    let music = EncoderConfig { bitrate: 96_000, application: Application::Audio, ..config(48_000, 1) };
    let bytes = encode(music, &voice(48_000, 1, 96_000), 1, 200);
    let (clean, _) = decode(&bytes, 16_000, 1, 999);
    let all = pages(&bytes);
    // Any audio page but the last, damaged in its header or its body, or missing.
    for broken in 2..all.len() - 1 {
        let start: usize = write(&all[..broken]).len();
        let length = write(&all[broken..=broken]).len();
        for how in 0..4 {
            let mut damaged = bytes.clone();
            match how {
                0 => damaged[start + length / 2] ^= 0x10,
                1 => damaged[start] = b'X',
                2 => damaged[start + 26] = 255,
                _ => drop(damaged.drain(start..start + length)),
            }
            let (out, stats) = decode(&damaged, 16_000, 1, 999);
            assert_eq!(out.len(), clean.len(), "page {broken}, damage {how}");
            assert_eq!((stats.losses, stats.discontinuities, stats.illegal), (1, 0, 0));
            // Right before the last page loss and end trim cannot be told apart: the sum is exact, the joint is not.
            let joint = broken == all.len() - 2;
            assert!(stats.concealed == 9_600 || joint);
            // Page `n` ends at tick (n - 1) * 9600, pre-skip included; what was before is the same in every bit.
            let before = ((broken - 2) * 9_600).saturating_sub(312) / 3;
            assert_eq!(out[..before], clean[..before]);
            // And what comes after is soon the same again, but for what the codec predicts from before.
            let after = ((broken - 1) * 9_600 + 9_600 / 2) / 3;
            if after < out.len() && !joint {
                let difference: Vec<f32> = out[after..].iter().zip(&clean[after..]).map(|(a, b)| a - b).collect();
                assert!(rms(&difference) < 0.4 * rms(&clean), "page {broken}: {}", rms(&difference));
            }
        }
    }
    // Without its last page the file ends there.
    let cut = write(&all[..all.len() - 1]);
    let (out, _) = decode(&cut, 48_000, 1, 999);
    assert_eq!(out.len(), all[all.len() - 2].granule as usize - 312);
    // A file cut inside a page gives the pages before.
    let (out, _) = decode(&bytes[..cut.len() + 20], 48_000, 1, 999);
    assert_eq!(out.len(), all[all.len() - 2].granule as usize - 312);
}

#[test]
fn chained_streams_follow_one_another() {
    let one = encode(config(48_000, 1), &voice(48_000, 1, 10_000), 1, 100);
    let two = encode(config(16_000, 2), &voice(16_000, 2, 5_001), 2, 100);
    let chained = [one.clone(), two, one].concat();
    for piece in [1, 100, 1 << 20] {
        let (out, stats) = decode(&chained, 48_000, 2, piece);
        assert_eq!(out.len(), 2 * (10_000 + 15_003 + 10_000));
        assert_eq!((stats.streams, stats.losses), (3, 0));
    }
}

#[test]
fn other_streams_in_the_file_are_skipped() {
    let mut all = pages(&encode(config(48_000, 1), &voice(48_000, 1, 20_000), 1, 100));
    let foreign = |first, sequence| Page {
        first,
        sequence,
        serial: 77,
        granule: 5,
        lacing: vec![4],
        body: b"\x80the".to_vec(),
        ..Page::default()
    };
    all.insert(0, foreign(true, 0));
    all.insert(4, foreign(false, 1));
    // A second Opus stream beside the first is another rendition, not the next link.
    let other = pages(&encode(config(48_000, 1), &voice(48_000, 1, 30_000), 2, 100));
    all.insert(2, other[0].clone());
    all.insert(4, other[1].clone());
    all.extend_from_slice(&other[2..]);
    let (out, stats) = decode(&write(&all), 48_000, 1, 500);
    assert_eq!((out.len(), stats.streams, stats.losses), (20_000, 1, 0));
}

#[test]
fn start_position_above_zero_is_no_gap() {
    let mut all = pages(&encode(config(48_000, 1), &voice(48_000, 1, 48_000), 1, 200));
    for page in &mut all[2..] {
        page.granule += 1 << 40;
    }
    let (out, stats) = decode(&write(&all), 48_000, 1, 500);
    assert_eq!((out.len(), stats.concealed + stats.silence, stats.discontinuities), (48_000, 0, 0));
}

#[test]
fn empty_end_page_still_trims() {
    let mut all = pages(&encode(config(48_000, 1), &voice(48_000, 1, 20_000), 1, 100));
    let mut end = all.pop().unwrap();
    let whole = 20_640 + 960 - 20_640 % 960;
    let mut rest = end.clone();
    rest.last = false;
    rest.granule = whole;
    all.push(rest);
    end.sequence += 1;
    end.lacing.clear();
    end.body.clear();
    end.granule = 20_312;
    all.push(end);
    let (out, stats) = decode(&write(&all), 48_000, 1, 500);
    assert_eq!((out.len(), stats.discontinuities), (20_000, 0));
}

#[test]
fn jump_without_loss_is_silence_and_a_wild_one_is_left_out() {
    let all = pages(&encode(config(48_000, 1), &voice(48_000, 1, 96_000), 1, 200));
    let shifted = |ticks: i64| {
        let mut all = all.clone();
        all[5..].iter_mut().for_each(|page| page.granule += ticks);
        decode(&write(&all), 48_000, 1, 500)
    };
    let (out, stats) = shifted(24_000);
    assert_eq!((out.len(), stats.silence), (120_000, 24_000));
    let (out, stats) = shifted(1 << 50);
    assert_eq!((out.len(), stats.silence, stats.discontinuities), (96_000, 0, 1));
    let (out, stats) = shifted(-9_600);
    assert_eq!((out.len(), stats.discontinuities), (96_000, 1));
}

#[test]
fn gain_is_applied() {
    let mut all = pages(&encode(config(48_000, 1), &voice(48_000, 1, 9_600), 1, 200));
    let (plain, _) = decode(&write(&all), 48_000, 1, 500);
    let head = OpusHead { gain: -1_541, ..OpusHead::parse(&all[0].body).unwrap() };
    all[0].body = head.to_packet();
    let (quiet, _) = decode(&write(&all), 48_000, 1, 500);
    assert!((rms(&quiet) / rms(&plain) - 0.5).abs() < 0.001);
}

#[test]
fn heads_are_checked() {
    let good = OpusHead { channels: 2, pre_skip: 312, input_rate: 44_100, gain: -256 };
    assert_eq!(OpusHead::parse(&good.to_packet()), Ok(good));
    let with = |at: usize, value: u8| {
        let mut packet = good.to_packet();
        packet[at] = value;
        OpusHead::parse(&packet)
    };
    assert_eq!(with(8, 16), Err(HeadError::Version { version: 16 }));
    assert!(with(8, 15).is_ok());
    assert_eq!(with(9, 0), Err(HeadError::Malformed { bytes: 19 }));
    assert_eq!(with(9, 6), Err(HeadError::Channels { family: 0, channels: 6 }));
    assert_eq!(with(18, 1), Err(HeadError::Channels { family: 1, channels: 2 }));
    for end in 0..19 {
        assert!(OpusHead::parse(&good.to_packet()[..end]).is_err());
    }
    let tags = OpusTags { vendor: "v".into(), comments: vec!["TITLE=a".into(), "ARTIST=ü".into()] };
    assert_eq!(OpusTags::parse(&tags.to_packet()), Some(tags.clone()));
    let mut lying = tags.to_packet();
    lying[13..17].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(OpusTags::parse(&lying).unwrap().comments.len(), 2);
    assert_eq!(OpusTags::parse(b"OpusHead"), None);
}

#[test]
fn bad_head_is_told_and_the_next_stream_plays() {
    let mut bad = pages(&encode(config(48_000, 1), &voice(48_000, 1, 10_000), 1, 100));
    bad[0].body[9] = 9;
    let good = encode(config(48_000, 1), &voice(48_000, 1, 10_000), 2, 100);
    let mut decoder = OggOpusDecoder::new(48_000, 1).unwrap();
    let mut out = Vec::new();
    let bytes = [write(&bad), good].concat();
    let error = decoder.push(&bytes, &mut out).unwrap_err();
    assert!(matches!(error, OggReadError::Head(HeadError::Channels { channels: 9, .. })));
    decoder.push(&[], &mut out).unwrap();
    decoder.finish(&mut out).unwrap();
    assert_eq!(out.len(), 10_000);
    let mut decoder = OggOpusDecoder::new(48_000, 1).unwrap();
    decoder.push(b"RIFF....WAVE", &mut out).unwrap();
    assert_eq!(decoder.finish(&mut out), Err(OggReadError::NotOggOpus { bytes: 12 }));
}

#[test]
fn every_prefix_is_survived_and_memory_is_bounded() {
    let bytes = encode(config(16_000, 1), &voice(16_000, 1, 8_000), 1, 100);
    for end in 0..bytes.len() {
        let mut reader = OggOpusReader::new();
        reader.push(&bytes[..end]);
        reader.finish();
        while let Ok(Some(_)) = reader.next_item() {}
    }
    // A page that never ends and a packet that never ends.
    let mut parser = PageParser::new();
    for _ in 0..100 {
        parser.push(&[b'O'; 10_000]);
        parser.push(b"OggS\0");
        parser.push(&[255; 10_000]);
        while parser.next_page().is_some() {}
        assert!(parser.held() < 65_307 + 10_000, "{}", parser.held());
    }
    let mut all = pages(&bytes);
    let endless = Page { lacing: vec![255; 255], body: vec![1; 255 * 255], serial: 1, granule: -1, ..Page::default() };
    all.truncate(2);
    let mut reader = OggOpusReader::new();
    reader.push(&write(&all));
    for n in 0..200u32 {
        let page = Page { sequence: 2 + n, continued: n > 0, ..endless.clone() };
        reader.push(&write(&[page]));
        while let Some(item) = reader.next_item().unwrap() {
            assert!(matches!(item, OggItem::Head(_) | OggItem::Tags(_)));
        }
    }
}

#[test]
fn mutated_files_never_panic() {
    let bytes = encode(config(16_000, 1), &voice(16_000, 1, 6_000), 1, 60);
    let all = pages(&bytes);
    let mut state = 5u64;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    for round in 0..2_000 {
        let mut damaged = if round % 2 == 0 {
            bytes.clone()
        } else {
            // Right checksums over wrong content.
            let mut all = all.clone();
            for _ in 0..1 + next(3) {
                let at = next(all.len());
                let page = &mut all[at];
                match next(7) {
                    0 => page.granule = next(1 << 20) as i64 - 1_000,
                    1 => page.granule = i64::MAX - next(10) as i64,
                    2 => page.sequence = next(9) as u32,
                    3 => page.continued ^= true,
                    4 => page.last ^= true,
                    5 => page.first ^= true,
                    _ if !page.body.is_empty() => {
                        let at = next(page.body.len());
                        page.body[at] = next(256) as u8;
                    }
                    _ => {}
                }
            }
            write(&all)
        };
        if round % 2 == 0 {
            for _ in 0..1 + next(5) {
                let at = next(damaged.len());
                damaged[at] = next(256) as u8;
            }
        }
        damaged.truncate(next(2 * damaged.len()).max(10));
        let mut decoder = OggOpusDecoder::new(16_000, 1).unwrap();
        let mut out = Vec::new();
        for piece in damaged.chunks(1 + next(2_000)) {
            let _ = decoder.push(piece, &mut out);
        }
        let _ = decoder.finish(&mut out);
        // At most 10 s for each of the few pages.
        assert!(out.len() <= all.len() * 11 * 16_000, "{}", out.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_of_the_bytes_gives_the_same(piece in 1usize..5_000, frames in 0usize..9_000, page_ms in 1u32..300) {
        let bytes = encode(config(16_000, 1), &voice(16_000, 1, frames), 3, page_ms);
        let (out, _) = decode(&bytes, 16_000, 1, piece);
        prop_assert_eq!(out.len(), frames);
        prop_assert_eq!(out, decode(&bytes, 16_000, 1, usize::MAX).0);
    }

    #[test]
    fn packets_of_any_size_cross_pages_whole(sizes in prop::collection::vec(0usize..1_276, 1..200), page_ms in 1u32..9_000) {
        let head = OpusHead { channels: 1, pre_skip: 0, input_rate: 0, gain: 0 };
        let mut writer = OggOpusWriter::new(&head, &OpusTags::default(), 4, page_ms);
        let mut bytes = Vec::new();
        let packets: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(n, size)| {
            let mut packet = vec![n as u8; size + 1];
            packet[0] = 0xfc;
            packet
        }).collect();
        for packet in &packets {
            prop_assert_eq!(PacketInfo::parse(packet).unwrap().ticks(), 960);
            writer.packet(packet).unwrap();
            bytes.extend(writer.take());
        }
        bytes.extend(writer.finish(None));
        let mut reader = OggOpusReader::new();
        let mut found = Vec::new();
        for piece in bytes.chunks(1_000) {
            reader.push(piece);
            while let Some(item) = reader.next_item().unwrap() {
                if let OggItem::Audio(page) = item {
                    prop_assert!(!page.lost);
                    found.extend(page.packets);
                    prop_assert_eq!(page.granule, Some(found.len() as u64 * 960));
                }
            }
        }
        prop_assert_eq!(found, packets);
    }
}
