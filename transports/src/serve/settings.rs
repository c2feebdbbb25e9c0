//! What a graph file says about being served.

use std::time::Duration;

use omni_flow::{GraphFile, Plan, SecretError};

use super::listen::{Address, AddressError};
use crate::api;
use crate::door::{self, Gate};
use crate::realtime::config::Defaults;
use crate::realtime::host;

/// Where a graph is served if nobody says otherwise.
const LISTEN: &str = "127.0.0.1:8080";
/// How long answers under way may go on after the first wish to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// Why a graph cannot be served like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// An API key cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// An address that is none.
    #[error("{key}: {error}")]
    Address {
        /// The key, or the flag.
        key: &'static str,
        /// What is wrong with it.
        error: AddressError,
    },
    /// A route that there is not.
    #[error("serve.routes: `{0}` is no route that can be chosen; there are {known}", known = known())]
    Route(String),
    /// Everybody on the network could come in.
    #[error(
        "{0} can be reached from other machines, and no API key is set: list keys under `serve.api-keys` as \
         ${{env:NAME}}, or say `serve.allow-anonymous: true`"
    )]
    Open(Address),
}

/// Where metrics can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metrics {
    /// At `/metrics` of the address of everything else.
    Beside,
    /// At an address of their own.
    At(Address),
    /// Nowhere.
    Off,
}

/// How a graph is served.
#[derive(Clone)]
pub struct Settings {
    /// Where.
    pub listen: Address,
    /// Where its metrics are.
    pub metrics: Metrics,
    /// Who may come in.
    pub gate: Gate,
    /// Limits of Realtime sessions.
    pub host: host::Limits,
    /// What a session is where its client does not say.
    pub defaults: Defaults,
    /// Limits of one socket.
    pub socket: door::Limits,
    /// Whether it may be talked with over the Realtime protocol, if it can.
    pub realtime: bool,
    /// The routes over HTTP.
    pub api: api::Config,
    /// How long answers under way may go on after the wish to stop.
    pub drain: Duration,
    /// The longest that the connection of a reader who has stopped reading is kept.
    pub write_stall: Duration,
}

impl Settings {
    /// What `file` says, which passed the check that `plan` is from. `listen` is above it.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn of(file: &GraphFile, plan: &Plan, listen: Option<&str>) -> Result<Self, SettingsError> {
        let address = |key, text: &str| text.parse::<Address>().map_err(|error| SettingsError::Address { key, error });
        let listen = match (listen, file.text("serve.listen")) {
            (Some(text), _) => address("--listen", text)?,
            (None, text) => address("serve.listen", text.unwrap_or(LISTEN))?,
        };
        let metrics = match file.text("serve.metrics.listen") {
            Some(text) => Metrics::At(address("serve.metrics.listen", text)?),
            None if file.flag("serve.metrics") == Some(false) => Metrics::Off,
            None => Metrics::Beside,
        };
        let keys = file.secrets("serve.api-keys")?;
        let open = file.flag("serve.allow-anonymous").unwrap_or(false);
        if keys.is_empty() && !open {
            let own = if let Metrics::At(a) = &metrics { Some(a) } else { None };
            for place in std::iter::once(&listen).chain(own) {
                if !place.is_loopback() {
                    return Err(SettingsError::Open(place.clone()));
                }
            }
        }
        let origins = file.texts("serve.allowed-origins").into_iter().map(str::to_owned);
        let gate = Gate::new(keys.iter().map(String::as_str), origins);
        let write_stall = file.duration("serve.write-stall");
        let mut socket = door::Limits::default();
        set(&mut socket.frame, file.bytes("serve.realtime.max-frame-bytes").map(size));
        set(&mut socket.ping, file.duration("serve.realtime.ping"));
        set(&mut socket.missed, file.count("serve.realtime.missed-pongs").map(|n| n.try_into().unwrap_or(u32::MAX)));
        set(&mut socket.write, write_stall);
        let only = routes(file)?;
        let realtime = only.as_ref().is_none_or(|o| o.iter().any(|r| REALTIME.contains(&api::short(r))));
        let voices = plan.nodes.iter().filter_map(|n| file.text(&format!("nodes.{}.voice", n.name)));
        let mut voices: Vec<String> = voices.map(str::to_owned).collect();
        voices.sort();
        voices.dedup();
        let api = api::Config {
            limits: api_limits(file),
            only,
            voices,
            voices_dir: file.text("serve.voices.dir").map(|dir| file.folder().join(dir)),
        };
        Ok(Self {
            realtime,
            api,
            listen,
            metrics,
            gate,
            host: host_limits(file, plan),
            defaults: defaults(file, Defaults { model: Some(plan.name.clone()), ..Defaults::default() }),
            socket,
            drain: file.duration("serve.drain").unwrap_or(DRAIN),
            write_stall: write_stall.unwrap_or(door::Limits::default().write),
        })
    }
}

const REALTIME: [&str; 2] = ["realtime", "duplex"];

fn known() -> String {
    let all: Vec<&str> = REALTIME.into_iter().chain(api::ROUTES.iter().map(|r| api::short(r))).collect();
    all.join(", ")
}

/// `serve.routes`.
fn routes(file: &GraphFile) -> Result<Option<Vec<String>>, SettingsError> {
    if file.get("serve.routes").is_none() {
        return Ok(None);
    }
    let all = file.texts("serve.routes");
    let there =
        |r: &str| REALTIME.contains(&api::short(r)) || api::ROUTES.iter().any(|k| api::short(k) == api::short(r));
    match all.iter().find(|r| !there(r)) {
        Some(other) => Err(SettingsError::Route((*other).to_owned())),
        None => Ok(Some(all.into_iter().map(str::to_owned).collect())),
    }
}

fn api_limits(file: &GraphFile) -> api::Limits {
    let mut l = api::Limits::default();
    set(&mut l.write_stall, file.duration("serve.write-stall"));
    set(&mut l.instructions_chars, file.count("serve.speech.max-instructions-chars").map(size));
    set(&mut l.batch_items, file.count("serve.speech.batch-max-items").map(size));
    set(&mut l.ws_first_message, file.duration("serve.speech-ws.first-message"));
    set(&mut l.ws_idle, file.duration("serve.speech-ws.idle"));
    set(&mut l.ws_config_bytes, file.bytes("serve.speech-ws.max-config-bytes").map(size));
    set(&mut l.ws_message_bytes, file.bytes("serve.speech-ws.max-message-bytes").map(size));
    set(&mut l.voice_bytes, file.bytes("serve.voices.max-bytes").map(size));
    set(&mut l.voices, file.count("serve.voices.max-uploaded").map(size));
    l.voices_immutable = file.text("serve.voices.policy") == Some("immutable");
    set(&mut l.transcription_bytes, file.bytes("serve.transcriptions.max-bytes").map(size));
    l
}

fn host_limits(file: &GraphFile, plan: &Plan) -> host::Limits {
    let mut l = host::Limits::default();
    set(&mut l.message, file.bytes("serve.realtime.max-message-bytes").map(size));
    set(&mut l.first_message, file.duration("serve.realtime.first-message"));
    set(&mut l.outbox.bytes, file.bytes("session.max-pending-output-bytes").map(size));
    set(&mut l.outbox.events, file.count("session.max-pending-output-events").map(size));
    set(&mut l.outbox.reserve_bytes, file.bytes("session.output-reserve-bytes").map(size));
    set(&mut l.outbox.reserve_events, file.count("session.output-reserve-events").map(size));
    set(&mut l.journal.age, file.duration("session.resume-replay-ttl"));
    set(&mut l.journal.bytes, file.bytes("session.resume-replay-max-bytes").map(size));
    set(&mut l.pending.bytes, file.bytes("session.max-pending-input-bytes").map(size));
    set(&mut l.pending.commits, file.count("session.max-pending-commits").map(size));
    set(&mut l.lease.grace, file.duration("session.disconnect-grace"));
    set(&mut l.silence_units, file.count("session.max-silence-units").and_then(|n| n.try_into().ok()));
    set(&mut l.reaper, file.duration("session.reaper-interval"));
    l.lease.idle = plan.session.idle_ttl;
    l.short_acks = file.texts("session.short-acks").into_iter().map(str::to_owned).collect();
    l
}

fn defaults(file: &GraphFile, mut d: Defaults) -> Defaults {
    if let Some(hz) = file.count("serve.realtime.default-input-rate-hz") {
        d.input_rate_hz = u32::try_from(hz).ok();
    }
    if let Some(word) = file.text("serve.realtime.default-turn-detection") {
        d.server_vad = Some(word == "server_vad");
    }
    if let Some(t) = file.duration("serve.realtime.idle-timeout") {
        d.idle_timeout_s = t.as_secs_f64();
    }
    let ms = |key: &str| file.duration(key).and_then(|t| u64::try_from(t.as_millis()).ok());
    set(&mut d.overlap.short_ack_ms, ms("session.overlap.short-ack"));
    set(&mut d.overlap.barge_in_ms, ms("session.overlap.barge-in"));
    set(&mut d.overlap.silence_rms, file.number("session.overlap.silence-rms"));
    let ms = |key: &str| ms(key).and_then(|n| u32::try_from(n).ok());
    set(&mut d.vad.threshold, file.number("session.vad.threshold"));
    set(&mut d.vad.prefix_padding_ms, ms("session.vad.prefix-padding"));
    set(&mut d.vad.silence_duration_ms, ms("session.vad.silence-duration"));
    set(&mut d.vad.min_speech_duration_ms, ms("session.vad.min-speech-duration"));
    d
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
