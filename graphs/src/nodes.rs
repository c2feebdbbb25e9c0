//! `omni-flow nodes`: the node types, and all that one of them says about itself.

use omni_flow::{Client, Opt, Port, Registry, Schema, Weight};
use serde_json::{Value, json};

use crate::cli::NodesArgs;
use crate::failure::Failure;
use crate::output;

/// Lists the types, or explains one.
pub fn nodes(args: &NodesArgs, registry: &Registry) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        if args.json {
            output::json(&registry.iter().map(|(n, s)| to_json(n, &s)).collect::<Vec<_>>());
        } else {
            let rows: Vec<_> = registry.iter().map(|(n, s)| vec![n.to_owned(), s.about]).collect();
            output::put(&output::table(&rows, &[]));
            output::put("\n`omni-flow nodes NAME` shows ports, options and an example.\n");
        }
        return Ok(());
    };
    let Some(schema) = registry.get(name) else {
        return Err(unknown(name, registry));
    };
    if args.json {
        output::json(&to_json(name, &schema));
    } else {
        output::put(&explain(name, &schema));
    }
    Ok(())
}

fn unknown(name: &str, registry: &Registry) -> Failure {
    let near = registry.names().filter(|n| n.ends_with(name) || n.starts_with(name) || distance(n, name) <= 2);
    let near: Vec<String> = near.map(|n| format!("`{n}`")).collect();
    let hint = match &near[..] {
        [] => "`omni-flow nodes` lists them".to_owned(),
        some => format!("did you mean {}?", some.join(" or ")),
    };
    Failure::usage(format!("there is no node type `{name}`"), hint)
}

/// Edit distance of two short words (insert, delete, replace).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = replaced.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Everything about one type, for people.
fn explain(name: &str, s: &Schema) -> String {
    let mut all = format!("{name}\n  {}\n", s.about);
    for fact in facts(s) {
        all.push_str(&format!("  {fact}\n"));
    }
    let port = |p: &Port, marks: Vec<&str>| {
        let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
        vec![p.name.clone(), p.kind.to_string(), format!("{}{marks}", p.about)]
    };
    if !s.inputs.is_empty() {
        let rows: Vec<_> = s.inputs.iter().map(|p| port(p, input_marks(p))).collect();
        all.push_str(&format!("\ninputs\n{}", output::table(&rows, &[])));
    }
    if !s.outputs.is_empty() {
        let rows: Vec<_> = s.outputs.iter().map(|p| port(p, Vec::new())).collect();
        all.push_str(&format!("\noutputs\n{}", output::table(&rows, &[])));
    }
    all.push_str("\noptions\n");
    if s.options.is_empty() {
        all.push_str("  none\n");
    }
    let rows: Vec<_> = s.options.iter().map(option).collect();
    all.push_str(&output::table(&rows, &[]));
    if !s.example.is_empty() {
        all.push_str("\nexample\n");
        for line in s.example.lines() {
            all.push_str(&format!("  {line}\n"));
        }
    }
    all
}

fn option(o: &Opt) -> Vec<String> {
    let default = match (&o.default, o.required) {
        (_, true) => "required".to_owned(),
        (Some(d), _) => format!("default {d}"),
        (None, _) => "optional".to_owned(),
    };
    vec![o.name.clone(), o.value.clone(), default, o.about.clone()]
}

fn input_marks(p: &Port) -> Vec<&'static str> {
    let mut marks = Vec::new();
    if !p.required {
        marks.push("optional");
    }
    if p.lossy {
        marks.push("may lose chunks");
    }
    if p.feedback {
        marks.push("may close a cycle");
    }
    marks
}

fn facts(s: &Schema) -> Vec<&'static str> {
    let mut facts = Vec::new();
    match s.client {
        Some(Client::In) => facts.push("A client's end of the graph: `omni-flow run --input` feeds it."),
        Some(Client::Out) => {
            facts.push("A client's end of the graph: `omni-flow run` prints or writes what comes out.")
        }
        None => {}
    }
    if s.shared {
        facts.push("A model that sessions share: one copy in memory, `slots` streams at once.");
    } else if s.weight == Weight::Heavy {
        facts.push("Heavy: it runs on the compute pool.");
    }
    if s.fences {
        facts.push("Decides turns: write `fences: LANE` to make it end what is under way on that lane.");
    }
    facts
}

fn to_json(name: &str, s: &Schema) -> Value {
    let port = |p: &Port| {
        json!({ "name": p.name, "kind": p.kind.to_string(), "like": p.like, "required": p.required,
                "lossy": p.lossy, "feedback": p.feedback, "about": p.about })
    };
    json!({
        "name": name, "about": s.about, "shared": s.shared, "heavy": s.weight == Weight::Heavy, "fences": s.fences,
        "client": s.client.map(|c| if c == Client::In { "in" } else { "out" }),
        "inputs": s.inputs.iter().map(port).collect::<Vec<_>>(),
        "outputs": s.outputs.iter().map(port).collect::<Vec<_>>(),
        "options": s.options.iter().map(|o| json!({ "name": o.name, "value": o.value, "default": o.default,
            "required": o.required, "about": o.about })).collect::<Vec<_>>(),
        "example": s.example,
    })
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn the_distance_counts_edits() {
        for (a, b, d) in [("", "", 0), ("abc", "", 3), ("speech.trun", "speech.turn", 2), ("vad", "vat", 1)] {
            assert_eq!(distance(a, b), d, "{a} {b}");
        }
    }
}
