//! The timeline of a received Opus stream: sequence numbers say what was lost, timestamps say how much time passed.
//!
//! Decoded length equals the media-time span to the sample. `k` missing packets give `k − 1` concealed spans and one from
//! the FEC data of the packet that follows. Time without missing packets is silence, not loss. A gap above `max_gap`
//! is not filled: it passes as [`Received::Discontinuity`]. Illegal, late and doubled packets are counted and otherwise as
//! if they had not come. Reordering is a jitter buffer's work, before this.

use super::{DecodeError, LONGEST, OpusDecoder, PacketInfo, SHORTEST, TICKS};

/// Settings of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Output rate in Hz, one of [`super::RATES`].
    pub rate: u32,
    /// Output channels, 1 or 2.
    pub channels: u8,
    /// Longest gap that is filled, in ticks at 48 kHz (default 10 s).
    pub max_gap: u32,
}

impl ReceiverConfig {
    /// A receiver of `rate` and `channels` that fills gaps up to 10 s.
    pub fn new(rate: u32, channels: u8) -> Self {
        Self { rate, channels, max_gap: 10 * TICKS }
    }
}

/// Where a span of audio came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// A packet.
    Packet,
    /// A packet without payload: comfort noise of the codec.
    Dtx,
    /// A lost packet, made up from what came before.
    Concealed,
    /// A lost packet, from the FEC data of the next (or concealed, where that had none).
    Fec,
    /// Time in which nothing was sent.
    Silence,
}

/// What comes out, in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// Audio that starts at `timestamp` (ticks at 48 kHz, on the sender's clock).
    Audio {
        /// Start in ticks.
        timestamp: u64,
        /// Interleaved samples at the receiver's rate and channels.
        samples: Vec<f32>,
        /// Origin of the audio.
        fill: Fill,
    },
    /// The timeline jumps to `timestamp`; nothing is filled in.
    Discontinuity {
        /// Where the timeline goes on, in ticks.
        timestamp: u64,
        /// Ticks that are missing; negative if the sender's clock went back.
        missing: i64,
    },
}

/// Counters since the receiver was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Legal packets that were decoded.
    pub packets: u64,
    /// Packets missing by sequence number.
    pub lost: u64,
    /// Lost packets rebuilt from FEC data.
    pub recovered: u64,
    /// Packets whose every frame has zero bytes.
    pub dtx: u64,
    /// Ticks of inserted silence; see [`Self::silence_ms`].
    pub silence_ticks: u64,
    /// Packets that came after their place, or twice.
    pub late: u64,
    /// Packets that broke the framing rules or that the codec refused.
    pub illegal: u64,
    /// Discontinuities passed on.
    pub discontinuities: u64,
}

impl ReceiverStats {
    /// Inserted silence in whole ms.
    pub fn silence_ms(&self) -> u64 {
        self.silence_ticks / 48
    }
}

/// Receiver of one Opus stream.
#[derive(Debug)]
pub struct OpusReceiver {
    config: ReceiverConfig,
    decoder: OpusDecoder,
    expected: Option<Expected>,
    /// Ticks filled that were no whole sample at the output rate: their part of a sample, times 48000.
    carry: u64,
    stats: ReceiverStats,
}

#[derive(Debug, Clone, Copy)]
struct Expected {
    sequence: u64,
    timestamp: u64,
    /// Ticks of the last packet.
    ticks: u32,
}

impl OpusReceiver {
    /// A receiver that has seen nothing yet.
    ///
    /// # Errors
    /// [`DecodeError::Rate`], [`DecodeError::Channels`].
    pub fn new(config: ReceiverConfig) -> Result<Self, DecodeError> {
        let decoder = OpusDecoder::new(config.rate, config.channels)?;
        Ok(Self { config, decoder, expected: None, carry: 0, stats: ReceiverStats::default() })
    }

    /// Counters so far.
    pub fn stats(&self) -> ReceiverStats {
        self.stats
    }

    /// Takes a packet with its extended sequence number and timestamp in ticks (see [`Unwrap`] for the 16- and 32-bit
    /// ones of RTP) and appends what it makes known to `out`. Never fails for what a packet holds; an error means that the
    /// codec itself could not go on.
    ///
    /// # Errors
    /// [`DecodeError::Codec`].
    pub fn receive(
        &mut self,
        sequence: u64,
        timestamp: u64,
        packet: &[u8],
        out: &mut Vec<Received>,
    ) -> Result<(), DecodeError> {
        let Ok(info) = PacketInfo::parse(packet) else {
            self.stats.illegal += 1;
            return Ok(());
        };
        if let Some(expected) = self.expected {
            if sequence < expected.sequence {
                self.stats.late += 1;
                return Ok(());
            }
            let missing = sequence - expected.sequence;
            self.stats.lost += missing;
            self.bridge(expected, missing, timestamp, packet, &info, out)?;
        }
        let fill = if info.is_dtx() { Fill::Dtx } else { Fill::Packet };
        self.stats.dtx += u64::from(fill == Fill::Dtx);
        let mut samples = Vec::new();
        match self.decoder.decode(packet, &mut samples) {
            Ok(_) => self.stats.packets += 1,
            Err(_) => {
                self.stats.illegal += 1;
                samples.clear();
                self.decoder.reset()?;
                self.decoder.conceal(info.samples(self.config.rate), &mut samples)?;
            }
        }
        out.push(Received::Audio { timestamp, samples, fill });
        let ticks = info.ticks();
        let expected = Expected { sequence: sequence + 1, timestamp: timestamp.saturating_add(ticks.into()), ticks };
        self.expected = Some(expected);
        Ok(())
    }

    /// Forgets the timeline and the history: the next packet starts a new stream. Counters stay.
    ///
    /// # Errors
    /// [`DecodeError::Codec`].
    pub fn reset(&mut self) -> Result<(), DecodeError> {
        self.expected = None;
        self.carry = 0;
        self.decoder.reset()
    }

    /// Fills the time from what was expected to the start of `packet`.
    fn bridge(
        &mut self,
        expected: Expected,
        missing: u64,
        timestamp: u64,
        packet: &[u8],
        info: &PacketInfo,
        out: &mut Vec<Received>,
    ) -> Result<(), DecodeError> {
        let gap = i128::from(timestamp) - i128::from(expected.timestamp);
        if gap == 0 {
            return Ok(());
        }
        if gap < 0 || gap > i128::from(self.config.max_gap) {
            self.stats.discontinuities += 1;
            self.carry = 0;
            let missing = gap.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            out.push(Received::Discontinuity { timestamp, missing });
            return self.decoder.reset();
        }
        let plan = Plan::new(gap as u32, missing, expected.ticks);
        let mut at = expected.timestamp;
        let mut left = plan.concealed;
        while left > 0 {
            let ticks = left.min(plan.each);
            let mut samples = Vec::new();
            self.decoder.conceal(self.decoder.frames(ticks), &mut samples)?;
            out.push(Received::Audio { timestamp: at, samples, fill: Fill::Concealed });
            at += u64::from(ticks);
            left -= ticks;
        }
        if plan.silence > 0 {
            let samples = self.silence(plan.silence);
            out.push(Received::Audio { timestamp: at, samples, fill: Fill::Silence });
            at += u64::from(plan.silence);
        }
        if plan.fec > 0 {
            let mut samples = Vec::new();
            let frames = self.decoder.frames(plan.fec);
            if self.decoder.decode_fec(packet, frames, &mut samples).is_err() {
                samples.clear();
                self.decoder.conceal(frames, &mut samples)?;
            }
            self.stats.recovered += u64::from(info.has_fec());
            out.push(Received::Audio { timestamp: at, samples, fill: Fill::Fec });
        }
        Ok(())
    }

    /// Zeros for `ticks`; parts of a sample are carried to the next silence, so that they never add up.
    fn silence(&mut self, ticks: u32) -> Vec<f32> {
        self.stats.silence_ticks += u64::from(ticks);
        let exact = u64::from(ticks) * u64::from(self.config.rate) + self.carry;
        self.carry = exact % u64::from(TICKS);
        vec![0.0; (exact / u64::from(TICKS)) as usize * usize::from(self.config.channels)]
    }
}

/// How a gap is divided, in ticks. Lost packets are taken to be as long as the one before them; what they do not explain
/// is silence, and so is a rest below 2.5 ms.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    concealed: u32,
    silence: u32,
    fec: u32,
    /// Ticks of one concealed span.
    each: u32,
}

impl Plan {
    fn new(gap: u32, missing: u64, ticks: u32) -> Self {
        let explained = missing.saturating_mul(ticks.into()).min(gap.into()) as u32 / SHORTEST * SHORTEST;
        let each = match u32::try_from(missing) {
            Ok(missing @ 1..) => (explained / missing / SHORTEST * SHORTEST).clamp(SHORTEST, LONGEST),
            _ => SHORTEST,
        };
        let fec = each.min(explained);
        Self { concealed: explained - fec, silence: gap - explained, fec, each }
    }
}

/// Extends wrapping counters (16-bit sequence numbers, 32-bit timestamps) to 64 bits: each value is taken to be the one
/// nearest to the last.
#[derive(Debug, Clone, Copy)]
pub struct Unwrap {
    bits: u32,
    last: Option<u64>,
}

impl Unwrap {
    /// For RTP sequence numbers.
    pub fn sequence() -> Self {
        Self { bits: 16, last: None }
    }

    /// For RTP timestamps.
    pub fn timestamp() -> Self {
        Self { bits: 32, last: None }
    }

    /// The extended value. The first one is placed one turn above 0, so that earlier ones still have a place.
    pub fn extend(&mut self, value: u32) -> u64 {
        let turn = 1u64 << self.bits;
        let value = u64::from(value) & (turn - 1);
        let extended = match self.last {
            None => turn + value,
            Some(last) => {
                let base = last - last % turn + value;
                [base.checked_sub(turn), Some(base), base.checked_add(turn)]
                    .into_iter()
                    .flatten()
                    .min_by_key(|c| c.abs_diff(last))
                    .unwrap_or(base)
            }
        };
        self.last = Some(extended);
        extended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_divide_the_gap() {
        assert_eq!(Plan::new(960, 1, 960), Plan { concealed: 0, silence: 0, fec: 960, each: 960 });
        assert_eq!(Plan::new(2_880, 3, 960), Plan { concealed: 1_920, silence: 0, fec: 960, each: 960 });
        assert_eq!(Plan::new(19_200, 0, 960), Plan { concealed: 0, silence: 19_200, fec: 0, each: 120 });
        assert_eq!(Plan::new(19_200, 2, 960), Plan { concealed: 960, silence: 17_280, fec: 960, each: 960 });
        assert_eq!(Plan::new(1_000, 2, 960), Plan { concealed: 480, silence: 40, fec: 480, each: 480 });
        assert_eq!(Plan::new(7, 1, 960), Plan { concealed: 0, silence: 7, fec: 0, each: 120 });
        for gap in (1..5_000).step_by(13) {
            for missing in [0, 1, 2, 5, 1_000, u64::MAX] {
                let plan = Plan::new(gap, missing, 480);
                assert_eq!(plan.concealed + plan.silence + plan.fec, gap);
                assert_eq!((plan.concealed % 120, plan.fec % 120), (0, 0));
            }
        }
    }

    #[test]
    fn counters_unwrap_both_ways() {
        let mut unwrap = Unwrap::sequence();
        let first = unwrap.extend(65_534);
        assert_eq!(unwrap.extend(65_535), first + 1);
        assert_eq!(unwrap.extend(0), first + 2);
        assert_eq!(unwrap.extend(65_535), first + 1);
        assert_eq!(unwrap.extend(3), first + 5);
        let mut unwrap = Unwrap::timestamp();
        let first = unwrap.extend(u32::MAX - 959);
        assert_eq!(unwrap.extend(0), first + 960);
    }
}
