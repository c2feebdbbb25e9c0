//! The Realtime protocol of graphs that are used turn by turn: a stream goes in, its transcript or its answer comes out,
//! and then the next. Nothing is resumed, acknowledged or interrupted; a client that goes aborts what is under way.

use std::sync::Arc;
use std::task::Poll;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use omni_flow::{Event, In, Input as Mic, OpenError, Payload, Pcm, Session, Terminal};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{Hello, Host, Out, event_id, random, unix};
use crate::realtime::config::format::AudioFormat;
use crate::realtime::machine::INPUT_RATE_HZ;
use crate::realtime::rules::input::Input;
use crate::realtime::wire::client::{ClientEvent, Incoming, Rejected, parse};
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::profile::Profile;
use crate::realtime::wire::project::{Envelope, project};
use crate::realtime::wire::server::ServerEvent;

/// Samples of one piece of audio on its way out: it must fit a frame.
const PIECE: usize = 90_000;

/// One generation under way.
struct Running {
    session: Session,
    /// `None` once the client has ended its input.
    mic: Option<Mic>,
    outputs: Vec<In<Payload>>,
    text: String,
    has_audio: bool,
}

struct Turns<'a> {
    host: &'a Arc<Host>,
    profile: Profile,
    out: mpsc::Sender<Out>,
    session: Value,
    model: Option<String>,
    decoder: Input,
    running: Option<Running>,
    /// Nobody reads any more, or the client has closed.
    over: bool,
}

/// What comes next.
enum Next {
    Said(Option<super::Said>),
    Made(Event<Payload>),
}

/// One connection, from `session.created` to its end.
///
/// # Cancel safety
/// Dropped, the client is gone.
pub(super) async fn serve(
    host: &Arc<Host>,
    hello: &Hello,
    mut messages: mpsc::Receiver<super::Said>,
    out: mpsc::Sender<Out>,
) {
    let model = hello.model.clone().or_else(|| host.defaults.model.clone());
    let id = format!("sess_{:032x}", random());
    let session = json!({"id": id, "object": "realtime.session", "type": "realtime", "model": model,
        "expires_at": unix() + host.limits.life_s});
    let decoder = Input::new(INPUT_RATE_HZ);
    let mut turns = Turns { host, profile: hello.profile, out, session, model, decoder, running: None, over: false };
    turns.tell("session.created", json!({"session": turns.session})).await;
    while !turns.over {
        let next = tokio::select! {
            said = messages.recv() => Next::Said(said),
            made = made(&mut turns.running) => Next::Made(made),
        };
        match next {
            Next::Said(Some(super::Said::Text(text))) => {
                let (theirs, result) = match parse(&text, host.limits.message) {
                    Ok(Incoming { event_id, event }) => (event_id, turns.said(event).await),
                    Err(Rejected { event_id, refusal }) => (event_id, Err(refusal)),
                };
                if let Err(refusal) = result {
                    turns.refuse(refusal, theirs).await;
                }
            }
            Next::Said(Some(super::Said::Bye) | None) => return,
            Next::Made(event) => turns.made(event).await,
        }
    }
}

/// What the graph gives next; one [`Event::End`] once all of it has ended.
async fn made(running: &mut Option<Running>) -> Event<Payload> {
    let Some(running) = running else { return std::future::pending().await };
    std::future::poll_fn(|cx| {
        let mut at = 0;
        while at < running.outputs.len() {
            match running.outputs[at].poll_next(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(Event::End(_)) => drop(running.outputs.remove(at)),
                Poll::Ready(event) => return Poll::Ready(event),
            }
        }
        if running.outputs.is_empty() { Poll::Ready(Event::End(Terminal::End)) } else { Poll::Pending }
    })
    .await
}

impl Turns<'_> {
    async fn tell(&mut self, name: &str, fields: Value) {
        let mut event = match fields {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        event.insert("type".to_owned(), name.into());
        event.insert("event_id".to_owned(), event_id().into());
        self.send(Value::Object(event)).await;
    }
    async fn send(&mut self, event: Value) {
        self.over |= self.out.send(Out::Text(event.to_string().into())).await.is_err();
    }
    async fn refuse(&mut self, refusal: Refusal, theirs: Option<String>) {
        let envelope = Envelope { event_id: event_id(), server_event_seq: None };
        if let Some(event) = project(&ServerEvent::Error { refusal, event_id: theirs }, self.profile, &envelope) {
            self.send(event).await;
        }
    }
    async fn said(&mut self, event: ClientEvent) -> Result<(), Refusal> {
        match event {
            ClientEvent::SessionUpdate(given) => {
                let asked = given.get("model").and_then(Value::as_str);
                if let (Some(asked), Some(model)) = (asked, &self.model)
                    && asked != model
                {
                    let message = "this server serves one model; leave `model` out, or name that of session.created";
                    return Err(Refusal::new(Code::ModelUpdateUnsupported, message).about("model"));
                }
                self.tell("session.updated", json!({"session": self.session})).await;
            }
            ClientEvent::Append(append) => {
                let format = append.audio_format(AudioFormat::pcm16(INPUT_RATE_HZ), INPUT_RATE_HZ)?;
                let mut samples = Vec::new();
                let audio = append.audio.as_deref().unwrap_or_default();
                self.decoder
                    .push(format, audio, &mut samples)
                    .map_err(|e| Refusal::new(Code::BadAudio, e.to_string()).about("audio"))?;
                self.begin()?;
                self.hear(samples).await?;
            }
            ClientEvent::Commit(commit) => {
                self.begin()?;
                if commit.is_final {
                    let mut rest = Vec::new();
                    self.decoder.finish(&mut rest);
                    self.hear(rest).await?;
                    if let Some(mic) = self.running.as_mut().and_then(|r| r.mic.take()) {
                        mic.end();
                    }
                }
            }
            ClientEvent::Close { reason } => {
                self.over = true;
                let _ = self.out.send(Out::Close(1000, reason)).await;
            }
            _ => {
                let message =
                    "this graph is used turn by turn: it takes session.update, input_audio_buffer.append and .commit";
                return Err(Refusal::new(Code::UnknownEvent, message).about("type"));
            }
        }
        Ok(())
    }
    /// A generation, if none is under way.
    fn begin(&mut self) -> Result<(), Refusal> {
        if self.running.is_some() {
            return Ok(());
        }
        let mut session = self.host.graph.open().map_err(|e| match e {
            OpenError::Full { limit, .. } => Refusal::capacity(limit),
            e => Refusal::new(Code::EngineError, e.to_string()),
        })?;
        let ends = &self.host.ends;
        let mic = session.input(&ends.mic);
        // Nobody will ask or rule anything.
        let others: Vec<String> = session.inputs().map(str::to_owned).collect();
        others.iter().filter_map(|n| session.input(n)).for_each(Mic::end);
        let names = [&ends.heard, &ends.said, &ends.speaker];
        let outputs = names.into_iter().flatten().filter_map(|n| session.output(n)).collect();
        self.running = Some(Running { session, mic, outputs, text: String::new(), has_audio: false });
        Ok(())
    }
    /// Gives audio to the graph, and takes what it makes meanwhile.
    async fn hear(&mut self, samples: Vec<f32>) -> Result<(), Refusal> {
        let Some(mut mic) = self.running.as_mut().and_then(|r| r.mic.take()) else {
            let message = "the input has ended; wait for response.output_audio.done before the next";
            return Err(Refusal::new(Code::InputBackpressure, message));
        };
        if !samples.is_empty() {
            loop {
                let event = tokio::select! {
                    biased;
                    // It is over; what came of it is told by whoever asks next.
                    sent = mic.send(Pcm::mono(INPUT_RATE_HZ, samples.clone())) => { drop(sent); break }
                    event = made(&mut self.running) => event,
                };
                self.made(event).await;
                if self.running.is_none() {
                    return Ok(());
                }
            }
        }
        if let Some(running) = &mut self.running {
            running.mic = Some(mic);
        }
        Ok(())
    }
    async fn made(&mut self, event: Event<Payload>) {
        match event {
            Event::Data(_, Payload::Text(text)) if !text.trim().is_empty() => {
                let Some(running) = &mut self.running else { return };
                let apart = !running.text.is_empty() && !running.text.ends_with(' ') && !text.starts_with(' ');
                let delta = format!("{}{text}", if apart { " " } else { "" });
                running.text.push_str(&delta);
                self.tell("transcription.delta", json!({"delta": delta})).await;
            }
            Event::Data(_, Payload::Audio(pcm)) => {
                if let Some(running) = &mut self.running {
                    running.has_audio |= !pcm.is_empty();
                }
                for piece in pcm.f32().chunks(PIECE) {
                    let bytes: Vec<u8> = piece
                        .iter()
                        .flat_map(|s| ((s.clamp(-1.0, 1.0) * 32_768.0).round().min(32_767.0) as i16).to_le_bytes())
                        .collect();
                    let delta =
                        json!({"audio": STANDARD.encode(bytes), "format": "pcm16", "sample_rate_hz": pcm.rate()});
                    self.tell("response.output_audio.delta", delta).await;
                }
            }
            Event::Data(..) | Event::Fence(_) => {}
            Event::End(_) => self.ended().await,
        }
    }
    /// All of the generation has come.
    async fn ended(&mut self) {
        let Some(Running { session, text, has_audio, mic, .. }) = self.running.take() else { return };
        drop(mic);
        match session.wait().await {
            Ok(()) => {
                let usage = json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0});
                self.tell("transcription.done", json!({"text": text, "usage": usage})).await;
            }
            Err(e) => self.refuse(Refusal::new(Code::EngineError, e.to_string()), None).await,
        }
        self.tell("response.output_audio.done", json!({"has_audio": has_audio})).await;
    }
}
