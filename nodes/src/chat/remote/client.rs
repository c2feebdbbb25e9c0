//! The client of an OpenAI-compatible server.

use std::{collections::VecDeque, fmt, time::Duration};

use reqwest::{
    Client, Response, Url,
    header::{ACCEPT, RETRY_AFTER},
    redirect::Policy,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::{RemoteError, SseParser, Stage, calls::CallAssembler};
use crate::chat::{
    event::CallEvent,
    message::Message,
    sampling::Sampling,
    slot::{FinishReason, Usage},
    stop::StopMatcher,
    tool::{Tool, ToolChoice},
};

/// Most bytes of an error's body that are read.
const BODY: usize = 2048;

/// Where and how to ask.
#[derive(Debug, Clone)]
pub struct RemoteConfig {
    /// What stands before `/chat/completions`; without a path `/v1` is added.
    pub base_url: String,
    /// The model's name on the server.
    pub model: String,
    /// Name of the environment variable that holds the key; none: no key is sent.
    pub api_key_env: Option<String>,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait from a request to its first event.
    pub first_token_timeout: Duration,
    /// Longest wait between two events.
    pub idle_timeout: Duration,
    /// Longest line of the stream, in bytes.
    pub max_line_bytes: usize,
    /// Further tries when the server cannot be reached, is overloaded or fails before the first token.
    pub retries: u32,
    /// Wait before the first retry; doubles. A `Retry-After` up to eight times this is honoured instead.
    pub retry_delay: Duration,
    /// Asks for the token counts (`stream_options.include_usage`), which a few servers refuse.
    pub include_usage: bool,
}

impl RemoteConfig {
    /// The defaults for a server and a model.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            api_key_env: None,
            connect_timeout: Duration::from_secs(5),
            first_token_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(15),
            max_line_bytes: 1 << 20,
            retries: 2,
            retry_delay: Duration::from_millis(250),
            include_usage: true,
        }
    }
}

/// A server and a model on it. Cheap to clone; connections are shared.
#[derive(Clone)]
pub struct RemoteChat {
    config: RemoteConfig,
    url: Url,
    key: Option<String>,
    http: Client,
}

impl fmt::Debug for RemoteChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteChat").field("config", &self.config).finish_non_exhaustive()
    }
}

/// What the server says next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteEvent {
    /// More of the answer; never empty.
    Text(String),
    /// A piece or the end of a tool call. Its id is missing where the server gave none.
    Call(CallEvent),
    /// The answer is over.
    Done {
        /// Why.
        reason: FinishReason,
        /// Token counts, if the server told them.
        usage: Option<Usage>,
    },
}

impl RemoteChat {
    /// Checks the configuration and reads the key; connects to nothing.
    ///
    /// # Errors
    /// [`RemoteError::Config`], [`RemoteError::MissingKey`].
    pub fn new(config: RemoteConfig) -> Result<Self, RemoteError> {
        Self::with_env(config, |name| std::env::var(name).ok())
    }
    /// The same, with the key from an environment of the caller's.
    ///
    /// # Errors
    /// As [`RemoteChat::new`].
    pub fn with_env(config: RemoteConfig, env: impl Fn(&str) -> Option<String>) -> Result<Self, RemoteError> {
        let url = address(&config.base_url).map_err(RemoteError::Config)?;
        let key = match &config.api_key_env {
            None => None,
            Some(name) => match env(name) {
                Some(key) if !key.trim().is_empty() => Some(key.trim().to_string()),
                _ => return Err(RemoteError::MissingKey(name.clone())),
            },
        };
        // No redirects: the key goes to the host that was named and nowhere else.
        let http = Client::builder()
            .connect_timeout(config.connect_timeout)
            .redirect(Policy::none())
            .build()
            .map_err(|e| RemoteError::Config(format!("the HTTP client cannot be made: {e}")))?;
        Ok(Self { config, url, key, http })
    }

    /// Asks, and returns when the first event of the answer is there.
    ///
    /// # Errors
    /// [`RemoteError`], after the configured retries where it is transient.
    ///
    /// # Cancel safety
    /// Dropping the future ends the request; the server may have seen it.
    pub async fn stream(&self, messages: &[Message], sampling: &Sampling) -> Result<RemoteStream, RemoteError> {
        self.stream_with(messages, &[], &ToolChoice::Auto, sampling).await
    }

    /// The same, for an answer that may call `tools`.
    ///
    /// # Errors
    /// As [`RemoteChat::stream`].
    ///
    /// # Cancel safety
    /// As [`RemoteChat::stream`].
    pub async fn stream_with(
        &self,
        messages: &[Message],
        tools: &[Tool],
        choice: &ToolChoice,
        sampling: &Sampling,
    ) -> Result<RemoteStream, RemoteError> {
        let mut body = self.body(messages, sampling);
        if !tools.is_empty() {
            body["tools"] = json!(tools);
            body["tool_choice"] = json!(choice);
        }
        let mut tries = 0;
        loop {
            let error = match self.attempt(&body, sampling).await {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            let patience = self.config.retry_delay.saturating_mul(8);
            let delay = match &error {
                RemoteError::RateLimited { retry_after: Some(wait), .. } if *wait > patience => return Err(error),
                RemoteError::RateLimited { retry_after: Some(wait), .. } => *wait,
                _ => self.config.retry_delay.saturating_mul(1 << tries.min(8)),
            };
            if !error.transient() || tries >= self.config.retries {
                return Err(error);
            }
            tries += 1;
            tracing::debug!(%error, tries, "asking the chat server again");
            sleep(delay).await;
        }
    }

    async fn attempt(&self, body: &Value, sampling: &Sampling) -> Result<RemoteStream, RemoteError> {
        let limit = self.config.first_token_timeout;
        let deadline = Instant::now() + limit;
        let late = |_| RemoteError::Timeout { stage: Stage::FirstToken, after: limit };
        let mut request = self.http.post(self.url.clone()).header(ACCEPT, "text/event-stream").json(body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let response = timeout_at(deadline, request.send()).await.map_err(late)?.map_err(|e| self.unreachable(&e))?;
        if !response.status().is_success() {
            return Err(timeout_at(deadline, self.refusal(response)).await.map_err(late)?);
        }
        let mut stream = RemoteStream {
            response: Some(response),
            parser: SseParser::new(self.config.max_line_bytes),
            stop: StopMatcher::new(&sampling.stop),
            calls: CallAssembler::default(),
            ready: VecDeque::new(),
            reason: None,
            usage: None,
            idle: self.config.idle_timeout,
        };
        while stream.ready.is_empty() {
            match timeout_at(deadline, stream.more()).await.map_err(late)? {
                Ok(()) => {}
                Err(RemoteError::Unreachable { why, .. }) => {
                    return Err(RemoteError::Unreachable { url: self.url.to_string(), why });
                }
                Err(e) => return Err(e),
            }
        }
        Ok(stream)
    }

    fn body(&self, messages: &[Message], s: &Sampling) -> Value {
        let mut body = json!({
            "model": self.config.model,
            "messages": messages,
            "stream": true,
            "max_tokens": s.max_tokens,
            "temperature": s.temperature,
            "seed": s.seed,
        });
        let mut set = |key: &str, value: Value| body[key] = value;
        if self.config.include_usage {
            set("stream_options", json!({"include_usage": true}));
        }
        if !s.stop.is_empty() {
            // The protocol takes four; the others are found here.
            set("stop", json!(s.stop.iter().filter(|s| !s.is_empty()).take(4).collect::<Vec<_>>()));
        }
        if s.top_p < 1.0 {
            set("top_p", json!(s.top_p));
        }
        // Not in the original protocol, so sent only when asked for.
        if s.top_k > 0 {
            set("top_k", json!(s.top_k));
        }
        if s.min_p > 0.0 {
            set("min_p", json!(s.min_p));
        }
        if s.repetition_penalty != 1.0 {
            set("repetition_penalty", json!(s.repetition_penalty));
        }
        body
    }

    fn unreachable(&self, e: &reqwest::Error) -> RemoteError {
        RemoteError::Unreachable { url: self.url.to_string(), why: causes(e) }
    }

    async fn refusal(&self, mut response: Response) -> RemoteError {
        let status = response.status().as_u16();
        let header = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok());
        let retry_after = header.and_then(|v| v.trim().parse().ok()).map(Duration::from_secs);
        let mut bytes = Vec::new();
        while let Ok(Some(piece)) = response.chunk().await {
            bytes.extend_from_slice(&piece[..piece.len().min(BODY - bytes.len())]);
            if bytes.len() >= BODY {
                break;
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let parsed: Option<Value> = serde_json::from_str(&text).ok();
        let said = parsed.as_ref().and_then(|v| v.pointer("/error/message").or(v.get("message"))?.as_str());
        // It is shown on terminals: a server must not control them.
        let mut body = said.unwrap_or(text.trim()).replace(|c: char| c.is_control(), " ");
        if let Some(key) = &self.key {
            body = body.replace(key.as_str(), "[key]");
        }
        let low = text.to_lowercase();
        let too_long = ["context_length", "context length", "context size", "too many tokens", "prompt is too long"];
        let url = self.url.to_string();
        match status {
            401 | 403 => RemoteError::Unauthorized { url, status },
            404 => RemoteError::NotFound { url, model: self.config.model.clone(), body },
            400 | 413 | 422 if too_long.iter().any(|t| low.contains(t)) => RemoteError::ContextLength { body },
            429 => RemoteError::RateLimited { retry_after, body },
            500.. => RemoteError::Server { status, body },
            _ => RemoteError::Refused { status, body },
        }
    }
}

/// An answer on its way. Dropping it ends the request.
pub struct RemoteStream {
    response: Option<Response>,
    parser: SseParser,
    stop: StopMatcher,
    calls: CallAssembler,
    ready: VecDeque<RemoteEvent>,
    reason: Option<FinishReason>,
    usage: Option<Usage>,
    idle: Duration,
}

impl fmt::Debug for RemoteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteStream").field("ready", &self.ready).finish_non_exhaustive()
    }
}

impl RemoteStream {
    /// The next event; `None` after [`RemoteEvent::Done`] or an error.
    ///
    /// # Errors
    /// [`RemoteError::Timeout`], [`RemoteError::Malformed`], [`RemoteError::Server`] for an error inside the stream.
    ///
    /// # Cancel safety
    /// No event is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<Option<RemoteEvent>, RemoteError> {
        let deadline = Instant::now() + self.idle;
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.response.is_none() {
                return Ok(None);
            }
            let result = match timeout_at(deadline, self.more()).await {
                Ok(Err(RemoteError::Unreachable { why, .. })) => {
                    Err(RemoteError::Malformed { why: format!("the connection broke in the middle: {why}") })
                }
                Ok(result) => result,
                Err(_) => Err(RemoteError::Timeout { stage: Stage::NextToken, after: self.idle }),
            };
            if let Err(e) = result {
                self.response = None;
                return Err(e);
            }
        }
    }

    /// Reads one piece of the body and puts what it completes into `ready`.
    async fn more(&mut self) -> Result<(), RemoteError> {
        let Some(response) = &mut self.response else { return Ok(()) };
        let broken = |why: String| RemoteError::Unreachable { url: String::new(), why };
        let piece = response.chunk().await.map_err(|e| broken(causes(&e)))?;
        let malformed = |e: super::SseError| RemoteError::Malformed { why: e.to_string() };
        let mut events = Vec::new();
        match &piece {
            Some(bytes) => self.parser.push(bytes, &mut events).map_err(malformed)?,
            None => self.parser.finish(&mut events).map_err(malformed)?,
        }
        for event in events {
            if self.response.is_some() {
                self.event(&event)?;
            }
        }
        match (piece, &self.response, self.reason) {
            (None, Some(_), Some(_)) => self.done(),
            (None, Some(_), None) if self.ready.is_empty() => {
                return Err(broken("the stream ended without an end".into()));
            }
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, data: &str) -> Result<(), RemoteError> {
        if data.trim() == "[DONE]" {
            self.done();
            return Ok(());
        }
        if data.trim().is_empty() {
            return Ok(());
        }
        let bad = |why: String| RemoteError::Malformed { why };
        let value: Value = serde_json::from_str(data).map_err(|e| bad(format!("an event is not JSON: {e}")))?;
        if let Some(error) = value.get("error").filter(|e| !e.is_null()) {
            let body = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_string);
            return Err(RemoteError::Server { status: 200, body: body.chars().take(BODY).collect() });
        }
        if !value.is_object() {
            return Err(bad("an event is not an object".into()));
        }
        if let Some(usage) = value.get("usage").filter(|u| u.is_object()) {
            let count = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0) as usize;
            self.usage = Some(Usage {
                prompt: count("/prompt_tokens"),
                cached: count("/prompt_tokens_details/cached_tokens"),
                completion: count("/completion_tokens"),
            });
        }
        let Some(choice) = value.pointer("/choices/0") else { return Ok(()) };
        if let Some(text) = choice.pointer("/delta/content").and_then(Value::as_str) {
            let text = self.stop.push(text);
            if !text.is_empty() {
                self.ready.push_back(RemoteEvent::Text(text));
            }
        }
        if let Some(pieces) = choice.pointer("/delta/tool_calls") {
            let mut told = VecDeque::new();
            self.calls.push(pieces, &mut told).map_err(bad)?;
            self.ready.extend(told.into_iter().map(RemoteEvent::Call));
        }
        match choice.get("finish_reason").and_then(Value::as_str) {
            None => {}
            Some("length") => self.reason = Some(FinishReason::Length),
            Some(_) => self.reason = Some(FinishReason::End),
        }
        if self.stop.hit() {
            self.done();
        }
        Ok(())
    }

    fn done(&mut self) {
        self.response = None;
        let rest = self.stop.finish();
        if !rest.is_empty() {
            self.ready.push_back(RemoteEvent::Text(rest));
        }
        let mut ends = VecDeque::new();
        self.calls.finish(&mut ends);
        self.ready.extend(ends.into_iter().map(RemoteEvent::Call));
        let reason = if self.stop.hit() { FinishReason::Stop } else { self.reason.unwrap_or(FinishReason::End) };
        self.ready.push_back(RemoteEvent::Done { reason, usage: self.usage });
    }
}

/// Where a `base-url` leads.
///
/// # Errors
/// Why it leads nowhere, in words.
pub(crate) fn address(base_url: &str) -> Result<Url, String> {
    let mut url = Url::parse(base_url).map_err(|e| format!("`base-url` is no address: {e}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("`base-url` must begin with http:// or https:// and name a host".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("`base-url` holds credentials; put the key into a variable and name it in `api-key-env`".into());
    }
    let path = match url.path().trim_end_matches('/') {
        "" => "/v1".to_string(),
        path => path.to_string(),
    };
    url.set_path(&format!("{path}/chat/completions"));
    Ok(url)
}

/// An error with its causes, without the address (which is named beside it).
fn causes(e: &reqwest::Error) -> String {
    let mut out = String::new();
    let mut next: Option<&dyn std::error::Error> = std::error::Error::source(e);
    while let Some(e) = next {
        if !out.is_empty() {
            out.push_str(": ");
        }
        out.push_str(&e.to_string());
        next = e.source();
    }
    if out.is_empty() { "the request failed".into() } else { out }
}
