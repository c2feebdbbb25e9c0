//! A graph file with the layers that the command line and the environment put above it.

use std::collections::BTreeMap;
use std::path::Path;

use omni_flow::{CheckCx, GraphFile, Layers, Plan, Registry, Warnings};

use crate::failure::Failure;

/// The layers of `--set` and `--override`, of the environment, and of this machine's platforms.
pub fn layers(sets: &[String], overrides: &[String]) -> Layers {
    Layers {
        sets: sets.to_vec(),
        overrides: overrides.to_vec(),
        flags: Vec::new(),
        env: environment().collect(),
        platforms: platforms(),
    }
}

/// The graph file under its layers.
pub fn read(graph: &Path, layers: &Layers) -> Result<GraphFile, Failure> {
    GraphFile::load(graph, layers).map_err(Failure::Graph)
}

/// Checks a graph on this machine.
pub fn check(file: &GraphFile, registry: &Registry) -> Result<(Plan, Warnings), Failure> {
    file.check(registry, &machine()).map_err(Failure::Graph)
}

/// The same, and whether the files that the nodes name are there and whole.
pub fn check_files(file: &GraphFile, registry: &Registry, offline: bool) -> Result<(Plan, Warnings), Failure> {
    file.check(registry, &CheckCx { files: true, offline, ..machine() }).map_err(Failure::Graph)
}

/// What a check may know about this machine.
fn machine() -> CheckCx {
    let env: BTreeMap<String, String> = environment().collect();
    // The lane of answers is fenced for the client who cancels one, whether a node fences it too or not.
    let fences = vec!["reply".to_owned()];
    CheckCx { host_memory: host_memory(), env: Some(env), fences, ..CheckCx::default() }
}

/// The environment; what is not UTF-8 cannot stand in a graph and is left out.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
}

/// Names under `platforms:` that hold here: the kind of compute, the system, the architecture under both its names.
fn platforms() -> Vec<String> {
    let arch = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        "x86_64" => "amd64",
        other => other,
    };
    ["cpu", std::env::consts::OS, std::env::consts::ARCH, arch].map(str::to_owned).to_vec()
}

/// Bytes of main memory, where the system says so.
fn host_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|l| l.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}
