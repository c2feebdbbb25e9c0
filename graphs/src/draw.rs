//! `omni-flow draw`: a checked graph as a picture.

use anyhow::Context as _;
use omni_flow::Registry;

use crate::cli::{DrawArgs, Format};
use crate::failure::Failure;
use crate::{load, output};

/// Draws a graph to a file or to standard output.
pub fn draw(args: &DrawArgs, registry: &Registry) -> Result<(), Failure> {
    let layers = load::layers(&args.graph.sets, &args.graph.overrides);
    let file = load::read(&args.graph.graph, &layers)?;
    let (plan, _) = load::check(&file, registry)?;
    let svg = args.output.as_ref().and_then(|p| p.extension()).is_some_and(|e| e.eq_ignore_ascii_case("svg"));
    if let (None, Some(path)) = (args.format, &args.output) {
        let known = ["svg", "mmd", "mermaid", "md", "txt"];
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        if let Some(e) = ending.filter(|e| !known.contains(&e.as_str())) {
            let hint = "end it in .svg or .mmd, or add --format";
            return Err(Failure::usage(format!("no picture is written as .{e}"), hint));
        }
    }
    let picture = match args.format {
        Some(Format::Svg) => plan.svg(),
        Some(Format::Mermaid) => plan.mermaid(),
        None if svg => plan.svg(),
        None => plan.mermaid(),
    };
    match &args.output {
        Some(path) => std::fs::write(path, picture).with_context(|| format!("cannot write `{}`", path.display()))?,
        None => output::put(&picture),
    }
    Ok(())
}
