//! The framing of an Opus packet (RFC 6716 §3): what a packet says about itself without being decoded.
//!
//! Bounded: at most 48 frames of at most 1275 bytes; every length is checked against the bytes that are there.

use std::ops::Range;

use super::LONGEST;

/// Coding mode named by the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Speech layer only.
    Silk,
    /// Speech layer with the upper band from the other.
    Hybrid,
    /// Transform layer only.
    Celt,
}

/// Why a packet is illegal. It should be treated as one that never arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// No first byte.
    #[error("Opus packet is empty; treat it as lost")]
    Empty,
    /// The packet ends inside its own framing.
    #[error("Opus packet is cut inside its framing; treat it as lost")]
    Truncated,
    /// Two frames of equal size in an odd number of bytes, or the like.
    #[error("Opus packet's {bytes} bytes do not divide into {frames} equal frames; treat it as lost")]
    Uneven {
        /// Bytes left for the frames.
        bytes: usize,
        /// Frames announced.
        frames: usize,
    },
    /// No frame, or more than 120 ms.
    #[error("Opus packet announces {frames} frames of {frame_ticks} ticks, outside 2.5 to 120 ms; treat it as lost")]
    Duration {
        /// Frames announced.
        frames: usize,
        /// Ticks of one frame at 48 kHz.
        frame_ticks: u32,
    },
    /// A frame of more than 1275 bytes.
    #[error("Opus frame of {bytes} bytes is above 1275; treat the packet as lost")]
    FrameTooLong {
        /// Bytes of the frame.
        bytes: usize,
    },
}

/// What a legal packet says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketInfo {
    /// Coding mode.
    pub mode: Mode,
    /// Upper edge of the coded band in Hz: 4000, 6000, 8000, 12000 or 20000.
    pub bandwidth: u32,
    /// Coded channels, 1 or 2. A decoder of another count converts.
    pub channels: u8,
    /// Ticks of one frame at 48 kHz: 120 to 2880.
    pub frame_ticks: u32,
    /// Where each frame lies in the packet; an empty range is a frame of zero bytes.
    pub frames: Vec<Range<usize>>,
    has_fec: bool,
}

impl PacketInfo {
    /// Parses the framing of one packet.
    ///
    /// # Errors
    /// [`PacketError`]: empty, cut, or of an illegal duration or frame size. Treat the packet as lost.
    pub fn parse(packet: &[u8]) -> Result<Self, PacketError> {
        let &toc = packet.first().ok_or(PacketError::Empty)?;
        let (mode, bandwidth, frame_ticks) = configuration(toc >> 3);
        let channels = 1 + (toc >> 2 & 1);
        let end = packet.len();
        let frames = match toc & 3 {
            0 => sizes_to_ranges(1, &[end - 1]),
            1 => equal(1, end, 2)?,
            2 => {
                let (size, at) = frame_size(packet, 1)?;
                let rest = (end - at).checked_sub(size).ok_or(PacketError::Truncated)?;
                sizes_to_ranges(at, &[size, rest])
            }
            _ => counted(packet, frame_ticks)?,
        };
        if let Some(bytes) = frames.iter().map(Range::len).find(|&len| len > 1275) {
            return Err(PacketError::FrameTooLong { bytes });
        }
        let mut info = Self { mode, bandwidth, channels, frame_ticks, frames, has_fec: false };
        info.has_fec = info.finds_fec(packet);
        Ok(info)
    }

    /// Duration in ticks at 48 kHz: 120 to 5760.
    pub fn ticks(&self) -> u32 {
        self.frame_ticks * self.frames.len() as u32
    }

    /// Frames of audio per channel at `rate` Hz, one of [`super::RATES`].
    pub fn samples(&self, rate: u32) -> usize {
        (u64::from(self.ticks()) * u64::from(rate) / 48_000) as usize
    }

    /// Whether every frame has zero bytes: discontinued transmission, comfort noise to be made. A short packet with any
    /// byte of payload is not one.
    pub fn is_dtx(&self) -> bool {
        self.frames.iter().all(Range::is_empty)
    }

    /// Whether the packet carries a second, coarser copy of the packet before it (in-band FEC, RFC 6716 §4.2.4).
    pub fn has_fec(&self) -> bool {
        self.has_fec
    }

    /// The first bits of a speech-layer frame: per coded channel one voice flag per 20 ms, then the FEC flag, each of
    /// probability one half, that is plain bits from the top.
    fn finds_fec(&self, packet: &[u8]) -> bool {
        let Some(&head) =
            self.frames.first().filter(|_| self.mode != Mode::Celt).and_then(|f| packet[f.clone()].first())
        else {
            return false;
        };
        let voices = (self.frame_ticks / 960).max(1);
        let mid = head >> (7 - voices) & 1 == 1;
        let side = self.channels == 2 && head >> (6 - 2 * voices) & 1 == 1;
        mid || side
    }
}

/// Mode, band and frame length of a configuration number (RFC 6716 table 2).
fn configuration(config: u8) -> (Mode, u32, u32) {
    const SILK: [u32; 4] = [480, 960, 1920, 2880];
    const CELT: [u32; 4] = [120, 240, 480, 960];
    let length = usize::from(config & 3);
    match config {
        0..=3 => (Mode::Silk, 4_000, SILK[length]),
        4..=7 => (Mode::Silk, 6_000, SILK[length]),
        8..=11 => (Mode::Silk, 8_000, SILK[length]),
        12..=13 => (Mode::Hybrid, 12_000, SILK[length]),
        14..=15 => (Mode::Hybrid, 20_000, SILK[length - 2]),
        16..=19 => (Mode::Celt, 4_000, CELT[length]),
        20..=23 => (Mode::Celt, 8_000, CELT[length]),
        24..=27 => (Mode::Celt, 12_000, CELT[length]),
        _ => (Mode::Celt, 20_000, CELT[length]),
    }
}

/// Code 3: a count, optional padding, and equal or listed sizes.
fn counted(packet: &[u8], frame_ticks: u32) -> Result<Vec<Range<usize>>, PacketError> {
    let &count = packet.get(1).ok_or(PacketError::Truncated)?;
    let frames = usize::from(count & 0x3f);
    if frames == 0 || frames as u32 * frame_ticks > LONGEST {
        return Err(PacketError::Duration { frames, frame_ticks });
    }
    let (mut at, mut end) = (2, packet.len());
    if count & 0x40 != 0 {
        let mut padding = 0;
        loop {
            let &byte = packet.get(at).ok_or(PacketError::Truncated)?;
            at += 1;
            padding += usize::from(byte.min(254));
            if byte != 255 {
                break;
            }
        }
        end = end.checked_sub(padding).filter(|&end| end >= at).ok_or(PacketError::Truncated)?;
    }
    if count & 0x80 == 0 {
        return equal(at, end, frames);
    }
    let packet = &packet[..end];
    let mut sizes = Vec::with_capacity(frames);
    for _ in 1..frames {
        let (size, next) = frame_size(packet, at)?;
        sizes.push(size);
        at = next;
    }
    let rest = (end - at).checked_sub(sizes.iter().sum()).ok_or(PacketError::Truncated)?;
    sizes.push(rest);
    Ok(sizes_to_ranges(at, &sizes))
}

/// A frame size of one or two bytes at `at`, and the position after it.
fn frame_size(packet: &[u8], at: usize) -> Result<(usize, usize), PacketError> {
    let &first = packet.get(at).ok_or(PacketError::Truncated)?;
    if first < 252 {
        return Ok((usize::from(first), at + 1));
    }
    let &second = packet.get(at + 1).ok_or(PacketError::Truncated)?;
    Ok((usize::from(second) * 4 + usize::from(first), at + 2))
}

fn equal(at: usize, end: usize, frames: usize) -> Result<Vec<Range<usize>>, PacketError> {
    let bytes = end - at;
    if !bytes.is_multiple_of(frames) {
        return Err(PacketError::Uneven { bytes, frames });
    }
    Ok(sizes_to_ranges(at, &vec![bytes / frames; frames]))
}

fn sizes_to_ranges(mut at: usize, sizes: &[usize]) -> Vec<Range<usize>> {
    sizes
        .iter()
        .map(|size| {
            let range = at..at + size;
            at = range.end;
            range
        })
        .collect()
}
