//! What `cargo metadata` says about the workspace and all it depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// All packages that are built for any target, and which of them are ours.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
    pub workspace_members: BTreeSet<String>,
}

/// One package.
#[derive(Debug, Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    /// Where it comes from; nothing for those in this repository.
    pub source: Option<String>,
    pub dependencies: Vec<Dependency>,
    /// Its features, by name, and what each turns on.
    #[serde(default)]
    pub features: BTreeMap<String, Vec<String>>,
}

/// A dependency as a manifest states it.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    pub name: String,
    /// Nothing, `dev` or `build`.
    pub kind: Option<String>,
}

impl Metadata {
    /// Asks cargo, with the versions of the lock file.
    pub fn load(root: &Path) -> anyhow::Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let args = ["metadata", "--format-version", "1", "--locked"];
        let out = Command::new(cargo).args(args).current_dir(root).output().context("cannot start cargo metadata")?;
        ensure!(out.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&out.stderr).trim());
        serde_json::from_slice(&out.stdout).context("cannot read the output of cargo metadata")
    }
    /// Our own packages.
    pub fn ours(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|p| self.workspace_members.contains(&p.id))
    }
}
