//! Bodies of forms (`multipart/form-data`): one file and a few texts.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::multipart::Field;
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::http::{StatusCode, header};
use omni_flow::Clock;

use super::fields;
use super::room::{Held, Room};
use crate::door::HttpError;

/// A form that has arrived whole.
pub(super) struct Form {
    pub(super) file: Option<File>,
    /// Texts by name; a name may come several times.
    texts: BTreeMap<String, Vec<String>>,
    /// Its memory, for as long as it is needed.
    pub(super) held: Held,
}

/// The file of a form.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) mime: String,
    pub(super) bytes: Vec<u8>,
}

impl Form {
    /// A text; the last one, if there are several. An empty one is none.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, HttpError> {
        Ok(self.texts.remove(name).and_then(|mut all| all.pop()).filter(|t| !t.is_empty()))
    }
    /// A text that must be there.
    pub(super) fn needed(&mut self, name: &str) -> Result<String, HttpError> {
        self.text(name)?.ok_or_else(|| HttpError::bad(format!("`{name}` is missing")).about(name))
    }
    /// All texts of a name, written `name` or `name[]`.
    pub(super) fn list(&mut self, name: &str) -> Vec<String> {
        let mut all = self.texts.remove(name).unwrap_or_default();
        all.extend(self.texts.remove(&format!("{name}[]")).unwrap_or_default());
        all
    }
    /// True or false.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, HttpError> {
        match self.text(name)?.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(HttpError::bad(format!("`{name}` must be true or false")).about(name)),
        }
    }
}

/// The form that a request is.
///
/// # Errors
/// 415 if it is another kind of body; what was sent of it is still read, so that its sender hears of it.
pub(super) async fn open(clock: &Clock, request: Request) -> Result<Multipart, HttpError> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if !kind.to_ascii_lowercase().starts_with("multipart/form-data") {
        let shown: String = kind.chars().take(64).collect();
        fields::drain(clock, request.into_body()).await;
        let message = format!("the body must be `multipart/form-data`, not `{shown}`");
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    Multipart::from_request(request, &()).await.map_err(|e| HttpError::bad(e.body_text()))
}

/// Reads a form: the file under `file`, of at most `most` bytes, and texts of at most `texts` together. Fields of other
/// names are taken too, and nobody asks for them.
///
/// # Errors
/// 413; 400 if it is malformed, breaks off, or pauses for too long; 503 if there is no room.
pub(super) async fn read(
    clock: &Clock,
    mut form: Multipart,
    file: &str,
    most: usize,
    texts: usize,
    pause: Duration,
    room: &Room,
) -> Result<Form, HttpError> {
    let mut got = Form { file: None, texts: BTreeMap::new(), held: room.hold() };
    let mut left = texts;
    let read = async {
        while let Some(field) = wait(clock, pause, form.next_field()).await? {
            let name = field.name().unwrap_or_default().to_owned();
            if name == file {
                let named = field.file_name().unwrap_or_default().to_owned();
                let mime = field.content_type().unwrap_or_default().to_owned();
                let bytes = whole(clock, field, most, pause, &mut got.held).await?;
                got.file = Some(File { name: named, mime, bytes });
                continue;
            }
            let bytes = whole(clock, field, left, pause, &mut got.held).await?;
            left -= bytes.len();
            let text = String::from_utf8(bytes)
                .map_err(|_| HttpError::bad(format!("`{name}` is no UTF-8")).about(name.as_str()))?;
            // Names are bounded by the parser, their number by what an empty one costs here.
            left = left.saturating_sub(name.len() + 16);
            got.texts.entry(name).or_default().push(text);
        }
        Ok(())
    };
    match read.await {
        Ok(()) => Ok(got),
        Err(e) => {
            rest(clock, form).await;
            Err(e)
        }
    }
}

/// Reads on for a moment, so that the sender gets to read why it is refused.
async fn rest(clock: &Clock, mut form: Multipart) {
    const BYTES: usize = 64 << 20;
    let read = async {
        let mut got = 0;
        while let Ok(Some(mut field)) = form.next_field().await {
            while let Ok(Some(piece)) = field.chunk().await {
                got += piece.len();
                if got > BYTES {
                    return;
                }
            }
        }
    };
    let _ = clock.timeout(Duration::from_secs(10), read).await;
}

async fn wait<T>(
    clock: &Clock,
    pause: Duration,
    next: impl Future<Output = Result<T, axum::extract::multipart::MultipartError>>,
) -> Result<T, HttpError> {
    match clock.timeout(pause, next).await {
        None => Err(HttpError::bad(format!("the body paused for {} s", pause.as_secs_f64()))),
        Some(got) => got.map_err(|e| HttpError::bad(format!("the form cannot be read: {}", e.body_text()))),
    }
}

async fn whole(
    clock: &Clock,
    mut field: Field<'_>,
    most: usize,
    pause: Duration,
    held: &mut Held,
) -> Result<Vec<u8>, HttpError> {
    let name = field.name().unwrap_or_default().to_owned();
    let mut got = Vec::new();
    while let Some(piece) = wait(clock, pause, field.chunk()).await? {
        if got.len() + piece.len() > most {
            return Err(HttpError::too_large(format!("`{name}` is larger than {most} bytes")).about(name));
        }
        held.grow(piece.len())?;
        got.extend_from_slice(&piece);
    }
    Ok(got)
}
