//! An SVG picture of a plan: nodes in columns by depth, and the columns in bands of at most [`MOST`], one below the other
//! as lines of text are, so that a long chain stays as wide as a page.
//!
//! An edge to the next column is a curve. Every other one (to the next band, past a column, back) leaves its node into
//! the gap between columns, runs on a track of its own below the band, and enters through a gap: none crosses a box.
//! Texts are cut to the room that they have; the whole text is shown when the pointer rests on them.

use std::collections::BTreeMap;
use std::fmt::Write;

use unicode_width::UnicodeWidthChar as _;

use super::draw::COLOURS;
use super::{Plan, PlanNode};

/// Most columns of a band.
const MOST: usize = 4;
/// Width of a box and its least height; room between columns and between rows.
const BOX: usize = 196;
const TALL: usize = 66;
const GAP: usize = 136;
const BETWEEN: usize = 28;
/// Room at the sides (edges of the outer columns turn there), above the first band, and of a track.
const SIDE: usize = 84;
const HEAD: usize = 54;
const TRACK: usize = 20;
/// Distance between parallel edges in a gap, and how many there is room for.
const APART: usize = 9;
const LINES: usize = 6;

const INK: &str = "#1d2328";
const GREY: &str = "#52616f";

/// Where everything stands.
struct Layout {
    /// Columns of a band.
    columns: usize,
    /// Left and top of each node, and its height.
    nodes: Vec<(usize, usize, usize)>,
    /// Top of the tracks below each band.
    tracks: Vec<usize>,
    bottom: usize,
}

/// An edge with its ends.
struct Line<'a> {
    from: (usize, usize),
    to: (usize, usize),
    colour: &'a str,
    dash: &'a str,
    label: String,
}

impl Plan {
    /// An SVG picture: columns by depth in bands of four, edges with what flows, feedback edges dashed.
    pub fn svg(&self) -> String {
        let at = Layout::of(self);
        let width = at.width();
        let lanes = self.legend(width);
        let legend = lanes.iter().map(|(_, y, _)| y + 24).max().unwrap_or(0);
        let height = at.bottom + 12 + legend;
        let mut s = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{}</title>\n\
             <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
             orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"{GREY}\"/></marker></defs>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"28\" y=\"30\" font-size=\"16\" font-weight=\"600\" fill=\"{INK}\">{}</text>\n",
            escaped(&self.name),
            escaped(&fit(&self.name, 17, width - 56)),
        );
        let mut labels = String::new();
        self.edges_into(&at, &mut s, &mut labels);
        for (i, n) in self.nodes.iter().enumerate() {
            self.box_into(n, at.nodes[i], &mut s);
        }
        s.push_str(&labels);
        for (l, (x, y, lane)) in lanes.iter().enumerate() {
            let (fill, line) = COLOURS[l % COLOURS.len()];
            let y = at.bottom + y;
            let _ = writeln!(
                s,
                "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" rx=\"3\" fill=\"{fill}\" stroke=\"{line}\"/>\
                 <text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"{GREY}\">{}</text>",
                x + 18,
                y + 10,
                escaped(lane)
            );
        }
        s.push_str("</svg>\n");
        s
    }

    /// The names of the lanes, in lines of the picture's width: left, top, text.
    fn legend(&self, width: usize) -> Vec<(usize, usize, String)> {
        let (mut x, mut y) = (28, 8);
        let place = |lane: &String| {
            let text = fit(lane, 11, 200);
            let room = 18 + wide(&text, 11) + 22;
            if x > 28 && x + room > width - 28 {
                (x, y) = (28, y + 20);
            }
            let here = (x, y, text);
            x += room;
            here
        };
        self.lanes.iter().map(place).collect()
    }

    fn box_into(&self, n: &PlanNode, (x, y, tall): (usize, usize, usize), s: &mut String) {
        let (fill, line) = COLOURS[n.lane.index() % COLOURS.len()];
        let fences = n.fences.and_then(|l| self.lanes.get(l.index()));
        let more = fences.map_or(String::new(), |l| format!(" · fences {l}"));
        let place = format!("{}{more}", n.place.name());
        let (left, top, room) = (x + 12, y + (tall - TALL) / 2, BOX - 24);
        let _ = writeln!(
            s,
            "<g><title>{}: {} · {}</title><rect x=\"{x}\" y=\"{y}\" width=\"{BOX}\" height=\"{tall}\" rx=\"8\" \
             fill=\"{fill}\" stroke=\"{line}\"/><text x=\"{left}\" y=\"{}\" font-weight=\"600\" fill=\"{INK}\">{}</text>\
             <text x=\"{left}\" y=\"{}\" font-size=\"11\" fill=\"{GREY}\">{}</text>\
             <text x=\"{left}\" y=\"{}\" font-size=\"11\" fill=\"{GREY}\">{}</text></g>",
            escaped(&n.name),
            escaped(&n.kind),
            escaped(&place),
            top + 22,
            escaped(&fit(&n.name, 14, room)),
            top + 39,
            escaped(&fit(&n.kind, 11, room)),
            top + 55,
            escaped(&fit(&place, 11, room)),
        );
    }

    /// Draws the edges; what flows is written above all lines.
    fn edges_into(&self, at: &Layout, s: &mut String, labels: &mut String) {
        let mut used: BTreeMap<(usize, usize, bool), usize> = BTreeMap::new();
        let mut track = vec![0; at.tracks.len()];
        for e in &self.edges {
            let ((a, out), (b, into)) = (e.from, e.to);
            let line = Line {
                from: (at.nodes[a].0 + BOX, port(at.nodes[a], out, self.nodes[a].outputs.len())),
                to: (at.nodes[b].0, port(at.nodes[b], into, self.nodes[b].inputs.len())),
                colour: COLOURS[e.lane.index() % COLOURS.len()].1,
                dash: if e.feedback { " stroke-dasharray=\"5 4\"" } else { "" },
                label: e.kind.to_string(),
            };
            if at.adjacent(self, a, b) {
                line.curve(s, labels);
                continue;
            }
            let (band, column) = at.place(self.nodes[a].depth);
            let mut next = |gap: (usize, usize, bool)| {
                let n = used.entry(gap).or_insert(0);
                *n += 1;
                (*n - 1) % LINES
            };
            // Of the edges that leave into a gap only those of one band meet; those that enter may come from afar.
            let out = line.from.0 + 14 + APART * next((band, column, true));
            let into = line.to.0 - 24 - APART * next((0, at.place(self.nodes[b].depth).1, false));
            let y = at.tracks[band] + TRACK * track[band];
            track[band] += 1;
            line.around(out, into, y, s, labels);
        }
    }
}

impl Layout {
    fn of(plan: &Plan) -> Self {
        let deep = plan.nodes.iter().map(|n| n.depth + 1).max().unwrap_or(1);
        let bands = deep.div_ceil(MOST);
        let mut at = Self { columns: deep.div_ceil(bands), nodes: Vec::new(), tracks: Vec::new(), bottom: 0 };
        let rows = at.rows(plan);
        at.nodes = vec![(0, 0, 0); plan.nodes.len()];
        let mut top = HEAD;
        for band in 0..bands {
            let own: Vec<usize> = (0..plan.nodes.len()).filter(|n| at.place(plan.nodes[*n].depth).0 == band).collect();
            let tall = |n: usize| TALL.max(18 * plan.nodes[n].inputs.len().max(plan.nodes[n].outputs.len()));
            let row = own.iter().map(|n| tall(*n)).max().unwrap_or(TALL) + BETWEEN;
            let most = own.iter().map(|n| rows[*n] + 1).max().unwrap_or(0);
            for n in own {
                let (_, column) = at.place(plan.nodes[n].depth);
                at.nodes[n] = (SIDE + column * (BOX + GAP), top + rows[n] * row, tall(n));
            }
            top += most * row;
            at.tracks.push(top + 2);
            let around = |e: &&super::PlanEdge| {
                at.place(plan.nodes[e.from.0].depth).0 == band && !at.adjacent(plan, e.from.0, e.to.0)
            };
            top += TRACK * plan.edges.iter().filter(around).count();
            top += if band + 1 < bands { 18 } else { 0 };
        }
        at.bottom = top;
        at
    }
    /// Band and column of nodes of this depth.
    fn place(&self, depth: usize) -> (usize, usize) {
        (depth / self.columns, depth % self.columns)
    }
    fn width(&self) -> usize {
        2 * SIDE + self.columns * (BOX + GAP) - GAP
    }
    /// Whether an edge goes to the next column of the same band.
    fn adjacent(&self, plan: &Plan, from: usize, to: usize) -> bool {
        let ((a, c), (b, d)) = (self.place(plan.nodes[from].depth), self.place(plan.nodes[to].depth));
        a == b && d == c + 1
    }
    /// The row of each node in its band: near the mean row of what feeds it from the column before; no row stays empty.
    fn rows(&self, plan: &Plan) -> Vec<usize> {
        let mut rows = vec![0; plan.nodes.len()];
        let deep = plan.nodes.iter().map(|n| n.depth + 1).max().unwrap_or(0);
        for depth in 0..deep {
            let mut own: Vec<usize> = (0..plan.nodes.len()).filter(|n| plan.nodes[*n].depth == depth).collect();
            let wish = |n: usize| {
                let fed = |e: &&super::PlanEdge| e.to.0 == n && !e.feedback;
                let fed: Vec<usize> = plan.edges.iter().filter(fed).map(|e| rows[e.from.0]).collect();
                if fed.is_empty() { n as f64 } else { fed.iter().sum::<usize>() as f64 / fed.len() as f64 }
            };
            own.sort_by(|a, b| wish(*a).total_cmp(&wish(*b)).then(a.cmp(b)));
            let (first, mut free, mut placed) = (self.place(depth).1 == 0, 0, Vec::new());
            for n in own {
                let row = if first { free } else { free.max(wish(n).round() as usize) };
                placed.push((n, row));
                free = row + 1;
            }
            placed.into_iter().for_each(|(n, row)| rows[n] = row);
        }
        for band in 0..deep.div_ceil(self.columns) {
            let own: Vec<usize> = (0..rows.len()).filter(|n| self.place(plan.nodes[*n].depth).0 == band).collect();
            let mut taken: Vec<usize> = own.iter().map(|n| rows[*n]).collect();
            taken.sort_unstable();
            taken.dedup();
            own.iter().for_each(|n| rows[*n] = taken.partition_point(|row| *row < rows[*n]));
        }
        rows
    }
}

impl Line<'_> {
    fn path(&self, d: &str, s: &mut String) {
        let (colour, dash) = (self.colour, self.dash);
        let _ = writeln!(
            s,
            "<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-linejoin=\"round\"{dash} \
             marker-end=\"url(#tip)\"/>"
        );
    }
    /// To the next column.
    fn curve(&self, s: &mut String, labels: &mut String) {
        let ((x1, y1), (x2, y2)) = (self.from, self.to);
        let bend = (x2 - x1) / 2;
        self.path(&format!("M{x1} {y1} C{} {y1} {} {y2} {x2} {y2}", x1 + bend, x2 - bend), s);
        // Next to its end, where edges of one producer have parted; on the side that the curve does not come from.
        let y = if y1 < y2 { y2 + 13 } else { y2 - 5 };
        self.label((x2 - 10, y), "end", GAP - 16, labels);
    }
    /// Out into the gap at `out`, along `y`, and through the gap at `into`.
    fn around(&self, out: usize, into: usize, y: usize, s: &mut String, labels: &mut String) {
        let ((x1, y1), (x2, y2)) = (self.from, self.to);
        // Corners of 6: the sign of each turn.
        let step = |from: usize, to: usize| if to >= from { from + 6 } else { from - 6 };
        let d = format!(
            "M{x1} {y1} H{} Q{out} {y1} {out} {} V{} Q{out} {y} {} {y} H{} Q{into} {y} {into} {} V{} Q{into} {y2} {} {y2} \
             H{x2}",
            out - 6,
            y1 + 6,
            y - 6,
            step(out, into),
            step(into, out),
            step(y, y2),
            step(y2, y),
            into + 6,
        );
        self.path(&d, s);
        let room = out.abs_diff(into);
        if room > 60 {
            self.label(((out + into) / 2, y - 4), "middle", room - 12, labels);
        } else {
            self.label((out.max(into) + 6, y - 4), "start", GAP, labels);
        }
    }
    fn label(&self, (x, y): (usize, usize), anchor: &str, room: usize, labels: &mut String) {
        let _ = writeln!(
            labels,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"10\" fill=\"{GREY}\" text-anchor=\"{anchor}\" stroke=\"#ffffff\" \
             stroke-width=\"3\" paint-order=\"stroke\"><title>{}</title>{}</text>",
            escaped(&self.label),
            escaped(&fit(&self.label, 10, room))
        );
    }
}

/// The height at which port `port` of `ports` leaves or enters a box.
fn port((_, top, tall): (usize, usize, usize), port: usize, ports: usize) -> usize {
    top + tall * (2 * port + 1) / (2 * ports.max(1))
}

/// Width of a text in pixels, rather too much than too little: fonts differ.
fn wide(text: &str, size: usize) -> usize {
    let each = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '!' | '(' | ')' | '·' => 36,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 98,
        c if c.is_ascii_uppercase() => 74,
        c if c.is_ascii() => 62,
        c => 78.max(55 * c.width().unwrap_or(2)),
    };
    (text.chars().map(each).sum::<usize>() * size).div_ceil(100)
}

/// A text cut to a width.
fn fit(text: &str, size: usize, room: usize) -> String {
    if wide(text, size) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        short.push(c);
        if wide(&short, size) + wide("…", size) > room {
            short.pop();
            break;
        }
    }
    format!("{}…", short.trim_end())
}

/// Text as XML 1.0 can hold it.
fn escaped(s: &str) -> String {
    let s = s.replace(|c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'), "\u{fffd}");
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_its_room() {
        assert_eq!(fit("short", 13, 100), "short");
        for text in
            ["a-very-long-name-of-a-node-that-goes-on", "語語語語語語語語語語語語語語語語語語", &"W".repeat(200)]
        {
            let cut = fit(text, 13, 120);
            assert!(cut.ends_with('…') && wide(&cut, 13) <= 120 && cut.chars().count() > 4, "{cut}");
        }
    }
    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(escaped("a<b>&\"c\"\u{1}\n"), "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}\u{fffd}");
    }
}
