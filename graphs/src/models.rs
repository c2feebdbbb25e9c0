//! `omni-flow models`: what the catalogue knows, what the cache has, and how to change that.

use anyhow::Context as _;
use omni_flow_nodes::catalogue::{Bars, Catalogue, FetchError, FetchOptions, Health, Model, cache_root};
use serde_json::{Value, json};

use crate::cli::ModelsAction;
use crate::failure::Failure;
use crate::output;

/// Does one action on the cache.
pub fn models(action: &ModelsAction) -> Result<(), Failure> {
    let catalogue = Catalogue::builtin().map_err(run)?;
    match action {
        ModelsAction::List { json } => list(&catalogue, *json),
        ModelsAction::Pull { names, from, offline, json } => {
            let options =
                FetchOptions { from: from.clone(), offline: *offline, ..FetchOptions::from_env().map_err(run)? };
            pull(&catalogue, names, &options, *json)
        }
        ModelsAction::Verify { names, json } => verify(&catalogue, names, *json),
        ModelsAction::Rm { names } => remove(&catalogue, names),
    }
}

/// An unknown name is a wrong command line; all else is a failed run.
fn run(e: FetchError) -> Failure {
    match e {
        FetchError::Unknown { .. } | FetchError::BadName(_) | FetchError::BadSpec { .. } => {
            Failure::usage(e.to_string(), "`omni-flow models list` shows the catalogue")
        }
        e => Failure::Run(e.into()),
    }
}

fn list(catalogue: &Catalogue, as_json: bool) -> Result<(), Failure> {
    let root = cache_root().map_err(run)?;
    let all = catalogue.list(&root);
    if as_json {
        let one = |(m, h): &(&Model, Health)| {
            json!({ "name": m.name, "title": m.title, "licence": m.licence, "note": m.note, "bytes": m.size(),
                    "files": m.files.iter().map(|f| &f.name).collect::<Vec<_>>(), "state": health(*h),
                    "folder": m.folder(&root) })
        };
        output::json(&json!({ "cache": root, "models": all.iter().map(one).collect::<Vec<Value>>() }));
        return Ok(());
    }
    let mut rows = vec![["model", "size", "state", "licence", "what"].map(str::to_owned).to_vec()];
    for (m, h) in &all {
        rows.push(vec![m.name.clone(), bytes(m.size()), health(*h).to_owned(), m.licence.clone(), m.title.clone()]);
    }
    output::put(&output::table(&rows, &[1]));
    output::put(&format!("\ncache: {}\n", root.display()));
    Ok(())
}

fn pull(catalogue: &Catalogue, names: &[String], options: &FetchOptions, as_json: bool) -> Result<(), Failure> {
    let bars = Bars::default();
    let mut got = Vec::new();
    for name in names {
        let files = catalogue.resolve(name, options, &bars).map_err(run)?;
        if as_json {
            got.push(json!({ "name": name, "folder": files.folder, "files": files.files }));
        } else {
            output::put(&format!("{name}: {}\n", files.folder.display()));
        }
    }
    if as_json {
        output::json(&got);
    }
    Ok(())
}

fn verify(catalogue: &Catalogue, names: &[String], as_json: bool) -> Result<(), Failure> {
    let root = cache_root().map_err(run)?;
    let cached = catalogue.list(&root).into_iter().filter(|(_, h)| *h != Health::Missing);
    let names: Vec<String> =
        if names.is_empty() { cached.map(|(m, _)| m.name.clone()).collect() } else { names.to_vec() };
    let (mut found, mut bad) = (Vec::new(), Vec::new());
    for name in &names {
        for (file, h) in catalogue.verify(name, &root).map_err(run)? {
            if h != Health::Good {
                bad.push(name.clone());
            }
            if as_json {
                found.push(json!({ "model": name, "file": file.name, "state": health(h) }));
            } else {
                output::put(&format!("{name}/{}: {}\n", file.name, health(h)));
            }
        }
    }
    if as_json {
        output::json(&found);
    }
    bad.dedup();
    if bad.is_empty() {
        return Ok(());
    }
    let again = format!("omni-flow models rm {0} && omni-flow models pull {0}", bad.join(" "));
    Err(anyhow::anyhow!("not as promised: {}; to fetch again, run: {again}", bad.join(", ")).into())
}

fn remove(catalogue: &Catalogue, names: &[String]) -> Result<(), Failure> {
    let root = cache_root().map_err(run)?;
    for name in names {
        catalogue.get(name).map_err(run)?;
    }
    for name in names {
        let was = catalogue.remove(name, &root).with_context(|| format!("cannot delete {name}"))?;
        output::put(&format!("{name}: {}\n", if was { "deleted" } else { "was not in the cache" }));
    }
    Ok(())
}

fn health(h: Health) -> &'static str {
    match h {
        Health::Good => "cached",
        Health::Missing => "-",
        Health::Damaged => "damaged",
    }
}

fn bytes(n: u64) -> String {
    format!("{:.1} MiB", n as f64 / f64::from(1 << 20))
}
