//! Events as the text that a client is sent.
//!
//! Pieces of answers are nearly all that a session sends, so they are written at once, without an object in between; what they
//! say is what [`project`] says.

use serde::Serialize;

use super::{Envelope, name, project, told};
use crate::realtime::wire::profile::Profile;
use crate::realtime::wire::server::ServerEvent;
use crate::realtime::wire::server::response::{AudioDelta, Mark};
use crate::realtime::wire::server::session::Playback;

/// A piece: where it belongs, and what it brings.
#[derive(Serialize)]
struct Piece<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    event_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_event_seq: Option<u64>,
    response_id: &'a str,
    item_id: &'a str,
    output_index: u32,
    content_index: u32,
    delta: &'a str,
    #[serde(flatten)]
    audio: Option<Audio<'a>>,
}

/// What only audio has.
#[derive(Serialize)]
struct Audio<'a> {
    format: &'a str,
    sample_rate_hz: u32,
    metadata: Metadata<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    session_id: &'a str,
    epoch: u64,
    model_speak: bool,
    end_of_turn: bool,
    audio_duration_ms: u64,
    audio_text_marks: &'a [Mark],
    playback: Playback,
}

/// The text of an event; none if clients of this profile are not told.
pub fn text(event: &ServerEvent, profile: Profile, envelope: &Envelope) -> Option<String> {
    if !told(event, profile) {
        return None;
    }
    let (place, delta, audio) = match event {
        ServerEvent::AudioDelta(d) if d.stage_metrics.is_none() => (&d.place, &d.delta, Some(Audio::of(d))),
        ServerEvent::TranscriptDelta { place, delta } | ServerEvent::TextDelta { place, delta } => (place, delta, None),
        _ => return project(event, profile, envelope).map(|v| v.to_string()),
    };
    let piece = Piece {
        kind: name(event, profile),
        event_id: &envelope.event_id,
        server_event_seq: envelope.server_event_seq,
        response_id: &place.response_id,
        item_id: &place.item_id,
        output_index: place.output_index,
        content_index: place.content_index,
        delta,
        audio,
    };
    let mut out = Vec::with_capacity(delta.len() + 768);
    // Texts and numbers alone: nothing can fail to be written.
    serde_json::to_writer(&mut out, &piece).ok()?;
    String::from_utf8(out).ok()
}

impl<'a> Audio<'a> {
    fn of(d: &'a AudioDelta) -> Self {
        let metadata = Metadata {
            session_id: &d.session_id,
            epoch: d.epoch,
            model_speak: d.model_speak,
            end_of_turn: d.end_of_turn,
            audio_duration_ms: d.audio_duration_ms,
            audio_text_marks: &d.marks,
            playback: d.playback,
        };
        Self { format: d.format, sample_rate_hz: d.sample_rate_hz, metadata }
    }
}
