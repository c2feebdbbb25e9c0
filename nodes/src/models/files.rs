//! From the `model` option of a node to files on this machine.

use std::path::Path;
use std::sync::LazyLock;

use omni_flow::{BuildCx, BuildError, OptionError};

use crate::catalogue::{Bars, Catalogue, FetchOptions, Health, ModelFiles, Spec};

/// One set of bars for all fetches of the process, so that they share the terminal.
static BARS: LazyLock<Bars> = LazyLock::new(Bars::default);

/// The files of `model`: a name of the catalogue, a path (relative to the graph file's folder), a URL or a hub file.
/// Fetches what is missing, with progress bars on standard error, unless the engine is offline. Blocks.
///
/// # Errors
/// [`BuildError`] with the words of the catalogue: what is missing and the command that gets it.
pub fn fetch(model: &str, cx: &BuildCx) -> Result<ModelFiles, BuildError> {
    let catalogue = Catalogue::builtin().map_err(BuildError::from_error)?;
    let mut options = FetchOptions::from_env().map_err(BuildError::from_error)?;
    options.offline = cx.offline;
    let spec = in_folder(model, &cx.folder);
    catalogue.resolve(&spec, &options, &*BARS).map_err(BuildError::from_error)
}

/// Whether the files of `model`, the value of the option `option`, are there and whole. Reads them; fetches nothing.
///
/// # Errors
/// A path that leads nowhere, a name that nobody knows, a file that is not as promised; offline also one that is missing.
pub(crate) fn look(option: &str, model: &str, cx: &BuildCx) -> Result<(), OptionError> {
    let wrong = |message: String, hint: &str| Err(OptionError::new(option, message, hint));
    let catalogue = Catalogue::builtin().map_err(|e| OptionError::new(option, e.to_string(), ""))?;
    let spec = in_folder(model, &cx.folder);
    match spec.parse::<Spec>() {
        Ok(Spec::Name(name)) => {
            let asked = FetchOptions::from_env().and_then(|o| catalogue.verify(&name, &o.cache));
            let files = asked.map_err(|e| OptionError::new(option, e.to_string(), ""))?;
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
        Err(e) => wrong(e.to_string(), ""),
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
pub(crate) fn onnx(files: &ModelFiles) -> Result<&Path, BuildError> {
    pick(files, &["onnx"], "ONNX file")
}
