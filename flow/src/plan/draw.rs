//! A plan as Mermaid text; lanes are colours. The SVG picture is in `svg.rs`.

use std::fmt::Write;

use super::Plan;

/// Fill and line colours of lanes, `main` first. Readable on white and in print.
pub(super) const COLOURS: [(&str, &str); 8] = [
    ("#eef2f7", "#52616f"),
    ("#fde7d9", "#b5541c"),
    ("#e2f1e4", "#2f7a3c"),
    ("#e6e4f8", "#5145a8"),
    ("#fbf0c9", "#8a6d00"),
    ("#fbe1ea", "#a8305f"),
    ("#dcf1f3", "#1f7480"),
    ("#ececec", "#444444"),
];

impl Plan {
    /// A Mermaid flow chart: one subgraph per lane besides `main`, feedback edges dotted.
    pub fn mermaid(&self) -> String {
        let mut s = String::from("flowchart LR\n");
        for (l, lane) in self.lanes.iter().enumerate() {
            let own = self.nodes.iter().enumerate().filter(|(_, n)| n.lane.index() == l);
            let pad = if l > 0 {
                let _ = writeln!(s, "  subgraph lane{l}[\"lane {}\"]", quoted(lane));
                "    "
            } else {
                "  "
            };
            for (i, n) in own {
                let _ = writeln!(s, "{pad}n{i}[\"{}<br/><small>{}</small>\"]:::l{l}", quoted(&n.name), quoted(&n.kind));
            }
            if l > 0 {
                s.push_str("  end\n");
            }
        }
        for e in &self.edges {
            let arrow = if e.feedback { "-.->" } else { "-->" };
            let _ = writeln!(s, "  n{} {arrow}|\"{}\"| n{}", e.from.0, quoted(&e.kind.to_string()), e.to.0);
        }
        for n in self.nodes.iter().enumerate().filter(|(_, n)| n.fences.is_some()) {
            if let Some(l) = n.1.fences {
                let _ = writeln!(s, "  n{} -. fences .-> lane{}", n.0, l.index());
            }
        }
        for (l, _) in self.lanes.iter().enumerate() {
            let (fill, line) = COLOURS[l % COLOURS.len()];
            let _ = writeln!(s, "  classDef l{l} fill:{fill},stroke:{line},color:#1d2328");
        }
        s
    }
}

/// Text within quotes of a Mermaid label.
fn quoted(s: &str) -> String {
    s.replace('&', "#amp;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;").replace('\n', " ")
}
