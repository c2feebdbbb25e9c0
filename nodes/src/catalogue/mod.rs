//! The catalogue of models, their cache and how they are fetched.
//!
//! A model is a name with files, sizes, sums, a licence and sources. Promises: a file under its final name in the cache
//! is whole and was verified; stopped downloads go on; two processes do not disturb each other; what a killed one left is
//! cleared by the next; what cannot be had is a typed error that says what to do. It does not load models.

mod cache;
mod error;
mod fetch;
mod http;
mod pip;
mod pip_said;
mod progress;
mod spec;
#[cfg(test)]
mod tests;

pub use cache::cache_root;
pub use error::FetchError;
pub use fetch::{FetchOptions, ModelFiles};
pub use pip_said::PipFault;
pub use progress::{Bars, Event, Progress, Quiet};
pub use spec::{Spec, is_model_name};

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A model of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Its name, which is also its folder in the cache.
    pub name: String,
    /// What it is for; `None` in a catalogue that does not say.
    #[serde(default)]
    pub task: Option<Task>,
    /// What it is, in one line.
    pub title: String,
    /// Licence as stated where it comes from.
    pub licence: String,
    /// What one should know before using it.
    pub note: Option<String>,
    /// Hub repository that has the files.
    pub hub: Option<Hub>,
    /// The files.
    pub files: Vec<ModelFile>,
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Whether somebody speaks.
    VoiceActivity,
    /// Speech to text.
    SpeechRecognition,
    /// Conversation in text.
    Chat,
    /// Text to speech.
    SpeechSynthesis,
}

impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::VoiceActivity => "voice activity",
            Self::SpeechRecognition => "speech recognition",
            Self::Chat => "chat",
            Self::SpeechSynthesis => "speech synthesis",
        })
    }
}

/// A hub repository at a pinned revision.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hub {
    /// `ORG/REPO`.
    pub repository: String,
    /// Commit or tag.
    pub revision: String,
}

/// A file of a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// Its name in the cache.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Lower-case hex.
    pub sha256: String,
    /// Its path in the hub repository.
    pub hub: Option<String>,
    /// Files of Python packages that give it, one after the other.
    #[serde(default)]
    pub wheels: Vec<WheelPart>,
}

/// A file inside a Python package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelPart {
    /// The package.
    pub package: String,
    /// Its pinned version.
    pub version: String,
    /// Path inside the wheel.
    pub inner: String,
}

/// How a file or model of the cache is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Complete and, if it was read, as promised.
    Good,
    /// Not there.
    Missing,
    /// There, but not as promised.
    Damaged,
}

/// A folder of the cache that is no model of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// Its name, as `models rm` takes it.
    pub name: String,
    /// Its files, finished or not.
    pub files: Vec<String>,
    /// Sum of their sizes.
    pub bytes: u64,
}

impl Model {
    /// Sum of its files' sizes.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|f| f.size).sum()
    }

    /// Its folder under a cache root.
    pub fn folder(&self, root: &Path) -> PathBuf {
        root.join("models").join(&self.name)
    }
}

impl ModelFile {
    fn is_cached(&self, folder: &Path) -> bool {
        std::fs::metadata(folder.join(&self.name)).is_ok_and(|m| m.is_file() && m.len() == self.size)
    }
}

/// The models that are known by name.
#[derive(Debug, Clone)]
pub struct Catalogue {
    models: Vec<Model>,
}

impl Catalogue {
    /// The models that this program knows.
    ///
    /// # Errors
    /// None in a released program: a test reads the same text.
    pub fn builtin() -> Result<Self, FetchError> {
        Self::from_json(include_str!("models.json"))
    }

    /// A catalogue from JSON: a list of [`Model`].
    ///
    /// # Errors
    /// [`FetchError::Catalogue`], [`FetchError::BadName`].
    pub fn from_json(text: &str) -> Result<Self, FetchError> {
        let models: Vec<Model> = serde_json::from_str(text).map_err(|e| FetchError::Catalogue(e.to_string()))?;
        let packages =
            |m: &Model| m.files.iter().flat_map(|f| f.wheels.clone()).map(|w| (w.package, w.version)).collect();
        for model in &models {
            let pins: Vec<(String, String)> = packages(model);
            let mut names = vec![&model.name];
            names.extend(model.files.iter().map(|f| &f.name));
            names.extend(pins.iter().flat_map(|(p, v)| [p, v]));
            if let Some(bad) = names.into_iter().find(|n| !is_model_name(n)) {
                return Err(FetchError::BadName(bad.clone()));
            }
        }
        Ok(Self { models })
    }

    /// All models.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// A model by name.
    ///
    /// # Errors
    /// [`FetchError::Unknown`], with the names there are.
    pub fn get(&self, name: &str) -> Result<&Model, FetchError> {
        let known = || self.models.iter().map(|m| m.name.clone()).collect();
        let found = self.models.iter().find(|m| m.name == name);
        found.ok_or_else(|| FetchError::Unknown { name: name.to_owned(), known: known() })
    }

    /// Every model and how it lies in the cache, by names and sizes only.
    pub fn list(&self, cache: &Path) -> Vec<(&Model, Health)> {
        let health = |m: &Model| {
            let folder = m.folder(cache);
            let cached = m.files.iter().filter(|f| f.is_cached(&folder)).count();
            match (cached == m.files.len(), folder.exists()) {
                (true, _) => Health::Good,
                (false, true) if m.files.iter().any(|f| folder.join(&f.name).exists()) => Health::Damaged,
                _ => Health::Missing,
            }
        };
        self.models.iter().map(|m| (m, health(m))).collect()
    }

    /// Reads every file of a model and compares the sums.
    ///
    /// # Errors
    /// Unknown model, or a file that cannot be read.
    pub fn verify(&self, name: &str, cache: &Path) -> Result<Vec<(&ModelFile, Health)>, FetchError> {
        let model = self.get(name)?;
        let folder = model.folder(cache);
        let one = |f: &ModelFile| {
            let path = folder.join(&f.name);
            Ok(match path.exists() {
                false => Health::Missing,
                true if f.is_cached(&folder) && cache::sha256_of(&path)? == f.sha256 => Health::Good,
                true => Health::Damaged,
            })
        };
        model.files.iter().map(|f| Ok((f, one(f)?))).collect()
    }

    /// What the cache has besides models of the catalogue: fetched by address or hub name, or known to another version.
    pub fn others(&self, cache: &Path) -> Vec<Other> {
        let folders = std::fs::read_dir(cache.join("models")).into_iter().flatten().flatten();
        let other = |folder: std::fs::DirEntry| {
            let name = folder.file_name().into_string().ok().filter(|n| !n.starts_with('.') && self.get(n).is_err())?;
            let files = std::fs::read_dir(folder.path()).ok()?.flatten();
            let files = files.filter_map(|f| Some((f.file_name().into_string().ok()?, f.metadata().ok()?.len())));
            let (mut files, sizes): (Vec<String>, Vec<u64>) = files.unzip();
            files.sort();
            Some(Other { name, files, bytes: sizes.iter().sum() })
        };
        let mut all: Vec<Other> = folders.filter_map(other).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Deletes the files of a model, or of one of [`Catalogue::others`], finished or not. `false` if there were none.
    ///
    /// # Errors
    /// Unknown model, files that cannot be deleted, or a fetch in progress.
    pub fn remove(&self, name: &str, cache: &Path) -> Result<bool, FetchError> {
        let folder = match self.get(name) {
            Ok(model) => model.folder(cache),
            Err(_) if self.others(cache).iter().any(|o| o.name == name) => cache.join("models").join(name),
            Err(unknown) => return Err(unknown),
        };
        if !folder.exists() {
            return Ok(false);
        }
        let _lock = cache::Lock::take(cache, name, Duration::ZERO, &Quiet)?;
        std::fs::remove_dir_all(&folder).map_err(|e| FetchError::io(&folder, e))?;
        Ok(true)
    }
}
