//! `omni-flow check`: all that is wrong with a graph, or its plan.

use std::io::IsTerminal as _;

use omni_flow::{Code, Registry};
use serde_json::json;

use crate::cli::CheckArgs;
use crate::failure::Failure;
use crate::{load, output};

/// Checks a graph and prints its plan, one value of it, or the codes of findings.
pub fn check(args: &CheckArgs, registry: &Registry) -> Result<(), Failure> {
    if args.codes {
        codes(args.json);
        return Ok(());
    }
    let Some(graph) = &args.graph else {
        return Err(Failure::usage("which graph?", "omni-flow check graphs/tone.yaml"));
    };
    let layers = load::layers(&args.sets, &args.overrides);
    let file = load::read(graph, &layers)?;
    if let Some(key) = &args.explain {
        return explain(&file, registry, key, args.json);
    }
    let (plan, warnings) = load::check_files(&file, registry, args.offline)?;
    let described = plan.describe();
    if args.json {
        output::json(&json!({ "ok": true, "plan": described, "diagnostics": warnings.to_json() }));
        return Ok(());
    }
    eprint!("{}", warnings.render(std::io::stderr().is_terminal()));
    output::put(&described.to_string());
    Ok(())
}

fn explain(file: &omni_flow::GraphFile, registry: &Registry, key: &str, as_json: bool) -> Result<(), Failure> {
    let Some(found) = file.explain_with(registry, key) else {
        let hint = "give a dotted path, for instance `nodes.llm.max-tokens`; `omni-flow nodes TYPE` shows the options";
        return Err(Failure::usage(format!("no layer sets `{key}`, and it has no default"), hint));
    };
    if as_json {
        output::json(&found);
    } else {
        let text = match found.value.as_str() {
            // The words of a default are no text of a file.
            Some(words) if found.layer == "default" => format!("{key} = {words}\nthe default of {}\n", found.at),
            _ => format!("{key} = {}\nset by {} at {}\n", found.value, found.layer, found.at),
        };
        output::put(&text);
    }
    Ok(())
}

fn codes(as_json: bool) {
    if as_json {
        let all: Vec<_> = Code::ALL
            .iter()
            .map(|c| json!({ "code": c.id(), "title": c.title(), "explanation": c.explanation() }))
            .collect();
        output::json(&all);
        return;
    }
    for c in Code::ALL {
        output::put(&format!("{}  {}\n      {}\n", c.id(), c.title(), c.explanation()));
    }
}
