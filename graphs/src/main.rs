//! The `omni-flow` program: runs, checks and draws graphs, explains nodes, and looks after models.

mod check;
mod cli;
mod draw;
mod failure;
mod load;
mod models;
mod nodes;
mod output;
mod registry;
mod run;
mod serve;
mod shell;
mod talk;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use tracing_subscriber::EnvFilter;

use cli::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let as_json = match &cli.command {
        Command::Run(a) => a.json,
        Command::Check(a) => a.json,
        Command::Nodes(a) => a.json,
        Command::Talk(a) => a.json,
        _ => false,
    };
    match command(cli.command) {
        Ok(()) => match output::failed() {
            None => ExitCode::SUCCESS,
            Some(e) => {
                eprintln!("error: cannot write standard output: {e}");
                ExitCode::FAILURE
            }
        },
        Err(failure) => {
            match as_json {
                true => output::last(format!("{}\n", failure.to_json())),
                false => failure.print(),
            }
            ExitCode::from(failure.code())
        }
    }
}

fn command(command: Command) -> Result<(), Failure> {
    log()?;
    let registry = || registry::registry().context("the node types contradict each other");
    match command {
        Command::Run(args) => run::run(&args, &registry()?),
        Command::Talk(args) => talk::run(&args),
        Command::Check(args) => check::check(&args, &registry()?),
        Command::Draw(args) => draw::draw(&args, &registry()?),
        Command::Nodes(args) => nodes::nodes(&args, &registry()?),
        Command::Models(args) => models::models(&args.action),
        Command::Completions { shell } => {
            shell::completions(shell);
            Ok(())
        }
        Command::Man { folder } => shell::man(folder.as_deref()),
    }
}

/// Logs to standard error what `OMNI_FLOW_LOG`, or else `RUST_LOG`, asks for.
fn log() -> Result<(), Failure> {
    let set = |name: &'static str| std::env::var(name).ok().filter(|v| !v.is_empty()).map(|v| (name, v));
    let filter = match set("OMNI_FLOW_LOG").or_else(|| set("RUST_LOG")) {
        // The decoder library logs as errors what it returns as errors.
        None => EnvFilter::new("warn,symphonia_core=off"),
        Some((name, value)) => EnvFilter::try_new(&value).map_err(|e| {
            Failure::usage(format!("{name}=`{value}` is no log filter: {e}"), "write for instance OMNI_FLOW_LOG=debug")
        })?,
    };
    // The handshake of this library writes requests down as they are, with the key in them.
    let filter = ["tungstenite=info", "tokio_tungstenite=info"]
        .iter()
        .filter_map(|d| d.parse().ok())
        .fold(filter, EnvFilter::add_directive);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time();
    // A second subscriber (in tests) is not wanted and no error.
    let _ = log.try_init();
    Ok(())
}
