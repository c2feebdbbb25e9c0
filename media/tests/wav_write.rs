//! Writing WAV: what was written is read back, at any moment, up to every limit and error.

mod common;

use std::cell::RefCell;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

use common::{Trickle, read_all, spec};
use omni_flow_media::pcm::SampleFormat;
use omni_flow_media::wav::{WavPipe, WavSource, WavWriteError, WavWriter, wav_sizes};
use proptest::prelude::*;

/// A file that others can look into while it is written, with a limit like a full disk.
#[derive(Clone)]
struct Disk {
    file: Rc<RefCell<Cursor<Vec<u8>>>>,
    room: usize,
}

impl Disk {
    fn new(room: usize) -> Self {
        Self { file: Rc::default(), room }
    }
    fn bytes(&self) -> Vec<u8> {
        self.file.borrow().get_ref().clone()
    }
}

impl Write for Disk {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut file = self.file.borrow_mut();
        let n = buf.len().min(self.room.saturating_sub(file.position() as usize));
        if n == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        file.write(&buf[..n])
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.borrow_mut().seek(to)
    }
}

fn read(bytes: &[u8]) -> Vec<f32> {
    read_all(
        WavSource::new(bytes, "memory".into(), omni_flow_media::wav::WavOrigin::File { len: bytes.len() as u64 })
            .unwrap(),
        999,
    )
    .0
}

/// The size fields at their places in a header of 44 bytes.
fn sizes(bytes: &[u8]) -> (u32, u32) {
    let at = |i: usize| u32::from_le_bytes(bytes[i..i + 4].try_into().unwrap());
    (at(4), at(40))
}

#[test]
fn a_finished_file_has_right_sizes_and_an_odd_one_its_pad() {
    let disk = Disk::new(usize::MAX);
    let mut writer = WavWriter::new(disk.clone(), "disk", spec(SampleFormat::I24, 48_000, 1)).unwrap();
    writer.write(&[-1.0, 0.0, 0.5]).unwrap();
    let written = writer.finish().unwrap();
    let bytes = disk.bytes();
    assert_eq!((written.frames, written.bytes, bytes.len()), (3, 54, 54));
    assert_eq!(sizes(&bytes), (46, 9));
    assert_eq!(read(&bytes), [-1.0, 0.0, 0.5]);
}

#[test]
fn killed_at_any_moment_the_file_plays() {
    let disk = Disk::new(usize::MAX);
    let mut writer = WavWriter::new(disk.clone(), "disk", spec(SampleFormat::I16, 16_000, 1)).unwrap();
    // Before any sample the header says "until the end", never "empty".
    assert_eq!(sizes(&disk.bytes()), (u32::MAX, u32::MAX));
    let block: Vec<f32> = (0..320).map(|i| i as f32 / 1000.0).collect();
    for i in 1..=100usize {
        writer.write(&block).unwrap();
        let bytes = disk.bytes();
        let (riff, data) = sizes(&bytes);
        assert_eq!(bytes.len(), 44 + 640 * i, "samples are in the file at once");
        assert!(data as usize <= 640 * i && riff == data + 36, "the header never claims what is not there");
        assert!(640 * i - data as usize <= 16_000, "and is at most half a second behind");
        assert_eq!(read(&bytes).len(), data as usize / 2);
    }
    writer.state_sizes().unwrap();
    assert_eq!(sizes(&disk.bytes()).1, 64_000);
    // A process that is killed drops nothing; here, forgetting is being killed.
    std::mem::forget(writer);
    assert_eq!(read(&disk.bytes()).len(), 32_000);
}

#[test]
fn a_dropped_writer_finishes() {
    let disk = Disk::new(usize::MAX);
    let mut writer = WavWriter::new(disk.clone(), "disk", spec(SampleFormat::U8, 8000, 1)).unwrap();
    writer.write(&[0.5; 4001]).unwrap();
    writer.write(&[0.5; 10]).unwrap();
    drop(writer);
    assert_eq!((disk.bytes().len(), sizes(&disk.bytes()).1), (44 + 4012, 4011));
}

#[test]
fn on_a_full_disk_the_file_is_valid_up_to_the_last_whole_frame() {
    for room in 44..120 {
        let disk = Disk::new(room);
        let mut writer = WavWriter::new(disk.clone(), "answer.wav", spec(SampleFormat::I16, 16_000, 2)).unwrap();
        let mut wanted = Vec::new();
        let error = loop {
            let frame = [wanted.len() as f32 / 100.0, -0.25, 0.25, 0.125];
            match writer.write(&frame) {
                Ok(_) => wanted.extend_from_slice(&frame),
                Err(error) => {
                    wanted.extend_from_slice(&frame);
                    break error;
                }
            }
        };
        let frames = (room - 44) / 4;
        assert!(
            error.to_string().starts_with(&format!("cannot write `answer.wav` after {frames} frames: ")),
            "{error}"
        );
        assert!(matches!(&error, WavWriteError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull));
        assert!(matches!(writer.write(&[0.0, 0.0]), Err(WavWriteError::Closed { .. })));
        assert!(matches!(writer.finish(), Err(WavWriteError::Closed { .. })));
        let got = read(&disk.bytes());
        assert_eq!(got.len(), 2 * frames, "room {room}");
        assert!(got.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-4));
    }
    // Not even a header fits.
    for room in 0..44 {
        let result = WavWriter::new(Disk::new(room), "answer.wav", spec(SampleFormat::I16, 16_000, 2));
        assert!(matches!(result, Err(WavWriteError::Io { frames: 0, .. })), "{room}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_that_is_always_full_is_a_typed_error_with_its_name() {
    let error = WavWriter::create("/dev/full", spec(SampleFormat::I16, 16_000, 1)).err().unwrap();
    assert!(error.to_string().starts_with("cannot write `/dev/full` after 0 frames"), "{error}");
    let error = WavWriter::create("/nowhere/at/all.wav", spec(SampleFormat::I16, 16_000, 1)).err().unwrap();
    assert!(error.to_string().contains("`/nowhere/at/all.wav`"), "{error}");
}

/// Counts bytes and keeps the header.
#[derive(Default)]
struct Void {
    at: u64,
    head: Vec<u8>,
}

impl Write for Void {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.at == 0 {
            self.head = buf.to_vec();
        }
        self.at += buf.len() as u64;
        Ok(buf.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Void {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match to {
            SeekFrom::Start(at) => self.at = at,
            SeekFrom::Current(by) => self.at = self.at.checked_add_signed(by).unwrap(),
            SeekFrom::End(_) => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(self.at)
    }
}

#[test]
fn four_gibibytes_are_refused_before_a_size_overflows() {
    let mono = spec(SampleFormat::I16, 48_000, 1);
    assert_eq!(wav_sizes(&mono, u64::from(u32::MAX)), None);
    let mut void = Void::default();
    let mut writer = WavWriter::new(&mut void, "long.wav", mono).unwrap();
    let block = vec![0u8; 1 << 26];
    let mut blocks = 0u64;
    let error = loop {
        match writer.write_stored(&block) {
            Ok(()) => blocks += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(blocks, 63);
    assert_eq!(
        error.to_string(),
        format!(
            "`long.wav` is full: a WAV file holds less than 4 GiB; it has {} frames, start another file",
            63u64 << 25
        )
    );
    // What still fits is taken, to the last frame.
    let rest = (u64::from(u32::MAX) - 36 - (63 << 26)) as usize & !1;
    writer.write_stored(&block[..rest]).unwrap();
    assert!(matches!(writer.write(&[0.0]), Err(WavWriteError::TooLong { .. })));
    let written = writer.finish().unwrap();
    assert_eq!(written.bytes, 44 + (63 << 26) + rest as u64);
    let (riff, data) = sizes(&void.head);
    assert_eq!((u64::from(data), u64::from(riff)), ((63 << 26) + rest as u64, (63 << 26) + rest as u64 + 36));
}

#[test]
fn bytes_that_are_no_whole_frames_are_refused_and_change_nothing() {
    let disk = Disk::new(usize::MAX);
    let mut writer = WavWriter::new(disk.clone(), "disk", spec(SampleFormat::I16, 16_000, 2)).unwrap();
    assert!(matches!(writer.write_stored(&[0; 6]), Err(WavWriteError::CutFrame { bytes: 6, frame_bytes: 4, .. })));
    assert!(matches!(writer.write(&[0.0; 3]), Err(WavWriteError::CutFrame { .. })));
    writer.write(&[0.0; 4]).unwrap();
    assert_eq!(writer.finish().unwrap().frames, 2);
    let mut pipe = WavPipe::new(Vec::new(), "pipe", spec(SampleFormat::I16, 16_000, 2)).unwrap();
    assert!(matches!(pipe.write(&[0.0; 3]), Err(WavWriteError::CutFrame { .. })));
}

#[test]
fn a_streaming_header_says_until_the_end() {
    let bytes = common::wav(spec(SampleFormat::I16, 16_000, 1), &[0.5, -0.5]);
    assert_eq!((sizes(&bytes), bytes.len()), ((u32::MAX, u32::MAX), 48));
}

#[test]
fn a_file_begins_where_the_output_stands() {
    let mut disk = Disk::new(usize::MAX);
    disk.write_all(b"before").unwrap();
    let mut writer = WavWriter::new(disk.clone(), "disk", spec(SampleFormat::I16, 16_000, 1)).unwrap();
    writer.write(&[0.25; 3]).unwrap();
    writer.finish().unwrap();
    assert_eq!(&disk.bytes()[..10], b"beforeRIFF");
    assert_eq!(read(&disk.bytes()[6..]), [0.25; 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_format_is_read_back_as_it_was_written(
        which in 0usize..8, channels in 1u16..9, frames in 0usize..300, cut in 1usize..700, step in 1usize..400,
    ) {
        let format = SampleFormat::ALL[which];
        let spec = spec(format, 44_100, channels);
        let samples: Vec<f32> = (0..frames * usize::from(channels)).map(|i| ((i * 37 % 2000) as f32 - 1000.0) / 1001.0).collect();
        let (mut stored, mut want) = (Vec::new(), Vec::new());
        format.encode(&samples, &mut stored);
        format.decode(&stored, &mut want);

        let disk = Disk::new(usize::MAX);
        let mut writer = WavWriter::new(disk.clone(), "disk", spec).unwrap();
        let mut pipe = WavPipe::new(Vec::new(), "pipe", spec).unwrap();
        for block in samples.chunks(step * usize::from(channels)) {
            writer.write(block).unwrap();
            pipe.write(block).unwrap();
        }
        prop_assert_eq!(writer.finish().unwrap().frames, frames as u64);
        for bytes in [disk.bytes(), pipe.finish().unwrap()] {
            let source = WavSource::pipe(Trickle::new(&bytes, cut), "pipe").unwrap();
            prop_assert_eq!(source.spec(), spec);
            let (got, summary) = read_all(source, step);
            prop_assert_eq!(summary.truncated_bytes, 0);
            prop_assert_eq!(&got, &want);
        }
    }
}
