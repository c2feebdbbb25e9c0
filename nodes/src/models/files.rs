//! From the `model` option of a node to files on this machine.

use std::path::Path;
use std::sync::LazyLock;

#[cfg(any(feature = "silero", feature = "whisper", feature = "chat", feature = "piper"))]
use omni_flow::OptionError;
use omni_flow::{BuildCx, BuildError};

#[cfg(any(feature = "silero", feature = "whisper", feature = "chat", feature = "piper"))]
use crate::catalogue::Health;
use crate::catalogue::{Bars, Catalogue, FetchError, FetchOptions, ModelFiles, Spec, Task};

/// One set of bars for all fetches of the process, so that they share the terminal.
static BARS: LazyLock<Bars> = LazyLock::new(Bars::default);

/// The files of `model` for `task`: a name of the catalogue, a path (relative to the graph file's folder), a URL or a
/// hub file.
/// Fetches what is missing, with progress bars on standard error, unless the engine is offline. Blocks.
///
/// # Errors
/// [`BuildError`] with the words of the catalogue: what is missing and the command that gets it.
pub fn fetch(task: Task, model: &str, cx: &BuildCx) -> Result<ModelFiles, BuildError> {
    let catalogue = Catalogue::builtin().map_err(BuildError::from_error)?;
    let mut options = FetchOptions::from_env().map_err(BuildError::from_error)?;
    options.offline = cx.offline;
    let spec = in_folder(model, &cx.folder);
    catalogue.resolve(&spec, &options, &*BARS).map_err(|e| match unknown(&catalogue, task, &e, &cx.folder) {
        Some((message, hint)) => BuildError::new(format!("{message}; {hint}")),
        None => BuildError::from_error(e),
    })
}

/// Whether the files of `model` for `task`, the value of the option `option`, are there and whole. Reads them; fetches nothing.
///
/// # Errors
/// A path that leads nowhere, a name that nobody knows, a file that is not as promised; offline also one that is missing.
#[cfg(any(feature = "silero", feature = "whisper", feature = "chat", feature = "piper"))]
pub(crate) fn look(task: Task, option: &str, model: &str, cx: &BuildCx) -> Result<(), OptionError> {
    let wrong = |message: String, hint: &str| Err(OptionError::new(option, message, hint));
    let catalogue = Catalogue::builtin().map_err(|e| OptionError::new(option, e.to_string(), ""))?;
    let spec = in_folder(model, &cx.folder);
    let told = |e: FetchError| {
        let (message, hint) = unknown(&catalogue, task, &e, &cx.folder).unwrap_or((e.to_string(), String::new()));
        OptionError::new(option, message, hint)
    };
    match spec.parse::<Spec>() {
        Ok(Spec::Name(name)) => {
            let asked = FetchOptions::from_env().and_then(|o| catalogue.verify(&name, &o.cache));
            let files = asked.map_err(told)?;
            let state = |h| files.iter().filter(|(_, x)| *x == h).map(|(f, _)| f.name.as_str()).collect::<Vec<_>>();
            let (damaged, missing) = (state(Health::Damaged), state(Health::Missing));
            if !damaged.is_empty() {
                let m = format!("`{}` of model `{name}` has the wrong size or sum", damaged.join("`, `"));
                return wrong(
                    m,
                    &format!("fetch it again: `omni-flow models rm {name} && omni-flow models pull {name}`"),
                );
            }
            if cx.offline && !missing.is_empty() {
                let m = format!("model `{name}` is not in the cache");
                return wrong(m, &format!("fetch it: `omni-flow models pull {name}`"));
            }
            Ok(())
        }
        Ok(Spec::Path(path)) if !path.exists() => {
            wrong(format!("there is no `{}`", path.display()), "relative paths start at the folder of the graph file")
        }
        Ok(_) => Ok(()),
        Err(e) => Err(told(e)),
    }
}

/// What to say, and to do, about a name that the catalogue does not have: its models for `task`, and how a file is
/// written. `None` for other errors.
fn unknown(catalogue: &Catalogue, task: Task, e: &FetchError, folder: &Path) -> Option<(String, String)> {
    let (name, message) = match e {
        FetchError::Unknown { name, .. } => (name, format!("model `{name}` is not in the catalogue")),
        FetchError::BadName(name) => (name, e.to_string()),
        _ => return None,
    };
    let fitting = catalogue.models().iter().filter(|m| m.task.is_none_or(|t| t == task));
    let fitting: Vec<&str> = fitting.map(|m| m.name.as_str()).collect();
    let mut hint = format!("for {task} it has {}", fitting.join(", "));
    let extension = Path::new(name).extension().unwrap_or_default();
    if FILES.iter().any(|f| extension.eq_ignore_ascii_case(f)) || folder.join(name).exists() {
        hint.push_str(&format!("; for a file write `./{name}`, relative paths start at the folder of the graph file"));
    }
    Some((message, hint))
}

/// Endings of model files.
const FILES: [&str; 6] = ["gguf", "onnx", "bin", "safetensors", "pt", "json"];

/// The file or folder of the user that `model` names, if it names one.
#[cfg(feature = "whisper")]
pub(super) fn own(model: &str, cx: &BuildCx) -> Option<std::path::PathBuf> {
    match in_folder(model, &cx.folder).parse() {
        Ok(Spec::Path(path)) => Some(path),
        _ => None,
    }
}

/// A relative path is meant from the graph file's folder; all else stays.
fn in_folder(model: &str, folder: &Path) -> String {
    match model.parse::<Spec>() {
        Ok(Spec::Path(p)) if p.is_relative() && !p.starts_with("~") => folder.join(p).to_string_lossy().into_owned(),
        _ => model.to_owned(),
    }
}

/// The file of `files` that ends in one of `extensions`.
#[cfg(any(feature = "silero", feature = "chat", feature = "piper"))]
pub(super) fn pick<'a>(files: &'a ModelFiles, extensions: &[&str], what: &str) -> Result<&'a Path, BuildError> {
    let found = extensions.iter().find_map(|e| files.with_extension(e));
    found.ok_or_else(|| {
        let have: Vec<_> = files.files.iter().filter_map(|f| f.file_name()).map(|n| n.to_string_lossy()).collect();
        BuildError::new(format!(
            "model `{}` in {} has no {what} ({}); it has: {}",
            files.name,
            files.folder.display(),
            extensions.join(", "),
            have.join(", ")
        ))
    })
}

/// The one ONNX file of `files`.
#[cfg(feature = "silero")]
pub(crate) fn onnx(files: &ModelFiles) -> Result<&Path, BuildError> {
    pick(files, &["onnx"], "ONNX file")
}
