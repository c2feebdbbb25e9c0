//! Completions and manual pages, made from the command line's own description.

use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output;

/// The completion script of a shell.
pub fn completions(shell: clap_complete::Shell) {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "omni-flow", &mut text);
    output::put(&String::from_utf8_lossy(&text));
}

/// The manual page on standard output, or one per command in a folder.
pub fn man(folder: Option<&Path>) -> Result<(), Failure> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).context("cannot write the manual page")?;
        output::put(&String::from_utf8_lossy(&page));
        return Ok(());
    };
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write manual pages into `{}`; does the folder exist?", folder.display()))?;
    Ok(())
}
