//! The cache folder: where files lie, how they get there whole, and who may write.
//!
//! Layout: `models/NAME/FILE`, unfinished files beside as `FILE.part`, `locks/NAME.lock`, `wheels/PACKAGE-VERSION/`
//! for packages on their way, with `locks/wheel--PACKAGE-VERSION.lock`. A file under its final name is complete and
//! was verified; it appears by a rename. The lock is the operating system's and dies with its owner.

use super::{Event, FetchError, Progress};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Root of the cache: `OMNI_FLOW_CACHE`, else `XDG_CACHE_HOME/omni-flow`, else `~/.cache/omni-flow`.
///
/// # Errors
/// [`FetchError::NoCacheRoot`] if none of the variables is set.
pub fn cache_root() -> Result<PathBuf, FetchError> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("OMNI_FLOW_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|p| p.join("omni-flow")))
        .or_else(|| set("HOME").map(|p| p.join(".cache/omni-flow")))
        .ok_or(FetchError::NoCacheRoot)
}

/// Creates a folder and those above it.
pub(crate) fn create_folder(path: &Path) -> Result<(), FetchError> {
    std::fs::create_dir_all(path).map_err(|e| FetchError::io(path, e))
}

/// Deletes a file if it is there.
pub(crate) fn delete(path: &Path) -> Result<(), FetchError> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(FetchError::io(path, e)),
        _ => Ok(()),
    }
}

/// The right to write a model's folder, held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// The right, if nobody alive has it.
    pub fn try_take(root: &Path, name: &str) -> Option<Self> {
        let folder = root.join("locks");
        create_folder(&folder).ok()?;
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(format!("{name}.lock")));
        file.ok().filter(|f| f.try_lock().is_ok()).map(|file| Self { _file: file })
    }

    /// Waits for the right, for at most `patience`.
    pub fn take(root: &Path, name: &str, patience: Duration, progress: &dyn Progress) -> Result<Self, FetchError> {
        let folder = root.join("locks");
        create_folder(&folder)?;
        let path = folder.join(format!("{name}.lock"));
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|e| FetchError::io(&path, e))?;
        let begin = Instant::now();
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(e)) => return Err(FetchError::io(&path, e)),
                Err(TryLockError::WouldBlock) if progress.cancelled() => return Err(FetchError::Cancelled),
                Err(TryLockError::WouldBlock) if begin.elapsed() >= patience => return Err(FetchError::Busy(path)),
                Err(TryLockError::WouldBlock) => {
                    if !std::mem::replace(&mut told, true) {
                        progress.event(Event::Waiting { model: name });
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }
}

/// A file on its way into the cache.
#[derive(Debug)]
pub(crate) struct Part {
    target: PathBuf,
    path: PathBuf,
    file: File,
    /// Bytes written.
    pub len: u64,
}

impl Part {
    /// Opens `target.part`, keeping what is in it.
    pub fn open(target: &Path) -> Result<Self, FetchError> {
        if let Some(folder) = target.parent() {
            create_folder(folder)?;
        }
        let mut path = target.as_os_str().to_owned();
        path.push(".part");
        let path = PathBuf::from(path);
        let file = OpenOptions::new().create(true).append(true).read(true).open(&path);
        let file = file.map_err(|e| FetchError::io(&path, e))?;
        let len = file.metadata().map_err(|e| FetchError::io(&path, e))?.len();
        Ok(Self { target: target.to_owned(), path, file, len })
    }

    /// Throws away what is in it.
    pub fn restart(&mut self) -> Result<(), FetchError> {
        if self.len > 0 {
            self.file.set_len(0).map_err(|e| FetchError::io(&self.path, e))?;
            self.len = 0;
        }
        Ok(())
    }

    /// Appends.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        self.file.write_all(bytes).map_err(|e| FetchError::io(&self.path, e))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Checks the sum, brings the bytes to the disk and gives the file its name. With a wrong sum it is deleted.
    pub fn finish(self, sha256: Option<&str>) -> Result<PathBuf, FetchError> {
        if let Some(expected) = sha256 {
            let got = sha256_of(&self.path)?;
            if got != expected {
                delete(&self.path)?;
                return Err(FetchError::Checksum { path: self.target, expected: expected.to_owned(), got });
            }
        }
        self.file.sync_all().map_err(|e| FetchError::io(&self.path, e))?;
        std::fs::rename(&self.path, &self.target).map_err(|e| FetchError::io(&self.target, e))?;
        if let Some(Ok(folder)) = self.target.parent().map(File::open) {
            // Some file systems cannot sync a folder; the file itself is safe.
            let _ = folder.sync_all();
        }
        Ok(self.target)
    }
}

/// Lower-case hex of a file's SHA-256.
pub(crate) fn sha256_of(path: &Path) -> Result<String, FetchError> {
    let io = |e| FetchError::io(path, e);
    let mut file = File::open(path).map_err(io)?;
    let (mut sum, mut buffer) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut buffer).map_err(io)? {
            0 => return Ok(sum.finalize().iter().map(|b| format!("{b:02x}")).collect()),
            n => sum.update(&buffer[..n]),
        }
    }
}
