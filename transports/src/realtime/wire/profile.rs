//! The three ways in which one session is shown on the wire.

/// How the connection was opened, and so how its events look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Event names and shapes of the current stock protocol; the default.
    Stock,
    /// Names of the stock protocol's beta.
    Beta,
    /// Ours: both generations of item events, nested metadata.
    Duplex,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 3] = [Profile::Stock, Profile::Beta, Profile::Duplex];

    /// True if `response.metadata` may hold only strings, ours standing in `response.omni`.
    pub fn strings_only(self) -> bool {
        self != Profile::Duplex
    }
    /// Input rate in Hz when the client declares none.
    pub fn input_rate_hz(self) -> u32 {
        match self {
            Profile::Stock | Profile::Beta => 24_000,
            Profile::Duplex => 16_000,
        }
    }
    /// Output rate in Hz when the client declares none.
    pub fn output_rate_hz(self) -> u32 {
        24_000
    }
    /// True if server VAD is on when the client declares no turn detection.
    pub fn server_vad(self) -> bool {
        self != Profile::Duplex
    }
}
