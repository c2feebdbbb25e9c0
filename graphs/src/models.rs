//! `omni-flow models`: what the catalogue knows, what the cache has, and how to change that.

use anyhow::Context as _;
use omni_flow_nodes::catalogue::{Bars, Catalogue, FetchError, FetchOptions, Health, Model, Other, cache_root};
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
        let other = |o: &Other| json!({ "name": o.name, "bytes": o.bytes, "files": o.files });
        output::json(&json!({ "cache": root, "models": all.iter().map(one).collect::<Vec<Value>>(),
                              "others": catalogue.others(&root).iter().map(other).collect::<Vec<Value>>() }));
        return Ok(());
    }
    let mut rows = vec![["model", "size", "state", "licence", "what"].map(str::to_owned).to_vec()];
    for (m, h) in &all {
        rows.push(vec![m.name.clone(), bytes(m.size()), health(*h).to_owned(), m.licence.clone(), m.title.clone()]);
    }
    output::put(&output::table(&rows, &[1]));
    output::put(&format!("\ncache: {}\n", root.display()));
    if all.iter().all(|(_, h)| *h == Health::Missing) {
        output::put(&format!("it has none of these; {FETCHED}\n"));
    }
    let others = catalogue.others(&root);
    if !others.is_empty() {
        output::put("also there, fetched by address or hub name (`models rm NAME` deletes one):\n");
        let rows: Vec<Vec<String>> =
            others.iter().map(|o| vec![o.name.clone(), bytes(o.bytes), o.files.join(", ")]).collect();
        output::put(&output::table(&rows, &[1]));
    }
    Ok(())
}

/// How models come into the cache.
const FETCHED: &str = "`omni-flow run GRAPH` fetches what a graph needs, `omni-flow models pull NAME` one model";

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
    let (mut found, mut bad, mut absent) = (Vec::new(), Vec::new(), Vec::new());
    for name in &names {
        let files = catalogue.verify(name, &root).map_err(run)?;
        if files.iter().all(|(_, h)| *h == Health::Missing) {
            absent.push(name.clone());
        } else if files.iter().any(|(_, h)| *h != Health::Good) {
            bad.push(name.clone());
        }
        for (file, h) in files {
            let state = if h == Health::Missing { "missing" } else { health(h) };
            if as_json {
                found.push(json!({ "model": name, "file": file.name, "state": state }));
            } else {
                output::put(&format!("{name}/{}: {state}\n", file.name));
            }
        }
    }
    if as_json {
        output::json(&found);
    } else if names.is_empty() {
        let note =
            format!("nothing to verify: the cache ({}) has no model of the catalogue; {FETCHED}\n", root.display());
        output::put(&note);
    }
    let mut why = Vec::new();
    if !bad.is_empty() {
        let again = format!("omni-flow models rm {0} && omni-flow models pull {0}", bad.join(" "));
        why.push(format!("not as promised: {}; to fetch again, run: {again}", bad.join(", ")));
    }
    if !absent.is_empty() {
        let get = format!("omni-flow models pull {}", absent.join(" "));
        why.push(format!("not in the cache ({}): {}; to fetch, run: {get}", root.display(), absent.join(", ")));
    }
    if why.is_empty() { Ok(()) } else { Err(anyhow::anyhow!(why.join("\n")).into()) }
}

fn remove(catalogue: &Catalogue, names: &[String]) -> Result<(), Failure> {
    let root = cache_root().map_err(run)?;
    let others = catalogue.others(&root);
    for name in names.iter().filter(|n| !others.iter().any(|o| o.name == **n)) {
        catalogue.get(name).map_err(run)?;
    }
    for name in names {
        let was = catalogue.remove(name, &root).with_context(|| format!("cannot delete {name}"))?;
        let told = if was { "deleted".to_owned() } else { format!("nothing to delete in {}", root.display()) };
        output::put(&format!("{name}: {told}\n"));
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
