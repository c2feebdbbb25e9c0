//! The families of metrics of the front doors, in one list; they go through the `metrics` facade to whatever recorder the
//! program installs.
//!
//! No label tells of one request: no id, no text, no address, and of voices only that they exist. What is not known is no
//! sample.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// What a family is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricType {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Observations in these buckets.
    Histogram(&'static [f64]),
}

/// One metric family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricType,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub meaning: &'static str,
}

/// Buckets of durations of whole requests, seconds.
pub const SECONDS: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0];
/// Buckets of short durations, seconds.
pub const FAST: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];
/// Buckets of real-time factors.
pub const RTF: &[f64] = &[0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.25, 1.5, 2.0, 5.0, 10.0];

const AUDIO: &[&str] = &["graph", "node", "replica"];

const fn family(
    name: &'static str,
    kind: MetricType,
    labels: &'static [&'static str],
    meaning: &'static str,
) -> Family {
    Family { name, kind, labels, meaning }
}

use MetricType::{Counter, Gauge, Histogram};

/// All families of the front doors.
pub const LIST: &[Family] = &[
    family("omni_flow_requests_running", Gauge, &["graph"], "requests that have a session of the graph"),
    family("omni_flow_requests_total", Counter, &["graph", "finished_reason"], "requests that ended"),
    family("omni_flow_requests_failed_total", Counter, &["graph", "reason"], "requests without their whole answer"),
    family(
        "omni_flow_request_duration_seconds",
        Histogram(SECONDS),
        &["graph", "route"],
        "from the arrival of a request to the end of its answer",
    ),
    family("omni_flow_prompt_tokens_total", Counter, &["graph"], "tokens of prompts, where the model counts them"),
    family("omni_flow_generation_tokens_total", Counter, &["graph"], "tokens of answers, where the model counts them"),
    family("omni_flow_http_requests_total", Counter, &["route", "status"], "HTTP responses that began"),
    family(
        "omni_flow_audio_ttfp_seconds",
        Histogram(SECONDS),
        AUDIO,
        "from the arrival of a streamed request to its first audio",
    ),
    family("omni_flow_audio_duration_seconds", Histogram(SECONDS), AUDIO, "length of the audio of a request"),
    family("omni_flow_audio_rtf", Histogram(RTF), AUDIO, "time that a request took by the length of its audio"),
    family("omni_flow_audio_frames_total", Counter, AUDIO, "samples per channel given out"),
    family(
        "omni_flow_audio_underrun_seconds",
        Histogram(FAST),
        AUDIO,
        "worst lateness of a whole stream's audio for a listener who plays from its first",
    ),
    family(
        "omni_flow_audio_continuity_ok_total",
        Counter,
        &["graph", "node", "replica", "threshold_ms"],
        "whole streams that were never later than the threshold",
    ),
    family(
        "omni_flow_audio_skipped_requests_total",
        Counter,
        &["graph", "node", "replica", "reason"],
        "audio was asked for and none came",
    ),
    family("omni_flow_speech_stream_completed_total", Counter, &["graph"], "streams of speech that ended well"),
    family("omni_flow_speech_stream_aborted_total", Counter, &["graph", "reason"], "streams of speech that did not"),
];

/// Values of `finished_reason`.
pub const FINISHED: [&str; 4] = ["stop", "length", "abort", "error"];
/// Values of `reason` of requests that failed.
pub const FAILED: [&str; 6] = ["client_abort", "client_disconnect", "stage_error", "timeout", "overload", "unknown"];
/// Values of `reason` of streams of speech.
pub const ABORTED: [&str; 4] = ["cancelled", "closed", "engine_dead", "error"];
/// Values of `threshold_ms`.
pub const THRESHOLDS_MS: [u16; 3] = [50, 100, 200];

/// Describes all families to the recorder, and begins the counters of `graph` at zero.
pub fn describe(graph: &str) {
    for f in LIST {
        let unit = if f.name.ends_with("_seconds") { Unit::Seconds } else { Unit::Count };
        match f.kind {
            Counter => describe_counter!(f.name, unit, f.meaning),
            Gauge => describe_gauge!(f.name, unit, f.meaning),
            Histogram(_) => describe_histogram!(f.name, unit, f.meaning),
        }
    }
    let graph = || graph.to_owned();
    for reason in FINISHED {
        metrics::counter!("omni_flow_requests_total", "graph" => graph(), "finished_reason" => reason).increment(0);
    }
    for reason in FAILED {
        metrics::counter!("omni_flow_requests_failed_total", "graph" => graph(), "reason" => reason).increment(0);
    }
    for reason in ABORTED {
        metrics::counter!("omni_flow_speech_stream_aborted_total", "graph" => graph(), "reason" => reason).increment(0);
    }
    metrics::counter!("omni_flow_speech_stream_completed_total", "graph" => graph()).increment(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_are_and_no_label_tells_of_a_person() {
        let labels = ["graph", "node", "replica", "reason", "finished_reason", "route", "status", "threshold_ms"];
        for (i, f) in LIST.iter().enumerate() {
            assert!(f.name.starts_with("omni_flow_") && !LIST[..i].iter().any(|o| o.name == f.name), "{}", f.name);
            assert_eq!(f.name.ends_with("_total"), f.kind == Counter, "{}", f.name);
            assert!(f.labels.iter().all(|l| labels.contains(l)), "{}", f.name);
        }
    }
}
