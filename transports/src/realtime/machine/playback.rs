//! What the client says it has heard.

use crate::realtime::rules::items::PlaybackError;
use crate::realtime::rules::ledger::{Ack, whole_ms};
use crate::realtime::wire::client::PlaybackAck;
use crate::realtime::wire::client::item::Truncate;
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::server::{Acknowledged, ServerEvent};

use super::Session;

fn refusal(e: PlaybackError) -> Refusal {
    let code = match e {
        PlaybackError::Mismatch { .. } => Code::PlaybackItemMismatch,
        PlaybackError::NotFound(_) => Code::PlaybackItemNotFound,
        PlaybackError::TooLate(_) => Code::PlaybackAckTooLate,
        PlaybackError::BadCut(_) => Code::BadEvent,
    };
    Refusal::new(code, e.to_string())
}

impl Session {
    /// `playback.ack`.
    ///
    /// # Errors
    /// The refusal; nothing has changed then.
    pub(super) fn acknowledge(&mut self, ack: &PlaybackAck) -> Result<(), Refusal> {
        let active = self.response.as_ref().map(|r| r.shown.id.clone());
        let (response, item) = (ack.response_id.as_deref(), ack.item_id.as_deref());
        let answer = self.items.playing(response, item, active.as_deref()).map_err(refusal)?;
        let (played_ms, committed_ms) = (whole_ms(ack.played_ms), whole_ms(ack.committed_ms));
        answer.ack(Ack { played_ms, committed_ms, truncate: ack.truncate });
        let id = answer.response().to_owned();
        self.acknowledged(&id, ack.played_ms, ack.committed_ms, ack.truncate);
        Ok(())
    }
    fn acknowledged(&mut self, response: &str, played_ms: f64, committed_ms: f64, truncate: bool) {
        let Some(answer) = self.items.answer(response) else { return };
        let playback = answer.ledger().playback();
        let history_committed = !answer.heard().trim().is_empty();
        self.playback = playback;
        self.tell(ServerEvent::Acknowledged(Acknowledged {
            session_id: self.id.to_string(),
            epoch: self.epoch,
            item_id: crate::realtime::rules::items::answer_id(response),
            played_ms,
            committed_ms,
            truncate,
            playback,
            history_committed,
        }));
    }
    /// `conversation.item.truncate`. A cut of what a later input has settled is a race that nobody lost: it is told, and
    /// changes nothing.
    ///
    /// # Errors
    /// The refusal; nothing has changed then.
    pub(super) fn truncate(&mut self, cut: Truncate) -> Result<(), Refusal> {
        let index = i64::try_from(cut.content_index).unwrap_or(i64::MAX);
        let end = i64::try_from(cut.audio_end_ms).unwrap_or(i64::MAX);
        let at = match self.items.truncate(&cut.item_id, index, end) {
            Ok(at) => at,
            Err(PlaybackError::TooLate(_)) => cut.audio_end_ms,
            Err(PlaybackError::NotFound(_)) => return Err(Refusal::item_not_found(&cut.item_id)),
            Err(e) => return Err(refusal(e)),
        };
        self.tell(ServerEvent::ItemTruncated {
            item_id: cut.item_id.clone(),
            content_index: cut.content_index,
            audio_end_ms: at,
            request: cut.request,
        });
        if let Some(response) = cut.item_id.strip_prefix("item_") {
            self.acknowledged(response, at as f64, at as f64, true);
        }
        Ok(())
    }
}
