//! Drawings of a plan: Mermaid text, and SVG laid out in columns by depth. Lanes are colours.

use std::fmt::Write;

use super::Plan;

/// Fill and line colours of lanes, `main` first. Readable on white and in print.
const COLOURS: [(&str, &str); 8] = [
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

    /// An SVG picture: columns by depth, edges as curves with what flows, feedback edges dashed.
    pub fn svg(&self) -> String {
        const W: usize = 224;
        const H: usize = 52;
        const GAP_X: usize = 156;
        const GAP_Y: usize = 34;
        const EDGE: usize = 28;
        let rows = self.rows();
        let columns = self.nodes.iter().map(|n| n.depth + 1).max().unwrap_or(1);
        let tall = rows.iter().map(|r| r + 1).max().unwrap_or(1);
        let x = |n: usize| EDGE + self.nodes[n].depth * (W + GAP_X);
        let y = |n: usize| EDGE + 26 + rows[n] * (H + GAP_Y);
        let width = 2 * EDGE + columns * (W + GAP_X) - GAP_X;
        let loops = self.edges.iter().filter(|e| self.nodes[e.to.0].depth <= self.nodes[e.from.0].depth).count();
        let bottom = EDGE + 26 + tall * (H + GAP_Y) + loops * 18;
        let height = bottom + 34;
        let mut s = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{}</title>\n\
             <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
             orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"#52616f\"/></marker></defs>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"{EDGE}\" y=\"30\" font-size=\"16\" font-weight=\"600\" fill=\"#1d2328\">{}</text>\n",
            escaped(&self.name),
            escaped(&self.name),
        );
        let mut looped = 0;
        for e in &self.edges {
            let line = COLOURS[e.lane.index() % COLOURS.len()].1;
            let (x1, y1) = (x(e.from.0) + W, spread(y(e.from.0), H, e.from.1, self.nodes[e.from.0].outputs.len()));
            let (x2, y2) = (x(e.to.0), spread(y(e.to.0), H, e.to.1, self.nodes[e.to.0].inputs.len()));
            let dash = if e.feedback { " stroke-dasharray=\"5 4\"" } else { "" };
            let label = escaped(&e.kind.to_string());
            if x2 > x1 {
                let bend = (x2 - x1) / 2;
                let _ = writeln!(
                    s,
                    "<path d=\"M{x1} {y1} C{} {y1} {} {y2} {x2} {y2}\" fill=\"none\" stroke=\"{line}\" \
                     stroke-width=\"1.5\"{dash} marker-end=\"url(#tip)\"/>",
                    x1 + bend,
                    x2 - bend
                );
                // Next to its end, where edges of one producer have parted.
                let _ = writeln!(
                    s,
                    "<text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"#52616f\" text-anchor=\"end\">{label}</text>",
                    x2 - 10,
                    y2.saturating_sub(5)
                );
            } else {
                // Back to an earlier column: below all nodes, each on a line of its own.
                let low = bottom - loops * 18 + looped * 18;
                looped += 1;
                let _ = writeln!(
                    s,
                    "<path d=\"M{x1} {y1} C{} {y1} {} {low} {x1} {low} L{x2} {low} C{} {low} {} {y2} {x2} {y2}\" \
                     fill=\"none\" stroke=\"{line}\" stroke-width=\"1.5\"{dash} marker-end=\"url(#tip)\"/>",
                    x1 + 40,
                    x1 + 40,
                    x2.saturating_sub(24),
                    x2.saturating_sub(24)
                );
                let _ = writeln!(
                    s,
                    "<text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"#52616f\" text-anchor=\"middle\">{label}</text>",
                    (x1 + x2) / 2,
                    low - 4
                );
            }
        }
        for (i, n) in self.nodes.iter().enumerate() {
            let (fill, line) = COLOURS[n.lane.index() % COLOURS.len()];
            let more =
                n.fences.and_then(|l| self.lanes.get(l.index())).map_or(String::new(), |l| format!(" · fences {l}"));
            let _ = writeln!(
                s,
                "<g><rect x=\"{}\" y=\"{}\" width=\"{W}\" height=\"{H}\" rx=\"8\" fill=\"{fill}\" stroke=\"{line}\"/>\
                 <text x=\"{tx}\" y=\"{}\" font-weight=\"600\" fill=\"#1d2328\">{}</text>\
                 <text x=\"{tx}\" y=\"{}\" font-size=\"11\" fill=\"#52616f\">{} · {}{}</text></g>",
                x(i),
                y(i),
                y(i) + 22,
                escaped(&short(&n.name, 20)),
                y(i) + 39,
                escaped(&short(&n.kind, 18)),
                n.place.name(),
                escaped(&more),
                tx = x(i) + 12,
            );
        }
        for (l, lane) in self.lanes.iter().enumerate() {
            let (fill, line) = COLOURS[l % COLOURS.len()];
            let _ = writeln!(
                s,
                "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"3\" fill=\"{fill}\" stroke=\"{line}\"/>\
                 <text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"#52616f\">{}</text>",
                EDGE + l * 120,
                height - 26,
                EDGE + l * 120 + 18,
                height - 16,
                escaped(&short(lane, 14))
            );
        }
        s.push_str("</svg>\n");
        s
    }

    /// The row of each node in its column: near the mean row of what feeds it.
    fn rows(&self) -> Vec<usize> {
        let mut rows = vec![0; self.nodes.len()];
        let columns = self.nodes.iter().map(|n| n.depth + 1).max().unwrap_or(0);
        for column in 0..columns {
            let mut own: Vec<usize> = (0..self.nodes.len()).filter(|n| self.nodes[*n].depth == column).collect();
            let wish = |n: usize| {
                let fed: Vec<usize> =
                    self.edges.iter().filter(|e| e.to.0 == n && !e.feedback).map(|e| rows[e.from.0]).collect();
                if fed.is_empty() { n as f64 } else { fed.iter().sum::<usize>() as f64 / fed.len() as f64 }
            };
            own.sort_by(|a, b| wish(*a).total_cmp(&wish(*b)).then(a.cmp(b)));
            let placed: Vec<(usize, usize)> = own
                .iter()
                .scan(0usize, |free, n| {
                    let row = if column == 0 { *free } else { (wish(*n).round() as usize).max(*free) };
                    *free = row + 1;
                    Some((*n, row))
                })
                .collect();
            for (n, row) in placed {
                rows[n] = row;
            }
        }
        rows
    }
}

/// The height at which port `port` of `ports` leaves or enters a box.
fn spread(top: usize, height: usize, port: usize, ports: usize) -> usize {
    top + height * (2 * port + 1) / (2 * ports.max(1))
}

fn short(s: &str, most: usize) -> String {
    if s.chars().count() <= most { s.to_owned() } else { s.chars().take(most - 1).chain(['…']).collect() }
}

fn escaped(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text within quotes of a Mermaid label.
fn quoted(s: &str) -> String {
    s.replace('&', "#amp;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;").replace('\n', " ")
}
