//! `audio.opus-decode`: Opus packets into audio on an exact time line.
//!
//! Decoded length is the span of media time, to the sample. Packets that a lossy edge dropped are concealed, the last of
//! them from the next packet's FEC data. A jump of the packets' time with nothing dropped is silence, or loss if `jumps:
//! loss` says so (a network that hides its sequence numbers). What cannot be filled passes as a `Gap` on `gaps`. Illegal
//! packets are counted and skipped.

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, In, Kind, Make, MediaTime, Medium, Node, NodeError, Opt, OptionError, Out,
    Packet, Pcm, Port, Schema, Sent, Signal, Stamp, Terminal,
};
use omni_flow_media::opus::{Fill, OpusReceiver, PacketInfo, RATES, Received, ReceiverConfig, TICKS};
use serde::Deserialize;

use super::{f32_audio, pcm};

/// The node type.
pub struct OpusDecode;

/// Its options.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct OpusDecodeConfig {
    rate: u32,
    channels: u8,
    jumps: Jumps,
}

/// What a jump of the packets' time means where nothing is known to be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Jumps {
    Silence,
    Loss,
}

impl Default for OpusDecodeConfig {
    fn default() -> Self {
        Self { rate: 48_000, channels: 1, jumps: Jumps::Silence }
    }
}

/// Ticks given to the first packet, so that a time line that goes back has a place.
const BASE: u64 = 1 << 40;

/// Sequence and timestamp of packets that have only a place in media time.
#[derive(Debug, Default)]
struct Line {
    /// Media time of tick [`BASE`].
    zero: Option<MediaTime>,
    sequence: u64,
    expected: u64,
    ticks: u32,
}

impl Line {
    /// The packet's sequence number and timestamp; `missed` packets before it are known to be lost. A packet without a
    /// place of its own (`pts` is `None`) follows the one before.
    fn place(&mut self, pts: Option<MediaTime>, ticks: u32, missed: u64, jumps: Jumps) -> (u64, u64) {
        let follows = MediaTime::from_samples(self.expected.saturating_sub(BASE), TICKS);
        let pts = pts.unwrap_or_else(|| self.zero.map_or(MediaTime::ZERO, |z| z + follows));
        let zero = *self.zero.get_or_insert(pts);
        let off = i128::from((pts - zero).ticks()) * i128::from(TICKS);
        let per_second = i128::from(omni_flow::TICKS_PER_SECOND);
        let off = (off + per_second / 2).div_euclid(per_second);
        let at = (i128::from(BASE) + off).clamp(0, i128::from(u64::MAX / 2)) as u64;
        let mut lost = missed;
        if jumps == Jumps::Loss && lost == 0 && self.ticks > 0 {
            lost = at.saturating_sub(self.expected) / u64::from(self.ticks);
        }
        self.sequence += lost + 1;
        (self.expected, self.ticks) = (at + u64::from(ticks), ticks);
        (self.sequence, at)
    }
    fn time(&self, at: u64) -> MediaTime {
        let zero = self.zero.unwrap_or_default();
        if at >= BASE {
            zero + MediaTime::from_samples(at - BASE, TICKS)
        } else {
            zero - MediaTime::from_samples(BASE - at, TICKS)
        }
    }
}

struct Decoding {
    config: OpusDecodeConfig,
    receiver: OpusReceiver,
    line: Line,
}

impl Node for Decoding {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input: In<Packet> = cx.input("in")?;
        let mut out = cx.output::<Pcm>("out")?;
        let mut gaps = cx.output::<Signal>("gaps")?;
        let mut made = Vec::new();
        let result = loop {
            match input.next().await {
                Event::Data(stamp, packet) => {
                    let Ok(info) = PacketInfo::parse(&packet.data) else {
                        // Counted by the receiver; it has no length and so no place on the line.
                        self.receiver.receive(self.line.sequence + 1, self.line.expected, &packet.data, &mut made)?;
                        continue;
                    };
                    let missed = input.take_missed();
                    // What a client sends has no length, and so no place on a time line.
                    let pts = (stamp.len > MediaTime::ZERO).then_some(stamp.pts);
                    let (sequence, at) = self.line.place(pts, info.ticks(), missed, self.config.jumps);
                    self.receiver.receive(sequence, at, &packet.data, &mut made)?;
                    if self.give(&stamp, missed, &mut made, &mut out, &mut gaps).await? == Sent::Gone {
                        break Ok(());
                    }
                }
                Event::Fence(_) => {
                    self.receiver.reset()?;
                    self.line = Line { sequence: self.line.sequence, ..Line::default() };
                }
                Event::End(Terminal::End) => break Ok(()),
                Event::End(Terminal::Error(e)) => break Err(e.into()),
            }
        };
        let s = self.receiver.stats();
        if s.lost + s.illegal + s.late + s.discontinuities > 0 {
            tracing::warn!(node = cx.path(), ?s, "the Opus stream was not whole");
        }
        result
    }
}

impl Decoding {
    async fn give(
        &mut self,
        stamp: &Stamp,
        missed: u64,
        made: &mut Vec<Received>,
        out: &mut Out<Pcm>,
        gaps: &mut Out<Signal>,
    ) -> Result<Sent, NodeError> {
        let mut lost = MediaTime::ZERO;
        let count = made.len();
        for (i, r) in made.drain(..).enumerate() {
            match r {
                Received::Audio { timestamp, samples, fill } => {
                    if samples.is_empty() {
                        continue;
                    }
                    let audio = pcm(self.config.rate, self.config.channels.into(), samples)?;
                    if matches!(fill, Fill::Concealed | Fill::Fec) {
                        lost += audio.len();
                    }
                    let last = stamp.last && i + 1 == count;
                    let s = stamp.child(self.line.time(timestamp), audio.len()).last(last).over(last && stamp.over);
                    if out.send(&s, audio).await == Sent::Gone {
                        return Ok(Sent::Gone);
                    }
                }
                Received::Discontinuity { timestamp, missing } => {
                    let span = MediaTime::from_samples(missing.unsigned_abs(), TICKS);
                    let len = if missing < 0 { MediaTime::ZERO - span } else { span };
                    let s = stamp.child(self.line.time(timestamp), MediaTime::ZERO);
                    gaps.send(&s, Signal::Gap { items: missed, len }).await;
                }
            }
        }
        if lost > MediaTime::ZERO {
            let s = stamp.child(stamp.pts, MediaTime::ZERO);
            gaps.send(&s, Signal::Gap { items: missed, len: lost }).await;
        }
        Ok(Sent::Queued)
    }
}

impl Make for OpusDecode {
    const NAME: &'static str = "audio.opus-decode";
    type Config = OpusDecodeConfig;
    fn schema() -> Schema {
        Schema::new("Decodes Opus packets, conceals what was lost, keeps time exact")
            .input(Port::new("in", Kind::packet("opus"), "packets at their place in media time").lossy())
            .output(Port::new("out", f32_audio(None, None), "audio without a hole"))
            .output(
                Port::new("gaps", Kind::of(Medium::Signal), "a `gap` for what was concealed or could not be filled")
                    .optional(),
            )
            .option(Opt::new("rate", "integer", "48000", "output rate in Hz: 8000, 12000, 16000, 24000 or 48000"))
            .option(Opt::new("channels", "integer", "1", "1 or 2, whatever the packets hold"))
            .option(Opt::new("jumps", "silence|loss", "silence", "what a jump in time is when no packet is known lost"))
            .example("voice: { use: audio.opus-decode, rate: 48000, in: opus }")
    }
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        if !RATES.contains(&config.rate) {
            let hint = "use 8000, 12000, 16000, 24000 or 48000, and `audio.resample` behind it for another";
            return Err(OptionError::new(
                "rate",
                format!("is {} Hz, which Opus does not decode to", config.rate),
                hint,
            ));
        }
        if !matches!(config.channels, 1 | 2) {
            let hint = "write `channels: 1` or `channels: 2`";
            return Err(OptionError::new("channels", format!("is {}", config.channels), hint));
        }
        schema.outputs[0].kind = f32_audio(Some(config.rate), Some(config.channels.into()));
        Ok(())
    }
    fn build(config: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        let config = *config;
        Ok(Body::try_node(move || {
            let receiver = OpusReceiver::new(ReceiverConfig::new(config.rate, config.channels));
            let receiver = receiver.map_err(BuildError::from_error)?;
            Ok(Decoding { config, receiver, line: Line::default() })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_counts_what_is_known_to_be_lost() {
        let ms = MediaTime::from_millis;
        let mut l = Line::default();
        assert_eq!(l.place(Some(ms(-40)), 960, 0, Jumps::Silence), (1, BASE));
        assert_eq!(l.place(Some(ms(-20)), 960, 0, Jumps::Silence), (2, BASE + 960));
        assert_eq!(l.place(Some(ms(40)), 960, 2, Jumps::Silence), (5, BASE + 3 * 960 + 960));
        assert_eq!(l.place(Some(ms(460)), 960, 0, Jumps::Silence), (6, BASE + 24_000));
        assert_eq!(l.place(Some(ms(520)), 960, 0, Jumps::Loss), (9, BASE + 26_880));
        assert_eq!(l.place(None, 960, 0, Jumps::Loss), (10, BASE + 27_840));
        assert_eq!(l.time(BASE + 960), ms(-20));
        assert_eq!(l.time(BASE - 48), ms(-41));
    }
}
