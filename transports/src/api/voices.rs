//! Voices that clients upload: recordings of a speaker, by name.
//!
//! Each is one recording, and beside it a small file that tells about it. That file is written last and in one step, so a
//! voice is there whole or not at all; what a fallen server left half done is cleared away at the next start.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::{Multipart, Path as UrlPath, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use omni_flow_media::file::{AudioFile, Input};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::form::{self, Form};
use super::limits::Limits;
use super::room::Held;
use super::{Api, VOICES};
use crate::door::HttpError;

/// Types of recordings, with what their files are called.
const TYPES: [(&str, &[&str]); 7] = [
    ("wav", &["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"]),
    ("mp3", &["audio/mpeg", "audio/mp3"]),
    ("flac", &["audio/flac", "audio/x-flac"]),
    ("ogg", &["audio/ogg", "application/ogg"]),
    ("aac", &["audio/aac", "audio/x-aac"]),
    ("webm", &["audio/webm", "video/webm"]),
    ("mp4", &["audio/mp4", "audio/m4a", "audio/x-m4a", "video/mp4"]),
];
/// Bytes of the texts of an upload together.
const TEXTS: usize = 64 << 10;
/// Characters of a name.
const NAME: usize = 128;

/// An uploaded voice.
#[derive(Clone, Debug)]
struct Voice {
    about: Value,
    sound: Sound,
}

/// Where its recording is.
#[derive(Clone, Debug)]
enum Sound {
    File(PathBuf),
    Memory { mime: String, bytes: Arc<Vec<u8>> },
}

/// All uploaded voices.
pub(super) struct Voices {
    dir: Option<PathBuf>,
    limits: Limits,
    known: Mutex<BTreeMap<String, Voice>>,
    /// Uploads and deletions are written one after the other.
    writes: Arc<tokio::sync::Mutex<()>>,
}

impl Voices {
    /// Those in `dir`, which is made if it is missing; without one they are kept in memory.
    ///
    /// # Errors
    /// The folder cannot be made or read. A voice that cannot be read is left out, with a warning.
    pub(super) fn open(dir: Option<&Path>, limits: &Limits) -> io::Result<Self> {
        let mut known = BTreeMap::new();
        if let Some(dir) = dir {
            fs::create_dir_all(dir)?;
            restore(dir, &mut known)?;
        }
        let (dir, known) = (dir.map(Path::to_owned), Mutex::new(known));
        Ok(Self { dir, limits: *limits, known, writes: Arc::default() })
    }
    pub(super) fn has(&self, name: &str) -> bool {
        self.known.lock().contains_key(name)
    }
    pub(super) fn names(&self) -> Vec<String> {
        self.known.lock().keys().cloned().collect()
    }
    /// Where a node finds the recording: a `file:` or `data:` address.
    pub(super) fn reference(&self, name: &str) -> Option<String> {
        Some(match &self.known.lock().get(name)?.sound {
            Sound::File(path) => format!("file://{}", path.display()),
            Sound::Memory { mime, bytes } => format!("data:{mime};base64,{}", STANDARD.encode(&**bytes)),
        })
    }
    fn list(&self) -> Vec<Value> {
        self.known.lock().values().map(|v| v.about.clone()).collect()
    }
    /// Whether another voice may be added.
    fn room(&self, name: &str, bytes: usize) -> Result<(), HttpError> {
        let known = self.known.lock();
        let there = known.contains_key(name);
        if there && self.limits.voices_immutable {
            return Err(HttpError::new(
                StatusCode::CONFLICT,
                format!("voice `{name}` exists and cannot be overwritten"),
            ));
        }
        if !there && known.len() >= self.limits.voices {
            let message = format!("there are {} uploaded voices, as many as may be; delete one first", known.len());
            return Err(HttpError::bad(message));
        }
        let held = |v: &Voice| match &v.sound {
            Sound::Memory { bytes, .. } => bytes.len(),
            Sound::File(_) => 0,
        };
        let others: usize = known.iter().filter(|(n, _)| *n != name).map(|(_, v)| held(v)).sum();
        if self.dir.is_none() && others + bytes > self.limits.voices_memory {
            let message = "the memory for uploaded voices is full; delete one, or set `serve.voices.dir`";
            return Err(HttpError::bad(message));
        }
        Ok(())
    }
    async fn add(&self, up: Upload) -> Result<Value, HttpError> {
        let _alone = self.writes.lock().await;
        self.room(&up.name, up.sound.len())?;
        let size = up.sound.len();
        let mut about = json!({"name": up.name, "consent": up.consent, "created_at": now(), "file_size": size,
            "mime_type": up.mime});
        for (key, text) in [("ref_text", &up.ref_text), ("speaker_description", &up.description)] {
            if let Some(text) = text {
                about[key] = text.as_str().into();
            }
        }
        let old = self.known.lock().get(&up.name).map(|v| v.sound.clone());
        let sound = match &self.dir {
            None => Sound::Memory { mime: up.mime, bytes: Arc::new(up.sound) },
            Some(dir) => {
                let (dir, stem, extension, told) = (dir.clone(), stem(&up.name), up.extension, about.to_string());
                let write = move || write(&dir, &stem, extension, &up.sound, &told);
                let written = tokio::task::spawn_blocking(write).await;
                let path = written.unwrap_or_else(|e| Err(io::Error::other(e)));
                Sound::File(path.map_err(|e| HttpError::internal(format!("the voice cannot be kept: {e}")))?)
            }
        };
        if let (Some(Sound::File(old)), Sound::File(new)) = (&old, &sound)
            && old != new
        {
            forget(old);
        }
        self.known.lock().insert(up.name, Voice { about: about.clone(), sound });
        Ok(about)
    }
    async fn remove(&self, name: &str) -> bool {
        let _alone = self.writes.lock().await;
        let Some(voice) = self.known.lock().remove(name) else { return false };
        if let (Sound::File(path), Some(dir)) = (voice.sound, &self.dir) {
            forget(&dir.join(stem(name)).with_extension("json"));
            // A synthesis that has opened it reads on.
            forget(&path);
        }
        true
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// How the files of a voice are called: nothing that a client writes is part of a path.
fn stem(name: &str) -> String {
    let hex: Vec<String> = Sha256::digest(name.as_bytes())[..16].iter().map(|b| format!("{b:02x}")).collect();
    format!("voice-{}", hex.concat())
}

fn forget(path: &Path) {
    if let Err(e) = fs::remove_file(path)
        && e.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), error = %e, "a voice's file cannot be deleted");
    }
}

/// Writes the recording, then what tells about it, each in one step.
fn write(dir: &Path, stem: &str, extension: &str, sound: &[u8], about: &str) -> io::Result<PathBuf> {
    let put = |name: &str, bytes: &[u8]| {
        let (path, part) = (dir.join(name), dir.join(format!("{name}.part")));
        let done = fs::File::create(&part)
            .and_then(|mut f| f.write_all(bytes).and_then(|()| f.sync_all()))
            .and_then(|()| fs::rename(&part, &path));
        if done.is_err() {
            let _ = fs::remove_file(&part);
        }
        done.map(|()| path)
    };
    // The recording has a name of its own content, so that the old one stays whole until the new one is told of.
    let hex: Vec<String> = Sha256::digest(sound)[..4].iter().map(|b| format!("{b:02x}")).collect();
    let file = format!("{stem}-{}.{extension}", hex.concat());
    let path = put(&file, sound)?;
    let mut told: Value = serde_json::from_str(about).unwrap_or_default();
    told["file"] = file.into();
    if let Err(e) = put(&format!("{stem}.json"), told.to_string().as_bytes()) {
        let _ = fs::remove_file(&path);
        return Err(e);
    }
    Ok(path)
}

/// Reads what a folder holds, and clears away what belongs to no voice.
fn restore(dir: &Path, known: &mut BTreeMap<String, Voice>) -> io::Result<()> {
    let mut rest = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let ours = path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("voice-"));
        if !ours {
            continue;
        }
        if path.extension().is_none_or(|e| e != "json") {
            rest.push(path);
            continue;
        }
        let read = fs::read_to_string(&path).ok().and_then(|t| serde_json::from_str::<Value>(&t).ok());
        let named = read.and_then(|mut about| {
            let file = about.as_object_mut()?.remove("file")?.as_str()?.to_owned();
            let plain = Path::new(&file).file_name().is_some_and(|n| n == file.as_str());
            let sound = dir.join(&file);
            let name = about.get("name")?.as_str()?.to_owned();
            (plain && sound.is_file()).then_some((name, Voice { about, sound: Sound::File(sound) }))
        });
        match named {
            Some((name, voice)) => drop(known.insert(name, voice)),
            None => tracing::warn!(path = %path.display(), "a voice that cannot be read is left out"),
        }
    }
    let used = |path: &PathBuf| known.values().any(|v| matches!(&v.sound, Sound::File(p) if p == path));
    rest.iter().filter(|p| !used(p)).for_each(|p| forget(p));
    Ok(())
}

/// A voice that is to be kept.
struct Upload {
    name: String,
    consent: String,
    mime: String,
    extension: &'static str,
    sound: Vec<u8>,
    ref_text: Option<String>,
    description: Option<String>,
}

impl Upload {
    fn of(mut form: Form) -> Result<(Self, Held), HttpError> {
        let name = form.needed("name")?.trim().to_owned();
        if name.is_empty() || name.chars().count() > NAME || name.chars().any(char::is_control) {
            return Err(HttpError::bad(format!("`name` must be 1 to {NAME} printable characters")).about("name"));
        }
        let consent = form.needed("consent")?;
        let (ref_text, description) = (form.text("ref_text")?, form.text("speaker_description")?);
        let file = form.file.take().ok_or_else(|| HttpError::bad("`audio_sample` is missing").about("audio_sample"))?;
        let mime = file.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let ending = file.name.rsplit_once('.').map(|(_, e)| e.to_ascii_lowercase()).unwrap_or_default();
        let by_mime = TYPES.iter().find(|(_, mimes)| mimes.contains(&mime.as_str()));
        let unsaid = mime.is_empty() || mime == "application/octet-stream";
        let found = by_mime.or_else(|| TYPES.iter().find(|(e, _)| unsaid && *e == ending));
        let Some((extension, mimes)) = found else {
            let known: Vec<_> = TYPES.iter().map(|(e, _)| *e).collect();
            let message = format!("`audio_sample` is of no known type; use one of {}", known.join(", "));
            return Err(HttpError::bad(message).about("audio_sample"));
        };
        let mime = if unsaid { mimes[0].to_owned() } else { mime };
        let up = Self { name, consent, mime, extension, sound: file.bytes, ref_text, description };
        Ok((up, form.held))
    }
}

/// Whether there is sound in a recording. Blocks.
fn sounds(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let mut file = AudioFile::new(Input::memory(bytes.clone()), "audio_sample").map_err(|e| e.to_string())?;
    match file.next(&mut Vec::new()) {
        Ok(0) => Err("there is no sound in it".to_owned()),
        Ok(_) => Ok(bytes),
        Err(e) => Err(e.to_string()),
    }
}

pub(super) async fn list(State(api): State<Api>, headers: HeaderMap) -> Result<Json<Value>, HttpError> {
    api.admit(&headers)?;
    api.speech(VOICES)?;
    let own = &api.config.voices;
    let uploaded = api.voices.names().into_iter().filter(|n| !own.contains(n));
    let all: Vec<String> = own.iter().cloned().chain(uploaded).collect();
    Ok(Json(json!({"voices": all, "uploaded_voices": api.voices.list()})))
}

pub(super) async fn upload(State(api): State<Api>, request: Request) -> Result<Json<Value>, HttpError> {
    api.admit(request.headers())?;
    api.speech(VOICES)?;
    let limits = &api.config.limits;
    let form: Multipart = form::open(&api.clock, request).await?;
    let read =
        form::read(&api.clock, form, "audio_sample", limits.voice_bytes, TEXTS, limits.body_pause, &api.room).await;
    // The contract has 400 for a recording that is too large, too.
    let form =
        read.map_err(|e| if e.status() == StatusCode::PAYLOAD_TOO_LARGE { HttpError::bad(e.message()) } else { e })?;
    let (mut up, _held) = Upload::of(form)?;
    api.voices.room(&up.name, up.sound.len())?;
    let bytes = std::mem::take(&mut up.sound);
    let checked = tokio::task::spawn_blocking(move || sounds(bytes)).await;
    let bad = |why: String| HttpError::bad(format!("`audio_sample` cannot be read: {why}")).about("audio_sample");
    up.sound = checked.unwrap_or_else(|_| Err("the decoder gave up".to_owned())).map_err(bad)?;
    let voice = api.voices.add(up).await?;
    Ok(Json(json!({"success": true, "voice": voice})))
}

pub(super) async fn remove(
    State(api): State<Api>,
    UrlPath(name): UrlPath<String>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    api.admit(&headers)?;
    api.speech(VOICES)?;
    let shown: String = name.chars().take(NAME).collect();
    if api.voices.remove(&name).await {
        let message = format!("Voice '{shown}' deleted");
        return Ok(Json(json!({"success": true, "message": message})).into_response());
    }
    let error = format!("Voice '{shown}' not found");
    Ok((StatusCode::NOT_FOUND, Json(json!({"success": false, "error": error}))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(name: &str, sound: &[u8]) -> Upload {
        let (consent, mime) = ("yes".to_owned(), "audio/wav".to_owned());
        let sound = sound.to_vec();
        Upload { name: name.into(), consent, mime, extension: "wav", sound, ref_text: None, description: None }
    }

    #[tokio::test]
    async fn voices_survive_a_restart_and_leave_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits::default();
        let voices = Voices::open(Some(dir.path()), &limits).unwrap();
        for (name, sound) in [("../anna", "one"), ("bob", "two"), ("../anna", "three")] {
            voices.add(up(name, sound.as_bytes())).await.unwrap();
        }
        fs::write(dir.path().join("voice-x.wav.part"), "half").unwrap();
        fs::write(dir.path().join("mine.txt"), "not a voice").unwrap();
        drop(voices);
        let voices = Voices::open(Some(dir.path()), &limits).unwrap();
        assert_eq!(voices.names(), ["../anna", "bob"]);
        let at = voices.reference("../anna").unwrap();
        let at = Path::new(at.strip_prefix("file://").unwrap()).to_owned();
        assert_eq!((at.parent(), fs::read(&at).unwrap()), (Some(dir.path()), b"three".to_vec()));
        assert!(voices.remove("../anna").await && voices.remove("bob").await && !voices.remove("bob").await);
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["mine.txt"]);
    }

    #[tokio::test]
    async fn memory_and_number_are_bounded() {
        let limits = Limits { voices: 2, voices_memory: 10, ..Limits::default() };
        let voices = Voices::open(None, &limits).unwrap();
        voices.add(up("a", &[0; 6])).await.unwrap();
        let full = voices.add(up("b", &[0; 6])).await.unwrap_err();
        assert!(full.message().contains("memory"), "{}", full.message());
        voices.add(up("b", &[0; 4])).await.unwrap();
        assert!(voices.add(up("c", &[])).await.unwrap_err().message().contains("delete one first"));
        // Another recording of the same voice takes the place of the first.
        voices.add(up("a", &[1; 6])).await.unwrap();
        assert_eq!(voices.reference("a").unwrap(), "data:audio/wav;base64,AQEBAQEB");
        let limits = Limits { voices_immutable: true, ..limits };
        let voices = Voices::open(None, &limits).unwrap();
        voices.add(up("a", &[0])).await.unwrap();
        assert_eq!(voices.add(up("a", &[0])).await.unwrap_err().status(), StatusCode::CONFLICT);
    }
}
