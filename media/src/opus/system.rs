//! The backend of the feature `libopus`: the C library through the `opus` crate.
//!
//! The crate brings the library's source (1.6 at the time of writing) and links it statically, with run-time detection
//! of SIMD. Building it needs a C compiler and cmake; nothing is taken from the system.

use opus::{Bitrate, Channels};

use super::{super::Application, BackendError, DecoderBackend, EncoderBackend, Setting};

pub(super) const NAME: &str = "libopus (C)";

pub(super) fn version() -> &'static str {
    opus::version()
}

pub(super) struct Encoder(opus::Encoder);

impl Encoder {
    pub(super) fn new(rate: u32, channels: u8, application: Application) -> Result<Self, BackendError> {
        let application = match application {
            Application::Voip => opus::Application::Voip,
            Application::Audio => opus::Application::Audio,
            Application::LowDelay => opus::Application::LowDelay,
        };
        opus::Encoder::new(rate, layout(channels), application).map(Self).map_err(|e| failed("create an encoder", &e))
    }
}

impl EncoderBackend for Encoder {
    fn set(&mut self, setting: Setting) -> Result<(), BackendError> {
        match setting {
            Setting::Bitrate(bits) => self.0.set_bitrate(Bitrate::Bits(bits)),
            Setting::Complexity(level) => self.0.set_complexity(level),
            Setting::Vbr(on) => self.0.set_vbr(on),
            Setting::Fec(on) => self.0.set_inband_fec(on),
            Setting::ExpectedLoss(percent) => self.0.set_packet_loss_perc(percent),
            Setting::Dtx(on) => self.0.set_dtx(on),
        }
        .map_err(|e| failed("set an encoder option", &e))
    }

    fn lookahead(&mut self) -> Result<usize, BackendError> {
        let frames = self.0.get_lookahead().map_err(|e| failed("ask for the lookahead", &e))?;
        Ok(usize::try_from(frames).unwrap_or(0))
    }

    fn encode(&mut self, pcm: &[f32], out: &mut [u8]) -> Result<usize, BackendError> {
        self.0.encode_float(pcm, out).map_err(|e| failed("encode", &e))
    }

    fn reset(&mut self) -> Result<(), BackendError> {
        self.0.reset_state().map_err(|e| failed("reset", &e))
    }
}

pub(super) struct Decoder(opus::Decoder);

impl Decoder {
    pub(super) fn new(rate: u32, channels: u8) -> Result<Self, BackendError> {
        opus::Decoder::new(rate, layout(channels)).map(Self).map_err(|e| failed("create a decoder", &e))
    }
}

impl DecoderBackend for Decoder {
    fn decode(&mut self, packet: &[u8], pcm: &mut [f32], fec: bool) -> Result<usize, BackendError> {
        self.0.decode_float(packet, pcm, fec).map_err(|e| failed("decode", &e))
    }

    fn reset(&mut self) -> Result<(), BackendError> {
        self.0.reset_state().map_err(|e| failed("reset", &e))
    }
}

fn layout(channels: u8) -> Channels {
    if channels == 1 { Channels::Mono } else { Channels::Stereo }
}

fn failed(call: &'static str, error: &opus::Error) -> BackendError {
    BackendError { call, code: error.code() as i32 }
}
