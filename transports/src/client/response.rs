//! One response: its audio and words as they come, and its one end.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::Stream;
use omni_flow_media::g711;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::config::AudioFormat;
use super::error::ClientError;
use super::event::{Event, ResponseInfo, Usage};

/// A piece of audio.
#[derive(Clone, PartialEq, Eq)]
pub struct Audio {
    /// As it came.
    pub bytes: Vec<u8>,
    /// In this format.
    pub format: AudioFormat,
}

impl Audio {
    /// Its samples, full scale 1.0. Half a sample at the end is nothing.
    pub fn samples(&self) -> Vec<f32> {
        let scale = |s: i16| f32::from(s) / 32768.0;
        match self.format {
            AudioFormat::Pcm16(_) => {
                self.bytes.as_chunks::<2>().0.iter().map(|b| scale(i16::from_le_bytes(*b))).collect()
            }
            AudioFormat::Ulaw => self.bytes.iter().map(|b| scale(g711::mulaw_decode(*b))).collect(),
            AudioFormat::Alaw => self.bytes.iter().map(|b| scale(g711::alaw_decode(*b))).collect(),
        }
    }
    /// How long it lasts.
    pub fn duration(&self) -> std::time::Duration {
        let samples = self.bytes.len() / self.format.width();
        std::time::Duration::from_secs_f64(samples as f64 / f64::from(self.format.rate().max(1)))
    }
}

impl std::fmt::Debug for Audio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audio").field("bytes", &self.bytes.len()).field("format", &self.format).finish()
    }
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Whole.
    Completed,
    /// Interrupted.
    Cancelled,
    /// Cut, by a limit.
    Incomplete,
    /// Failed.
    Failed,
    /// Something that this client does not know.
    Other,
}

/// A function call of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name, for the answer.
    pub call_id: String,
    /// The function.
    pub name: String,
    /// Arguments, JSON text.
    pub arguments: String,
}

/// The end of a response that the server ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How.
    pub status: Status,
    /// Why, if it is not complete: the stock protocol's reason or error code.
    pub reason: Option<String>,
    /// What it said: the transcript if it was spoken, else its text.
    pub text: String,
    /// What it calls.
    pub calls: Vec<Call>,
    /// Tokens, where the server counts.
    pub usage: Option<Usage>,
}

/// A whole response.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// Its end.
    pub outcome: Outcome,
    /// Its audio that was not taken before, in pieces.
    pub audio: Vec<Audio>,
}

#[derive(Default)]
struct State {
    audio: VecDeque<Audio>,
    transcript: String,
    text: String,
    /// Bytes of either that were given out.
    read: [usize; 2],
    calls: Vec<Call>,
    /// Bytes held, and held at most.
    held: usize,
    end: Option<Result<Outcome, ClientError>>,
}

impl State {
    /// What it says: a spoken answer's transcript goes before its text.
    fn words(&self) -> &str {
        if self.transcript.is_empty() { &self.text } else { &self.transcript }
    }
}

struct Shared {
    id: String,
    state: Mutex<State>,
    changed: Notify,
}

impl Shared {
    async fn until<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(ready) = ready(&mut self.state.lock()) {
                return ready;
            }
            changed.await;
        }
    }
    fn end(&self, end: Result<Outcome, ClientError>) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            state.end = Some(end);
            drop(state);
            self.changed.notify_waiters();
        }
    }
}

/// One response as it comes. Every wait here ends: the server ends a response, or its connection's end does, or its
/// silence ([`Timeouts::response`](super::options::Timeouts)).
///
/// Audio is kept until it is taken, up to [`Limits::response`](super::options::Limits); beyond that the response ends with
/// [`ClientError::TooLarge`]. Dropped, nothing is kept any more; the server is not told ([`Command::cancel`](super::Command)
/// tells it).
pub struct Response {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response").field("id", &self.shared.id).finish_non_exhaustive()
    }
}

impl Response {
    /// Its name.
    pub fn id(&self) -> &str {
        &self.shared.id
    }
    /// The next piece of audio; `None`: no more comes.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub async fn next_audio(&mut self) -> Option<Audio> {
        let next = |s: &mut State| match s.audio.pop_front() {
            Some(audio) => {
                s.held -= audio.bytes.len();
                Some(Some(audio))
            }
            None => s.end.is_some().then_some(None),
        };
        self.shared.until(next).await
    }
    /// The next words; `None`: no more come.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub async fn next_text(&mut self) -> Option<String> {
        let next = |s: &mut State| {
            // Where both come, they say the same: the one that was begun is read on.
            let written = s.read[1] > 0 || s.transcript.is_empty();
            let words = if written { &s.text } else { &s.transcript };
            let read = &mut s.read[usize::from(written)];
            match words.get(*read..).filter(|t| !t.is_empty()) {
                Some(new) => {
                    *read += new.len();
                    Some(Some(new.to_owned()))
                }
                None => s.end.is_some().then_some(None),
            }
        };
        self.shared.until(next).await
    }
    /// All words that have come, read before or not.
    pub fn text(&self) -> String {
        self.shared.state.lock().words().to_owned()
    }
    /// Its end. Asked again, it is the same.
    ///
    /// # Errors
    /// It has none: the connection ended, it was silent for too long, or larger than it may be. What the server calls
    /// failed is an [`Outcome`].
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub async fn done(&mut self) -> Result<Outcome, ClientError> {
        self.shared.until(|s| s.end.clone()).await
    }
    /// Waits for its end, and gives it with the audio that was not taken.
    ///
    /// # Errors
    /// As [`Response::done`].
    ///
    /// # Cancel safety
    /// Dropped while waiting, the response is dropped.
    pub async fn collect(mut self) -> Result<Whole, ClientError> {
        let outcome = self.done().await?;
        let audio = std::mem::take(&mut self.shared.state.lock().audio).into();
        Ok(Whole { outcome, audio })
    }
    /// [`Response::next_audio`] as a stream.
    pub fn audio(&mut self) -> impl Stream<Item = Audio> + '_ {
        futures_util::stream::unfold(self, |r| async move { r.next_audio().await.map(|a| (a, r)) })
    }
    /// [`Response::next_text`] as a stream.
    pub fn texts(&mut self) -> impl Stream<Item = String> + '_ {
        futures_util::stream::unfold(self, |r| async move { r.next_text().await.map(|t| (t, r)) })
    }
}

/// Where a response comes in. Dropped, the response has ended.
pub(super) struct Collector {
    shared: Arc<Shared>,
    limit: usize,
}

impl Collector {
    /// A response and where it comes in; at most `limit` bytes are held.
    pub(super) fn new(id: &str, limit: usize) -> (Self, Response) {
        let (state, changed) = (Mutex::default(), Notify::new());
        let shared = Arc::new(Shared { id: id.to_owned(), state, changed });
        (Self { shared: shared.clone(), limit }, Response { shared })
    }
    /// Takes an event of it; audio is in `format`. True: nothing follows.
    pub(super) fn take(&self, event: &Event, format: AudioFormat) -> bool {
        if let Event::ResponseDone { response } = event {
            self.done(response);
            return true;
        }
        // Nobody would read it.
        if Arc::strong_count(&self.shared) == 1 {
            return false;
        }
        let mut state = self.shared.state.lock();
        if state.end.is_some() {
            return false;
        }
        match event {
            Event::AudioDelta { audio, sample_rate_hz, .. } if !audio.is_empty() => {
                let format = match (format, sample_rate_hz) {
                    (AudioFormat::Pcm16(_), Some(rate)) if *rate > 0 => AudioFormat::Pcm16(*rate),
                    (format, _) => format,
                };
                state.held += audio.len();
                if state.held <= self.limit {
                    state.audio.push_back(Audio { bytes: audio.clone(), format });
                }
            }
            Event::TranscriptDelta { delta, .. } => {
                state.held += delta.len();
                state.transcript.push_str(delta);
            }
            Event::TextDelta { delta, .. } => {
                state.held += delta.len();
                state.text.push_str(delta);
            }
            Event::OutputItemDone { item, .. } if item.kind == "function_call" => {
                let of = |field: &Option<String>| field.clone().unwrap_or_default();
                let call = Call { call_id: of(&item.call_id), name: of(&item.name), arguments: of(&item.arguments) };
                state.held += call.call_id.len() + call.name.len() + call.arguments.len();
                state.calls.push(call);
            }
            _ => return false,
        }
        let over = state.held > self.limit;
        drop(state);
        if over {
            self.fail(ClientError::TooLarge { what: "a response", limit: self.limit });
        } else {
            self.shared.changed.notify_waiters();
        }
        false
    }
    fn done(&self, response: &ResponseInfo) {
        let status = match response.status.as_str() {
            "completed" => Status::Completed,
            "cancelled" => Status::Cancelled,
            "incomplete" => Status::Incomplete,
            "failed" => Status::Failed,
            _ => Status::Other,
        };
        let details = response.status_details.as_ref();
        let reason = details.and_then(|d| d["reason"].as_str().or(d["error"]["code"].as_str()));
        let outcome = {
            let mut state = self.shared.state.lock();
            // A server that streams no words may still have said them.
            if state.words().is_empty() {
                state.text = response.output.iter().map(super::event::Item::words).collect();
            }
            Outcome {
                status,
                reason: reason.map(str::to_owned),
                text: state.words().to_owned(),
                calls: std::mem::take(&mut state.calls),
                usage: response.usage,
            }
        };
        self.shared.end(Ok(outcome));
    }
    /// It ends without an end of its own; nothing, if it has ended.
    pub(super) fn fail(&self, error: ClientError) {
        self.shared.end(Err(error));
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.fail(ClientError::Ended);
    }
}
