//! `POST /v1/audio/speech/batch`: several clips in one request.

use axum::Json;
use axum::extract::{Request, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value, json};

use super::make::{self, Making};
use super::request::{Mode, Speak};
use crate::api::fields::{self, Fields};
use crate::api::run::Fail;
use crate::api::{Api, SPEECH_BATCH, Speech};
use crate::door::HttpError;

pub(in crate::api) async fn speak(State(api): State<Api>, request: Request) -> Result<Json<Value>, HttpError> {
    api.admit(request.headers())?;
    let ends = api.speech(SPEECH_BATCH)?;
    let (mut body, _held) = fields::json(&api.clock, &api.config.limits, &api.room, request).await?;
    api.model(Fields(&body).text("model")?)?;
    let most = api.config.limits.batch_items;
    let items = match body.remove("items") {
        Some(Value::Array(items)) if (1..=most).contains(&items.len()) => items,
        _ => return Err(HttpError::bad(format!("`items` must be a list of 1 to {most}")).about("items")),
    };
    // No more at once than there are places, so that a batch does not refuse itself.
    let places = api.graph.plan().session.max_sessions.clamp(1, most);
    let total = items.len();
    let made = items.into_iter().enumerate().map(|(index, item)| one(&api, ends, &body, index, item));
    let results: Vec<Value> = stream::iter(made).buffered(places).collect().await;
    let succeeded = results.iter().filter(|r| r["status"] == "success").count();
    let mut id = [0; 8];
    let _ = getrandom::fill(&mut id);
    Ok(Json(json!({"id": format!("speech-batch-{:016x}", u64::from_le_bytes(id)), "results": results,
        "total": total, "succeeded": succeeded, "failed": total - succeeded})))
}

async fn one(api: &Api, ends: &Speech, defaults: &Map<String, Value>, index: usize, item: Value) -> Value {
    let made = async {
        let Value::Object(item) = item else { return Err(HttpError::bad("an item must be an object")) };
        let mut all = defaults.clone();
        all.extend(item);
        for streaming in ["stream", "stream_format"] {
            all.remove(streaming);
        }
        let speak = Speak::read(api, Fields(&all), ends)?;
        debug_assert_eq!(speak.mode, Mode::Whole);
        let mut job = api.job(SPEECH_BATCH);
        job.speaks(&ends.node, false, true);
        let made = match Making::start(api, &speak) {
            Ok(making) => make::clip(&speak, making, &mut job).await,
            Err(e) => Err(Fail::Refused(e)),
        };
        super::finish(job, made).map(|clip| (speak.format, clip))
    };
    match made.await {
        Ok((format, clip)) => json!({"index": index, "status": "success", "audio_data": STANDARD.encode(clip.file),
            "media_type": format.media_type(), "usage": clip.usage.json()}),
        Err(e) => json!({"index": index, "status": "error", "error": e.message()}),
    }
}
