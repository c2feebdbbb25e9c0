//! `WS /v1/audio/speech/stream`: text in pieces, speech unit by unit.
//!
//! Messages are answered in their order: a unit of text that is complete is spoken before the next message is looked at. So
//! a client that writes faster than the graph speaks is held up by its own socket. A client that leaves ends the unit that
//! is being spoken.

use std::pin::pin;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use axum::extract::{State, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::make::{self, Making};
use super::request::{Mode, Speak};
use super::split::{Granularity, unit};
use crate::api::fields::Fields;
use crate::api::job::Job;
use crate::api::run::{Fail, Owned};
use crate::api::{Api, SPEECH_STREAM, Speech, audio};
use crate::door::{HttpError, small};

/// Messages that wait while a unit is being spoken; then the socket is not read.
const WAITING: usize = 16;

pub(in crate::api) async fn open(
    State(api): State<Api>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, HttpError> {
    api.admit(&headers)?;
    let ends = api.speech(SPEECH_STREAM)?.clone();
    let most = api.config.limits.ws_config_bytes;
    // A little more than is allowed, so that what is too large is told in words.
    let upgrade = small(upgrade).max_message_size(4 * most).max_frame_size(4 * most);
    Ok(upgrade.on_upgrade(move |socket| serve(api, ends, socket)))
}

/// Why a connection ends.
enum End {
    /// The client wants it.
    Asked,
    /// It is gone, or does not read.
    Gone,
    /// It is told why.
    Told(HttpError),
}

/// What a client sends.
enum Said {
    Config(Map<String, Value>),
    Text(String),
    Done,
    Close,
}

async fn serve(api: Api, ends: Speech, socket: WebSocket) {
    let (sink, stream) = socket.split();
    let (tx, messages) = mpsc::channel(WAITING);
    let (alive, gone) = mpsc::channel::<()>(1);
    let _reader = Owned::spawn(read(stream, tx, alive));
    let out = Out { sink, api: api.clone() };
    let mut talk =
        Talk { api, ends, out, messages, gone, config: None, text: String::new(), utterance: 0, sentence: 0 };
    let end = talk.run().await;
    if let End::Told(e) = &end {
        let _ = talk.out.event(&json!({"type": "error", "message": e.message()})).await;
    }
    if !matches!(end, End::Gone) {
        let code = if matches!(end, End::Asked) { 1000 } else { 1008 };
        let _ = talk.out.send(Message::Close(Some(CloseFrame { code, reason: "".into() }))).await;
        // The client answers the close; one that does not is left.
        let answered = async { while talk.messages.recv().await.is_some() {} };
        let _ = talk.api.clock.timeout(std::time::Duration::from_secs(5), answered).await;
    }
}

/// Hands messages on until the socket ends. `alive` ends with it.
async fn read(mut stream: SplitStream<WebSocket>, tx: mpsc::Sender<Message>, alive: mpsc::Sender<()>) {
    while let Some(Ok(message)) = stream.next().await {
        if matches!(message, Message::Ping(_) | Message::Pong(_)) {
            continue;
        }
        if matches!(message, Message::Close(_)) || tx.send(message).await.is_err() {
            break;
        }
    }
    drop(alive);
}

/// Where answers go.
struct Out {
    sink: SplitSink<WebSocket, Message>,
    api: Api,
}

impl Out {
    async fn send(&mut self, message: Message) -> Result<(), Fail> {
        let stall = self.api.config.limits.write_stall;
        match self.api.clock.timeout(stall, self.sink.send(message)).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(Fail::Gone),
            None => Err(Fail::Stalled),
        }
    }
    async fn event(&mut self, event: &Value) -> Result<(), Fail> {
        self.send(Message::Text(event.to_string().into())).await
    }
}

struct Talk {
    api: Api,
    ends: Speech,
    out: Out,
    messages: mpsc::Receiver<Message>,
    gone: mpsc::Receiver<()>,
    config: Option<Config>,
    /// Text that is not yet spoken.
    text: String,
    utterance: u64,
    sentence: u64,
}

/// How it is to be spoken.
#[derive(Clone)]
struct Config {
    speak: Speak,
    streams: bool,
    granularity: Granularity,
}

impl Config {
    fn of(api: &Api, ends: &Speech, map: &Map<String, Value>) -> Result<Self, HttpError> {
        let f = Fields(map);
        api.model(f.text("model")?)?;
        let streams = f.flag("stream_audio")?.unwrap_or(false);
        let granularity = match f.text("split_granularity")? {
            None | Some("none") => Granularity::None,
            Some("sentence") => Granularity::Sentence,
            Some("clause") => Granularity::Clause,
            Some(_) => {
                let message = "`split_granularity` must be none, sentence or clause";
                return Err(HttpError::bad(message).about("split_granularity"));
            }
        };
        let mut map = map.clone();
        map.remove("stream");
        map.remove("stream_format");
        let speak = Speak::options(api, Fields(&map), ends)?.checked(ends)?;
        if streams && speak.format != omni_flow_media::encode::ClipFormat::Pcm {
            return Err(HttpError::bad("`stream_audio` needs `response_format` pcm").about("stream_audio"));
        }
        if streams && speak.speed != 1.0 {
            return Err(HttpError::bad("`speed` must be 1.0 with `stream_audio`").about("speed"));
        }
        debug_assert_eq!(speak.mode, Mode::Whole);
        Ok(Self { speak, streams, granularity })
    }
}

impl Talk {
    async fn run(&mut self) -> End {
        loop {
            let limits = &self.api.config.limits;
            let wait = if self.config.is_none() { limits.ws_first_message } else { limits.ws_idle };
            let message = match self.api.clock.timeout(wait, self.messages.recv()).await {
                Some(Some(message)) => message,
                Some(None) => return End::Gone,
                None => {
                    let message = format!("nothing came for {} s", wait.as_secs_f64());
                    return End::Told(HttpError::bad(message));
                }
            };
            let done = match self.read(message) {
                Ok(said) => self.answer(said).await,
                Err(e) if self.config.is_none() => return End::Told(e),
                Err(e) => self.out.event(&json!({"type": "error", "message": e.message()})).await.map(|()| None),
            };
            match done {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(_) => return End::Gone,
            }
        }
    }

    /// Reads a message; the first one must configure.
    fn read(&self, message: Message) -> Result<Said, HttpError> {
        let Message::Text(text) = message else { return Err(HttpError::bad("a message must be JSON text")) };
        let limits = &self.api.config.limits;
        if text.len() > limits.ws_config_bytes {
            return Err(HttpError::too_large(format!("the message is larger than {} bytes", limits.ws_config_bytes)));
        }
        let value =
            serde_json::from_str::<Value>(&text).map_err(|e| HttpError::bad(format!("the message is no JSON: {e}")))?;
        let Value::Object(map) = value else { return Err(HttpError::bad("a message must be a JSON object")) };
        let kind = map.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if kind != "session.config" && text.len() > limits.ws_message_bytes {
            return Err(HttpError::too_large(format!("the message is larger than {} bytes", limits.ws_message_bytes)));
        }
        if self.config.is_none() && kind != "session.config" {
            return Err(HttpError::bad("the first message must be `session.config`"));
        }
        match kind.as_str() {
            "session.config" => Ok(Said::Config(map)),
            "input.text" => {
                let text =
                    Fields(&map).text("text")?.ok_or_else(|| HttpError::bad("`text` is missing").about("text"))?;
                if self.text.len() + text.len() > limits.input_bytes {
                    let message = format!("more than {} bytes of text wait to be spoken", limits.input_bytes);
                    return Err(HttpError::bad(message).about("text"));
                }
                Ok(Said::Text(text.to_owned()))
            }
            "input.done" => Ok(Said::Done),
            "session.close" => Ok(Said::Close),
            other => {
                let shown: String = other.chars().take(64).collect();
                let known = "session.config, input.text, input.done and session.close";
                Err(HttpError::bad(format!("`{shown}` is no message; there are {known}")))
            }
        }
    }

    async fn answer(&mut self, said: Said) -> Result<Option<End>, Fail> {
        match said {
            Said::Close => return Ok(Some(End::Asked)),
            Said::Config(map) => {
                if self.config.is_some() && (self.sentence > 0 || !self.text.is_empty()) {
                    let message = "`session.config` comes between utterances: send `input.done` first";
                    self.out.event(&json!({"type": "error", "message": message})).await?;
                    return Ok(None);
                }
                match Config::of(&self.api, &self.ends, &map) {
                    Ok(config) => self.config = Some(config),
                    Err(e) if self.config.is_none() => return Ok(Some(End::Told(e))),
                    Err(e) => self.out.event(&json!({"type": "error", "message": e.message()})).await?,
                }
            }
            Said::Text(text) => {
                self.text.push_str(&text);
                let granularity = self.config.as_ref().map_or(Granularity::None, |c| c.granularity);
                while let Some(sentence) = unit(&mut self.text, granularity) {
                    self.speak(sentence).await?;
                }
            }
            Said::Done => {
                let rest = std::mem::take(&mut self.text);
                let rest = rest.trim();
                if !rest.is_empty() {
                    self.speak(rest.to_owned()).await?;
                }
                let done = json!({"type": "session.done", "utterance_index": self.utterance,
                    "total_sentences": self.sentence});
                self.out.event(&done).await?;
                self.utterance += 1;
                self.sentence = 0;
            }
        }
        Ok(None)
    }

    /// Speaks one unit. What goes wrong with it is told, and the connection lives; an error is the connection's end.
    async fn speak(&mut self, text: String) -> Result<(), Fail> {
        let Some(config) = self.config.clone() else { return Ok(()) };
        let speak = Speak { input: text, ..config.speak };
        let mut job = self.api.job(SPEECH_STREAM);
        job.speaks(&self.ends.node, config.streams, true);
        let mut state = Unit { utterance: self.utterance, sentence: self.sentence, begun: false, bytes: 0 };
        self.sentence += 1;
        let made = {
            let Self { out, gone, .. } = self;
            let work = pin!(state.make(out, &self.api, &speak, config.streams, &mut job));
            tokio::select! {
                biased;
                made = work => made,
                _ = gone.recv() => Err(Fail::Gone),
            }
        };
        let told = match &made {
            Ok(()) => state.done(&mut self.out, false).await,
            Err(Fail::Gone | Fail::Stalled) => Err(Fail::Gone),
            Err(fail) => {
                let mut error = json!({"type": "error", "message": fail.http().message()});
                if state.bytes > 0 {
                    error["partial_audio"] = true.into();
                    error["action"] = "discard".into();
                }
                let told = self.out.event(&error).await;
                if state.begun && told.is_ok() { state.done(&mut self.out, true).await } else { told }
            }
        };
        match made.and(told.clone()) {
            Ok(()) => job.done(false),
            Err(fail) => job.failed(&fail),
        }
        told
    }
}

/// One unit on its way.
struct Unit {
    utterance: u64,
    sentence: u64,
    begun: bool,
    bytes: usize,
}

impl Unit {
    async fn make(
        &mut self,
        out: &mut Out,
        api: &Api,
        speak: &Speak,
        streams: bool,
        job: &mut Job,
    ) -> Result<(), Fail> {
        let mut making = Making::start(api, speak).map_err(Fail::Refused)?;
        if !streams {
            self.start(out, speak, None).await?;
            let clip = make::clip(speak, making, job).await?;
            return self.binary(out, clip.file).await;
        }
        let mut next = Some(making.next().await?.ok_or(Fail::NoAudio)?);
        let spec = making.spec().ok_or(Fail::NoAudio)?;
        self.start(out, speak, Some(spec)).await?;
        while let Some(samples) = next {
            let frames = samples.len() / usize::from(spec.1.max(1));
            self.binary(out, audio::bytes(&samples)).await?;
            job.frames(frames, spec.0);
            next = making.next().await?;
        }
        Ok(())
    }
    async fn start(&mut self, out: &mut Out, speak: &Speak, spec: Option<(u32, u16)>) -> Result<(), Fail> {
        let mut event = json!({"type": "audio.start", "utterance_index": self.utterance,
            "sentence_index": self.sentence, "sentence_text": speak.input, "format": speak.format.name()});
        if let Some((rate, channels)) = spec {
            event["sample_rate"] = rate.into();
            event["channels"] = channels.into();
        }
        self.begun = true;
        out.event(&event).await
    }
    async fn binary(&mut self, out: &mut Out, bytes: Vec<u8>) -> Result<(), Fail> {
        let count = bytes.len();
        out.send(Message::Binary(bytes.into())).await?;
        self.bytes += count;
        Ok(())
    }
    async fn done(&self, out: &mut Out, error: bool) -> Result<(), Fail> {
        out.event(&json!({"type": "audio.done", "utterance_index": self.utterance, "sentence_index": self.sentence,
            "total_bytes": self.bytes, "error": error}))
            .await
    }
}
