//! The default backend: the pure Rust port of libopus 1.3.1.
//!
//! The port is translated C. Its pointers stay inside this file, and a panic in it (an assertion of the original) ends
//! one call: the state is made anew and the call reports [`BackendError::CRASHED`].

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
};

use unsafe_libopus::varargs::{VarArg, VarArgs};

use super::{
    super::{Application, LONGEST},
    BackendError, DecoderBackend, EncoderBackend, Setting,
};

pub(super) const NAME: &str = "libopus 1.3.1 (Rust port)";

pub(super) fn version() -> &'static str {
    unsafe_libopus::opus_get_version_string()
}

pub(super) struct Encoder {
    state: NonNull<unsafe_libopus::OpusEncoder>,
    rate: u32,
    channels: u8,
    application: Application,
    settings: Vec<Setting>,
}

// SAFETY: the state is plain memory of its own without thread affinity, reached through `&mut self` only.
unsafe impl Send for Encoder {}

impl Encoder {
    pub(super) fn new(rate: u32, channels: u8, application: Application) -> Result<Self, BackendError> {
        let state = create_encoder(rate, channels, application)?;
        Ok(Self { state, rate, channels, application, settings: Vec::new() })
    }

    fn control(&mut self, call: &'static str, request: i32, argument: VarArg<'_>) -> Result<(), BackendError> {
        let state = self.state.as_ptr();
        // SAFETY: `state` is a live encoder; every request of this file is used with the argument type it expects.
        let code =
            guarded(|| unsafe { unsafe_libopus::opus_encoder_ctl_impl(state, request, VarArgs::new(vec![argument])) });
        checked(call, code).map(drop)
    }

    fn apply(&mut self, setting: Setting) -> Result<(), BackendError> {
        let (request, value) = match setting {
            Setting::Bitrate(bits) => (unsafe_libopus::OPUS_SET_BITRATE_REQUEST, bits),
            Setting::Complexity(level) => (unsafe_libopus::OPUS_SET_COMPLEXITY_REQUEST, level),
            Setting::Vbr(on) => (unsafe_libopus::OPUS_SET_VBR_REQUEST, on.into()),
            Setting::Fec(on) => (unsafe_libopus::OPUS_SET_INBAND_FEC_REQUEST, on.into()),
            Setting::ExpectedLoss(percent) => (unsafe_libopus::OPUS_SET_PACKET_LOSS_PERC_REQUEST, percent),
            Setting::Dtx(on) => (unsafe_libopus::OPUS_SET_DTX_REQUEST, on.into()),
        };
        self.control("set an encoder option", request, VarArg::I32(value))
    }
}

impl EncoderBackend for Encoder {
    fn set(&mut self, setting: Setting) -> Result<(), BackendError> {
        self.apply(setting)?;
        self.settings.retain(|s| std::mem::discriminant(s) != std::mem::discriminant(&setting));
        self.settings.push(setting);
        Ok(())
    }

    fn lookahead(&mut self) -> Result<usize, BackendError> {
        let mut frames = 0i32;
        self.control("ask for the lookahead", unsafe_libopus::OPUS_GET_LOOKAHEAD_REQUEST, VarArg::I32Out(&mut frames))?;
        Ok(usize::try_from(frames).unwrap_or(0))
    }

    fn encode(&mut self, pcm: &[f32], out: &mut [u8]) -> Result<usize, BackendError> {
        let state = self.state.as_ptr();
        let frames = pcm.len() / usize::from(self.channels);
        // SAFETY: `state` is live, `pcm` holds `frames` whole frames, and `out` is written within its length.
        let code = guarded(|| unsafe {
            unsafe_libopus::opus_encode_float(state, pcm.as_ptr(), frames as i32, out.as_mut_ptr(), out.len() as i32)
        });
        if code == BackendError::CRASHED {
            self.reset()?;
        }
        checked("encode", code)
    }

    fn reset(&mut self) -> Result<(), BackendError> {
        let fresh = create_encoder(self.rate, self.channels, self.application)?;
        let old = std::mem::replace(&mut self.state, fresh);
        // SAFETY: `old` came from `opus_encoder_create` and is not used again.
        unsafe { unsafe_libopus::opus_encoder_destroy(old.as_ptr()) };
        self.settings.clone().into_iter().try_for_each(|setting| self.apply(setting))
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: the state came from `opus_encoder_create` and is not used again.
        unsafe { unsafe_libopus::opus_encoder_destroy(self.state.as_ptr()) };
    }
}

pub(super) struct Decoder {
    state: NonNull<unsafe_libopus::OpusDecoder>,
    rate: u32,
    channels: u8,
}

// SAFETY: as for the encoder.
unsafe impl Send for Decoder {}

impl Decoder {
    pub(super) fn new(rate: u32, channels: u8) -> Result<Self, BackendError> {
        Ok(Self { state: create_decoder(rate, channels)?, rate, channels })
    }
}

impl DecoderBackend for Decoder {
    fn decode(&mut self, packet: &[u8], pcm: &mut [f32], fec: bool) -> Result<usize, BackendError> {
        let state = self.state.as_ptr();
        let frames = pcm.len() / usize::from(self.channels);
        debug_assert!(frames <= (LONGEST * self.rate / 48_000) as usize, "longer spans are cut by the caller");
        let data = if packet.is_empty() { std::ptr::null() } else { packet.as_ptr() };
        // SAFETY: `state` is live, `data` holds `packet.len()` bytes or is null, and at most `frames` frames are written.
        let code = guarded(|| unsafe {
            unsafe_libopus::opus_decode_float(
                state,
                data,
                packet.len() as i32,
                pcm.as_mut_ptr(),
                frames as i32,
                fec.into(),
            )
        });
        if code == BackendError::CRASHED {
            self.reset()?;
        }
        checked("decode", code)
    }

    fn reset(&mut self) -> Result<(), BackendError> {
        let fresh = create_decoder(self.rate, self.channels)?;
        let old = std::mem::replace(&mut self.state, fresh);
        // SAFETY: `old` came from `opus_decoder_create` and is not used again.
        unsafe { unsafe_libopus::opus_decoder_destroy(old.as_ptr()) };
        Ok(())
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: the state came from `opus_decoder_create` and is not used again.
        unsafe { unsafe_libopus::opus_decoder_destroy(self.state.as_ptr()) };
    }
}

fn create_encoder(
    rate: u32,
    channels: u8,
    application: Application,
) -> Result<NonNull<unsafe_libopus::OpusEncoder>, BackendError> {
    let application = match application {
        Application::Voip => unsafe_libopus::OPUS_APPLICATION_VOIP,
        Application::Audio => unsafe_libopus::OPUS_APPLICATION_AUDIO,
        Application::LowDelay => unsafe_libopus::OPUS_APPLICATION_RESTRICTED_LOWDELAY,
    };
    let mut code = 0;
    // SAFETY: allocates and initialises a state of its own; `code` outlives the call.
    let state = unsafe { unsafe_libopus::opus_encoder_create(rate as i32, channels.into(), application, &mut code) };
    NonNull::new(state).ok_or(BackendError { call: "create an encoder", code })
}

fn create_decoder(rate: u32, channels: u8) -> Result<NonNull<unsafe_libopus::OpusDecoder>, BackendError> {
    let mut code = 0;
    // SAFETY: allocates and initialises a state of its own; `code` outlives the call.
    let state = unsafe { unsafe_libopus::opus_decoder_create(rate as i32, channels.into(), &mut code) };
    NonNull::new(state).ok_or(BackendError { call: "create a decoder", code })
}

fn guarded(call: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(BackendError::CRASHED)
}

fn checked(call: &'static str, code: i32) -> Result<usize, BackendError> {
    usize::try_from(code).map_err(|_| BackendError { call, code })
}
