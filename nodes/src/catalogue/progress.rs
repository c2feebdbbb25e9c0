//! How fetching is watched and stopped.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::sync::Mutex;

/// What happens while fetching.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A source is tried.
    Trying {
        /// The model.
        model: &'a str,
        /// The source, for a person to read.
        source: &'a str,
    },
    /// A source failed; the next one is tried.
    Failed {
        /// The source.
        source: &'a str,
        /// Why.
        error: &'a str,
    },
    /// Another process fetches the same model; waiting for it.
    Waiting {
        /// The model.
        model: &'a str,
    },
    /// A file begins.
    Begin {
        /// Its name.
        file: &'a str,
        /// Its size, if known.
        total: Option<u64>,
        /// Bytes that are there from an earlier try.
        have: u64,
    },
    /// A file has so many bytes now.
    At {
        /// Its name.
        file: &'a str,
        /// Bytes.
        done: u64,
    },
    /// A file is complete, verified and in its place.
    Finished {
        /// Its name.
        file: &'a str,
    },
}

/// Watches fetching; may stop it.
pub trait Progress: Send + Sync {
    /// Something happened.
    fn event(&self, event: Event<'_>);

    /// Asked often; `true` ends fetching with [`super::FetchError::Cancelled`] and keeps what has arrived.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn event(&self, _: Event<'_>) {}
}

/// Progress bars on standard error; where that is no terminal, a line for each source instead.
#[derive(Debug, Default)]
pub struct Bars {
    all: MultiProgress,
    files: Mutex<HashMap<String, ProgressBar>>,
}

impl Bars {
    fn say(&self, line: &str) {
        if self.all.is_hidden() {
            eprintln!("{line}");
        } else if let Err(e) = self.all.println(line) {
            tracing::debug!("the terminal takes no line: {e}");
        }
    }
}

impl Progress for Bars {
    fn event(&self, event: Event<'_>) {
        let mut files = self.files.lock().unwrap_or_else(|e| e.into_inner());
        match event {
            Event::Trying { model, source } => self.say(&format!("{model}: {source}")),
            Event::Failed { source, error } => self.say(&format!("  {source} failed: {error}")),
            Event::Waiting { model } => self.say(&format!("{model}: waiting for another process")),
            Event::Begin { file, total, have } => {
                let bar = self.all.add(ProgressBar::new(total.unwrap_or(0)));
                let style = ProgressStyle::with_template(match total {
                    Some(_) => "  {msg:32} {bar:30} {bytes:>10} of {total_bytes} {bytes_per_sec}",
                    None => "  {msg:32} {spinner} {bytes:>10} {bytes_per_sec}",
                });
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
                bar.set_message(file.to_owned());
                bar.set_position(have);
                files.insert(file.to_owned(), bar);
            }
            Event::At { file, done } => files.get(file).into_iter().for_each(|bar| bar.set_position(done)),
            Event::Finished { file } => files.remove(file).into_iter().for_each(|bar| bar.finish()),
        }
    }
}
