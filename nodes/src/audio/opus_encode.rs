//! `audio.opus-encode`: audio into Opus packets.
//!
//! Collects whole frames itself; the rest of a segment is filled with zeros. A packet stands at the time of its first
//! sample; decoded audio lies behind by the codec's lookahead (6.5 ms, `low-delay` 2.5 ms). A fence forgets all.

use omni_flow::units::Dur;
use omni_flow::{
    Body, BuildCx, BuildError, Emit, Kind, Make, MediaTime, Medium, Opt, OptionError, Packet, Pcm, Port, Schema, Stamp,
    Step, StepError,
};
use omni_flow_media::opus::{Application, EncodeError, EncoderConfig, OpusEncoder, TICKS};
use serde::Deserialize;

use super::jumps;
use crate::frame::{Framer, Tail};

/// The node type.
pub struct OpusEncode;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct OpusEncodeConfig {
    rate: u32,
    channels: u8,
    frame: Dur,
    bitrate: u32,
    application: Purpose,
    complexity: u8,
    vbr: bool,
    fec: bool,
    expected_loss: u8,
    dtx: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Purpose {
    Voip,
    Audio,
    LowDelay,
}

impl Default for OpusEncodeConfig {
    fn default() -> Self {
        let c = EncoderConfig::default();
        Self {
            rate: c.rate,
            channels: c.channels,
            frame: Dur(std::time::Duration::from_millis(20)),
            bitrate: c.bitrate,
            application: Purpose::Voip,
            complexity: c.complexity,
            vbr: c.vbr,
            fec: c.fec,
            expected_loss: c.expected_loss,
            dtx: c.dtx,
        }
    }
}

impl OpusEncodeConfig {
    fn encoder(&self) -> EncoderConfig {
        EncoderConfig {
            rate: self.rate,
            channels: self.channels,
            // A length that is no whole tenth is none that Opus has.
            frame_tenths: match self.frame.0.as_nanos() {
                n if n % 100_000 == 0 => u16::try_from(n / 100_000).unwrap_or(u16::MAX),
                _ => u16::MAX,
            },
            application: match self.application {
                Purpose::Voip => Application::Voip,
                Purpose::Audio => Application::Audio,
                Purpose::LowDelay => Application::LowDelay,
            },
            bitrate: self.bitrate,
            complexity: self.complexity,
            vbr: self.vbr,
            fec: self.fec,
            expected_loss: self.expected_loss,
            dtx: self.dtx,
        }
    }
}

struct Encoding {
    encoder: OpusEncoder,
    framer: Framer,
    /// Where the next sample belongs, once a segment has begun.
    expected: Option<MediaTime>,
}

impl Encoding {
    fn new(config: EncoderConfig) -> Result<Self, BuildError> {
        let framer = Framer::new(config.frame_len(), usize::from(config.channels), config.rate);
        let encoder = OpusEncoder::new(config).map_err(BuildError::from_error)?;
        Ok(Self { encoder, framer: framer.map_err(BuildError::from_error)?, expected: None })
    }
    fn encode(
        encoder: &mut OpusEncoder,
        frames: Vec<(MediaTime, Vec<f32>)>,
        stamp: &Stamp,
        out: &mut Emit<Packet>,
    ) -> Result<(), StepError> {
        let len = MediaTime::from_samples(u64::from(encoder.config().frame_ticks()), TICKS);
        for (pts, samples) in frames {
            let data = encoder.encode(&samples)?.into();
            let channels = u16::from(encoder.config().channels);
            out.put(stamp, pts, len, Packet { codec: "opus".into(), data, key: true, rate: TICKS, channels });
        }
        Ok(())
    }
    fn finish(&mut self, stamp: &Stamp, out: &mut Emit<Packet>) -> Result<(), StepError> {
        let mut rest = Vec::new();
        self.framer.finish(Tail::Pad, |f| rest.push((f.pts, f.audio.to_vec())));
        self.expected = None;
        Self::encode(&mut self.encoder, rest, stamp, out)
    }
}

impl Step for Encoding {
    type In = Pcm;
    type Out = Packet;
    fn step(&mut self, stamp: &Stamp, input: Pcm, out: &mut Emit<Packet>) -> Result<(), StepError> {
        if self.expected.is_some_and(|e| jumps(e, stamp.pts)) {
            self.finish(stamp, out)?;
        }
        if self.expected.is_none() {
            self.framer.restart(stamp.pts);
        }
        self.expected = Some(stamp.pts + input.len());
        let mut frames = Vec::new();
        self.framer.push(&input.f32(), |f| frames.push((f.pts, f.audio.to_vec())));
        Self::encode(&mut self.encoder, frames, stamp, out)?;
        if stamp.last {
            self.finish(stamp, out)?;
        }
        Ok(())
    }
    fn fence(&mut self) {
        self.framer.restart(MediaTime::ZERO);
        self.expected = None;
        if let Err(e) = self.encoder.reset() {
            tracing::warn!("the Opus encoder kept its history at a fence: {e}");
        }
    }
    fn end(&mut self, stamp: &Stamp, out: &mut Emit<Packet>) -> Result<(), StepError> {
        self.finish(stamp, out)
    }
}

impl Make for OpusEncode {
    const NAME: &'static str = "audio.opus-encode";
    type Config = OpusEncodeConfig;
    fn schema() -> Schema {
        Schema::new("Encodes audio into Opus packets")
            .input(Port::new("in", Kind::of(Medium::Audio), "audio of `rate` and `channels`"))
            .output(Port::new("out", Kind::packet("opus"), "one packet per frame"))
            .option(Opt::new("rate", "integer", "48000", "input rate in Hz: 8000, 12000, 16000, 24000 or 48000"))
            .option(Opt::new("channels", "integer", "1", "1 or 2"))
            .option(Opt::new("frame", "duration", "20ms", "2.5, 5, 10, 20, 40, 60, 80, 100 or 120 ms"))
            .option(Opt::new("bitrate", "integer", "32000", "bits per second, 6000 to 510000"))
            .option(Opt::new("application", "voip|audio|low-delay", "voip", "what to optimise for"))
            .option(Opt::new("complexity", "integer", "5", "effort, 0 to 10"))
            .option(Opt::new("vbr", "yes/no", "true", "variable bit rate"))
            .option(Opt::new("fec", "yes/no", "false", "a coarse copy of each packet in the next; see `expected-loss`"))
            .option(Opt::new("expected-loss", "integer", "0", "loss to prepare for, in percent"))
            .option(Opt::new("dtx", "yes/no", "false", "almost nothing is sent in silence"))
            .example("opus: { use: audio.opus-encode, bitrate: 32000, in: voice48k }")
    }
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        if let Err(e) = OpusEncoder::new(config.encoder()) {
            let (option, hint) = match &e {
                EncodeError::Rate { .. } => ("rate", "put `audio.resample` before it, to `rate: 48000`"),
                EncodeError::Channels { .. } => ("channels", "write `channels: 1` or `channels: 2`"),
                EncodeError::FrameLength { .. } => ("frame", "write for instance `frame: 20ms`"),
                EncodeError::Option { option: "bitrate", .. } => ("bitrate", "write for instance `bitrate: 32000`"),
                EncodeError::Option { option: "complexity", .. } => {
                    ("complexity", "write for instance `complexity: 5`")
                }
                EncodeError::Option { .. } => ("expected-loss", "write a percentage, for instance `10`"),
                _ => ("rate", "use another format"),
            };
            return Err(OptionError::new(option, e.to_string(), hint));
        }
        schema.inputs[0].kind =
            Kind { rate: Some(config.rate), channels: Some(u16::from(config.channels)), ..Kind::of(Medium::Audio) };
        schema.outputs[0].longest = MediaTime::from_duration(config.frame.0);
        Ok(())
    }
    fn build(config: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.encoder();
        Ok(Body::try_step(move || Encoding::new(config.clone())))
    }
}
