//! `POST /v1/audio/transcriptions` and `/v1/audio/translations`: speech to text, whole or as it is recognised.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, body::Body};
use omni_flow::{MediaTime, Payload, Pcm, SampleType, Stamp};
use omni_flow_media::file::{AudioFile, Input as MediaInput};
use omni_flow_media::resample::Convert;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::form::{self, Form};
use super::job::Job;
use super::room::Held;
use super::run::{Fail, Role, Run};
use super::{Api, Shared, TRANSCRIPTIONS, TRANSLATIONS, Transcription, audio, stream};
use crate::door::HttpError;

/// Bytes of the texts of a request together.
const TEXTS: usize = 256 << 10;
/// Chunks decoded ahead, and how long each is.
const AHEAD: usize = 16;
const CHUNK_MS: u32 = 20;

/// How the text is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Text,
    Verbose,
    Srt,
    Vtt,
}

/// What is asked for.
struct Asked {
    format: Format,
    stream: bool,
    language: Option<String>,
    /// `transcribe` or `translate`.
    task: &'static str,
}

/// One utterance.
#[derive(Clone, Debug, PartialEq)]
struct Segment {
    /// Seconds.
    start: f64,
    end: f64,
    text: String,
}

pub(super) async fn transcribe(State(api): State<Api>, request: Request) -> Result<Response, HttpError> {
    handle(api, request, TRANSCRIPTIONS, "transcribe").await
}

/// Served only where the file says that its model translates (`serve.routes`).
pub(super) async fn translate(State(api): State<Api>, request: Request) -> Result<Response, HttpError> {
    handle(api, request, TRANSLATIONS, "translate").await
}

async fn handle(api: Api, request: Request, route: &'static str, task: &'static str) -> Result<Response, HttpError> {
    api.admit(request.headers())?;
    let name = if task == "translate" { "Translations API" } else { "Transcriptions API" };
    let ends = api.ends.transcription.clone().filter(|_| api.allowed(route));
    let ends = ends.ok_or_else(|| HttpError::not_bound(name))?;
    let job = api.job(route);
    match begin(&api, &ends, request, task).await {
        Ok((asked, hearing)) if asked.stream => streamed(&api, hearing, job).await,
        Ok((asked, hearing)) => whole(asked, hearing, job).await,
        Err(e) => {
            job.failed(&Fail::Refused(e.clone()));
            Err(e)
        }
    }
}

impl Asked {
    fn of(api: &Shared, form: &mut Form, task: &'static str) -> Result<Self, HttpError> {
        api.model(form.text("model")?.as_deref())?;
        let format = match form.text("response_format")?.as_deref() {
            None | Some("json") => Format::Json,
            Some("text") => Format::Text,
            Some("verbose_json") => Format::Verbose,
            Some("srt") => Format::Srt,
            Some("vtt") => Format::Vtt,
            Some(_) => {
                let message = "`response_format` must be json, text, verbose_json, srt or vtt";
                return Err(HttpError::bad(message).about("response_format"));
            }
        };
        if let Some(t) = form.text("temperature")?
            && !t.trim().parse::<f64>().is_ok_and(|t| (0.0..=1.0).contains(&t))
        {
            return Err(HttpError::bad("`temperature` must be a number from 0 to 1").about("temperature"));
        }
        for granularity in form.list("timestamp_granularities") {
            let message = match granularity.as_str() {
                "segment" if format == Format::Verbose => continue,
                "segment" => "`timestamp_granularities` need `response_format` verbose_json",
                "word" => "times of words need a node that aligns them; this graph has none, ask for `segment`",
                _ => "`timestamp_granularities` must be segment or word",
            };
            return Err(HttpError::bad(message).about("timestamp_granularities"));
        }
        let (stream, language) = (form.flag("stream")?, form.text("language")?);
        if language.as_ref().is_some_and(|l| l.len() > 32) {
            return Err(HttpError::bad("`language` must be a code such as `en`").about("language"));
        }
        Ok(Self { format, stream, language, task })
    }
}

/// A recording that is being heard.
struct Hearing {
    run: Run,
    /// Seconds of the whole recording, or why it could not be read to its end.
    read: oneshot::Receiver<Result<f64, String>>,
    segments: Vec<Segment>,
    /// The memory of the recording.
    _held: Held,
}

async fn begin(
    api: &Shared,
    ends: &Transcription,
    request: Request,
    task: &'static str,
) -> Result<(Asked, Hearing), HttpError> {
    let limits = &api.config.limits;
    let form = form::open(&api.clock, request).await?;
    let mut form =
        form::read(&api.clock, form, "file", limits.transcription_bytes, TEXTS, limits.body_pause, &api.room).await?;
    let asked = Asked::of(api, &mut form, task)?;
    let file = form.file.take().ok_or_else(|| HttpError::bad("`file` is missing").about("file"))?;
    // Looked into before a session is opened, on a thread for such work.
    let open = move || AudioFile::new(MediaInput::memory(file.bytes), "file");
    let opened = tokio::task::spawn_blocking(open).await.map_err(|_| HttpError::internal("the decoder gave up"))?;
    let file = opened.map_err(|e| unreadable(e.to_string()))?;
    let mut run = Run::open(&api.graph, &api.clock, limits.output_wait, &[(Some(&ends.heard), Role::Text)])?;
    let mut mic = run.input(&ends.mic)?;
    let sample = mic.kind().sample.unwrap_or(SampleType::F32);
    let to = (ends.rate, ends.channels, sample);
    let (tx, mut pieces) = mpsc::channel(AHEAD);
    let (told, read) = oneshot::channel();
    tokio::task::spawn_blocking(move || drop(told.send(decode(file, to, &tx))));
    run.feed(async move {
        while let Some(pcm) = pieces.recv().await {
            // Whatever became of it, the outputs tell.
            if !matches!(mic.send(pcm).await, Ok(omni_flow::Sent::Queued)) {
                break;
            }
        }
        mic.end();
    });
    Ok((asked, Hearing { run, read, segments: Vec::new(), _held: form.held }))
}

fn unreadable(why: String) -> HttpError {
    HttpError::bad(why).about("file")
}

/// Decodes, converts and cuts; gives the seconds. It ends early when nobody listens any more.
fn decode(
    mut file: AudioFile,
    (rate, channels, sample): (u32, u16, SampleType),
    out: &mpsc::Sender<Pcm>,
) -> Result<f64, String> {
    let spec = file.spec();
    let wide = usize::from(channels);
    let mut convert = Convert::new((spec.rate(), spec.channels()), (rate, wide)).map_err(|e| e.to_string())?;
    let size = (rate * CHUNK_MS / 1000).max(1) as usize * wide;
    let (mut raw, mut ready, mut frames) = (Vec::new(), Vec::new(), 0_u64);
    loop {
        raw.clear();
        let got = file.next(&mut raw).map_err(|e| e.to_string())?;
        frames += got as u64;
        if got == 0 {
            convert.flush(&mut ready);
        } else {
            convert.push(&raw, &mut ready);
        }
        let whole = if got == 0 { ready.len() } else { ready.len() / size * size };
        for piece in ready[..whole].chunks(size) {
            let pcm = audio::pcm(piece, rate, channels, sample).map_err(|e| e.to_string())?;
            if out.blocking_send(pcm).is_err() {
                return Ok(0.0);
            }
        }
        ready.drain(..whole);
        if got == 0 {
            return Ok(frames as f64 / f64::from(spec.rate().max(1)));
        }
    }
}

impl Hearing {
    /// The next utterance; `None` at the end.
    async fn next(&mut self) -> Result<Option<&Segment>, Fail> {
        while let Some((role, stamp, payload)) = self.run.next().await? {
            if let (Role::Text, Payload::Text(text)) = (role, payload)
                && !text.trim().is_empty()
            {
                self.segments.push(segment(&stamp, text.trim()));
                return Ok(self.segments.last());
            }
        }
        Ok(None)
    }
    /// Seconds of the recording, once the graph has come to its end.
    async fn seconds(&mut self) -> Result<f64, Fail> {
        match (&mut self.read).await {
            Ok(Ok(seconds)) => Ok((seconds * 1000.0).round() / 1000.0),
            Ok(Err(e)) => Err(Fail::Refused(unreadable(e))),
            Err(_) => Err(Fail::Odd("the decoder gave up".to_owned())),
        }
    }
    fn text(&self) -> String {
        let all: Vec<&str> = self.segments.iter().map(|s| s.text.as_str()).collect();
        all.join(" ")
    }
}

fn segment(stamp: &Stamp, text: &str) -> Segment {
    let at = |t: MediaTime| (t.as_secs_f64() * 1000.0).round() / 1000.0;
    Segment { start: at(stamp.pts), end: at(stamp.pts + stamp.len), text: text.to_owned() }
}

fn usage(seconds: f64) -> Value {
    json!({"type": "duration", "seconds": seconds})
}

async fn whole(asked: Asked, mut hearing: Hearing, job: Job) -> Result<Response, HttpError> {
    let heard = async {
        while hearing.next().await?.is_some() {}
        hearing.seconds().await
    };
    let seconds = match heard.await {
        Ok(seconds) => seconds,
        Err(fail) => {
            let error = fail.http();
            job.failed(&fail);
            return Err(error);
        }
    };
    job.done(false);
    let (text, segments) = (hearing.text(), &hearing.segments);
    let plain = |kind: &'static str, text: String| {
        let mut response = Body::from(text).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    };
    Ok(match asked.format {
        Format::Json => Json(json!({"text": text, "usage": usage(seconds)})).into_response(),
        Format::Text => plain("text/plain; charset=utf-8", text + "\n"),
        Format::Srt => plain("application/x-subrip", subtitles(segments, false)),
        Format::Vtt => plain("text/vtt", subtitles(segments, true)),
        Format::Verbose => {
            let numbered = segments.iter().enumerate();
            let all: Vec<Value> =
                numbered.map(|(id, s)| json!({"id": id, "start": s.start, "end": s.end, "text": s.text})).collect();
            // Undetermined, if nobody has said it: ISO 639-2.
            let language = asked.language.as_deref().unwrap_or("und");
            Json(json!({"task": asked.task, "language": language, "duration": seconds, "text": text, "segments": all,
                "words": [], "usage": usage(seconds)}))
            .into_response()
        }
    })
}

/// Subtitles: SubRip, or WebVTT.
fn subtitles(segments: &[Segment], vtt: bool) -> String {
    let point = if vtt { '.' } else { ',' };
    let at = |seconds: f64| {
        let ms = (seconds * 1000.0).round() as u64;
        let (h, m, s, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
        format!("{h:02}:{m:02}:{s:02}{point}{ms:03}")
    };
    let mut out = if vtt { "WEBVTT\n\n".to_owned() } else { String::new() };
    for (i, s) in segments.iter().enumerate() {
        if !vtt {
            out += &format!("{}\n", i + 1);
        }
        // An arrow would be a time line.
        out += &format!("{} --> {}\n{}\n\n", at(s.start), at(s.end), s.text.replace("-->", "→"));
    }
    out
}

/// The answer begins with the first utterance, or the end: until then a failure has a status of its own.
async fn streamed(api: &Shared, mut hearing: Hearing, job: Job) -> Result<Response, HttpError> {
    let first = async {
        match hearing.next().await? {
            Some(s) => Ok((Some(s.text.clone()), 0.0)),
            None => Ok((None, hearing.seconds().await?)),
        }
    };
    let (first, seconds) = match first.await {
        Ok(first) => first,
        Err(fail) => {
            let fail: Fail = fail;
            let error = fail.http();
            job.failed(&fail);
            return Err(error);
        }
    };
    let produce = move |writer: stream::Writer| async move {
        let (job, mut seconds) = (job, seconds);
        let sent = async {
            let mut next = first;
            let mut begun = false;
            while let Some(text) = next {
                let delta = if begun { format!(" {text}") } else { text };
                begun = true;
                writer.event(&json!({"type": "transcript.text.delta", "delta": delta}), false).await?;
                next = hearing.next().await?.map(|s| s.text.clone());
                if next.is_none() {
                    seconds = hearing.seconds().await?;
                }
            }
            let done = json!({"type": "transcript.text.done", "text": hearing.text(), "usage": usage(seconds)});
            writer.event(&done, false).await
        };
        let sent: Result<(), Fail> = sent.await;
        let told = match &sent {
            Ok(()) | Err(Fail::Gone | Fail::Stalled) => sent.is_ok(),
            Err(fail) => {
                let event = json!({"type": "error", "error": fail.http().body()});
                writer.event(&event, false).await.is_ok()
            }
        };
        if told {
            writer.finish();
        }
        match sent {
            Ok(()) => job.done(false),
            Err(fail) => job.failed(&fail),
        }
    };
    let body = stream::body(&api.clock, api.config.limits.write_stall, produce);
    let kind = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    Ok((kind, body).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtitles_have_their_times() {
        let segments = [
            Segment { start: 0.5, end: 61.2, text: "One --> two.".into() },
            Segment { start: 3661.0, end: 3662.0, text: "Three.".into() },
        ];
        let srt = "1\n00:00:00,500 --> 00:01:01,200\nOne → two.\n\n2\n01:01:01,000 --> 01:01:02,000\nThree.\n\n";
        assert_eq!(subtitles(&segments, false), srt);
        assert!(subtitles(&segments, true).starts_with("WEBVTT\n\n00:00:00.500 --> 00:01:01.200\nOne"));
    }
}
