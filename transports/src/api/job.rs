//! What is counted of one request.

use std::sync::Arc;
use std::time::Duration;

use metrics::{counter, gauge, histogram};
use omni_flow::{Clock, Mono};

use super::run::Fail;
use crate::metrics::THRESHOLDS_MS;

/// A request under way. Dropped before it has ended, its client has gone.
pub(super) struct Job {
    graph: Arc<str>,
    route: &'static str,
    clock: Clock,
    begun: Mono,
    /// Counted as a stream of speech.
    speech: bool,
    ended: bool,
    audio: Option<Audio>,
}

/// What is counted of its audio.
struct Audio {
    node: String,
    streamed: bool,
    first: Option<Mono>,
    last: Mono,
    /// Seconds of audio so far, and the worst that it was behind a listener who plays from the first.
    seconds: f64,
    deficit: f64,
    frames: u64,
}

impl Job {
    pub(super) fn begin(graph: &Arc<str>, route: &'static str, clock: &Clock) -> Self {
        gauge!("omni_flow_requests_running", "graph" => graph.to_string()).increment(1);
        let begun = clock.now();
        Self { graph: graph.clone(), route, clock: clock.clone(), begun, speech: false, ended: false, audio: None }
    }
    /// It is to have audio, made by `node`.
    pub(super) fn speaks(&mut self, node: &str, streamed: bool, speech: bool) {
        let node = node.to_owned();
        let (first, last, seconds, deficit, frames) = (None, self.begun, 0.0, 0.0, 0);
        self.audio = Some(Audio { node, streamed, first, last, seconds, deficit, frames });
        self.speech = speech && streamed;
    }
    /// So many samples per channel are handed out.
    pub(super) fn frames(&mut self, frames: usize, rate: u32) {
        let now = self.clock.now();
        let (begun, graph) = (self.begun, self.graph.clone());
        let Some(a) = self.audio.as_mut().filter(|_| frames > 0 && rate > 0) else { return };
        if a.first.is_none() && a.streamed {
            let ttfp = now.since(begun).as_secs_f64();
            histogram!("omni_flow_audio_ttfp_seconds",
                "graph" => graph.to_string(), "node" => a.node.clone(), "replica" => "0")
            .record(ttfp);
        }
        let first = *a.first.get_or_insert(now);
        a.deficit = a.deficit.max(now.since(first).as_secs_f64() - a.seconds);
        a.seconds += frames as f64 / f64::from(rate);
        a.frames += frames as u64;
        a.last = now;
        counter!("omni_flow_audio_frames_total",
            "graph" => graph.to_string(), "node" => a.node.clone(), "replica" => "0")
        .increment(frames as u64);
    }
    /// Tokens, where the model counts them.
    pub(super) fn tokens(&self, prompt: u64, answer: u64) {
        counter!("omni_flow_prompt_tokens_total", "graph" => self.graph.to_string()).increment(prompt);
        counter!("omni_flow_generation_tokens_total", "graph" => self.graph.to_string()).increment(answer);
    }
    /// It has its whole answer.
    pub(super) fn done(mut self, length: bool) {
        self.finish(if length { "length" } else { "stop" });
        let Some(a) = &self.audio else { return };
        let labels = || [("graph", self.graph.to_string()), ("node", a.node.clone()), ("replica", "0".to_owned())];
        if a.seconds > 0.0 {
            histogram!("omni_flow_audio_duration_seconds", &labels()).record(a.seconds);
            histogram!("omni_flow_audio_rtf", &labels()).record(a.last.since(self.begun).as_secs_f64() / a.seconds);
            if a.streamed {
                histogram!("omni_flow_audio_underrun_seconds", &labels()).record(a.deficit);
                for ms in THRESHOLDS_MS.into_iter().filter(|ms| a.deficit <= f64::from(*ms) / 1000.0) {
                    counter!("omni_flow_audio_continuity_ok_total", "graph" => self.graph.to_string(),
                        "node" => a.node.clone(), "replica" => "0", "threshold_ms" => ms.to_string())
                    .increment(1);
                }
            }
        }
        if self.speech {
            counter!("omni_flow_speech_stream_completed_total", "graph" => self.graph.to_string()).increment(1);
        }
    }
    /// It has not.
    pub(super) fn failed(mut self, fail: &Fail) {
        if let (Fail::NoAudio, Some(a)) = (fail, &self.audio) {
            counter!("omni_flow_audio_skipped_requests_total", "graph" => self.graph.to_string(),
                "node" => a.node.clone(), "replica" => "0", "reason" => "no_audio_data")
            .increment(1);
        }
        let aborted = matches!(fail, Fail::Gone);
        self.broken(fail.reason(), aborted, if aborted { "closed" } else { "error" });
    }
    fn broken(&mut self, reason: &'static str, aborted: bool, stream: &'static str) {
        self.finish(if aborted { "abort" } else { "error" });
        counter!("omni_flow_requests_failed_total", "graph" => self.graph.to_string(), "reason" => reason).increment(1);
        if self.speech {
            counter!("omni_flow_speech_stream_aborted_total", "graph" => self.graph.to_string(), "reason" => stream)
                .increment(1);
        }
    }
    fn finish(&mut self, reason: &'static str) {
        self.ended = true;
        gauge!("omni_flow_requests_running", "graph" => self.graph.to_string()).decrement(1);
        counter!("omni_flow_requests_total", "graph" => self.graph.to_string(), "finished_reason" => reason)
            .increment(1);
        let took: Duration = self.clock.now().since(self.begun);
        histogram!("omni_flow_request_duration_seconds", "graph" => self.graph.to_string(), "route" => self.route)
            .record(took.as_secs_f64());
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.ended {
            self.broken("client_disconnect", true, "closed");
        }
    }
}
