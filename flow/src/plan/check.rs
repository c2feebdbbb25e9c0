//! From a graph file to a [`Plan`]: every check that one process can make, all findings at once.
//!
//! Order: the sections, the lanes, the nodes one by one, the edges, then what only the whole shows (cycles, kinds,
//! unfed inputs, budgets). A node that is wrong in itself is not blamed again for its edges.

use std::collections::BTreeMap;

use super::keys;
use super::node::Draft;
use super::{Mode, Plan, PlanEdge, PlanNode, SessionPlan, cycle, edge, hash, kinds};
use crate::file::de::from_tree;
use crate::file::secrets::{is_secret, resolve};
use crate::file::{Code, Diagnostic, Diagnostics, GraphFile, Severity, Span, Tree, kebab, same_key};
use crate::registry::{RESERVED, Registry, is_name};
use crate::units::Size;
use crate::{Lane, MAX_LANES, Place};

/// What a check may know about the machine. Nothing is looked up by the check itself, but for what [`CheckCx::files`]
/// asks.
#[derive(Clone, Debug, Default)]
pub struct CheckCx {
    /// Memory of the machine in bytes, against which budgets are summed; `None` = not checked.
    pub host_memory: Option<u64>,
    /// Memory of its accelerators in bytes; `None` = not checked.
    pub device_memory: Option<u64>,
    /// Variables for `${env:NAME}`; `None` = references are kept as they are, and no error if unset.
    pub env: Option<BTreeMap<String, String>>,
    /// Look at this machine: whether the files that nodes name are there and whole ([`Make::look`](crate::Make::look)),
    /// which are read, and whether the processors are there that nodes are bound to (`cpus`, `numa`). Without it the check
    /// is pure, and the processors are looked for when the graph is started.
    pub files: bool,
    /// With `files`: what could be fetched must be there too.
    pub offline: bool,
    /// Names of lanes that the program fences itself ([`Session::fence`](crate::Session::fence)): no node has to.
    pub fences: Vec<String>,
}

/// Findings that do not stop a graph.
pub type Warnings = Diagnostics;

/// Most sessions of a graph without a shared stage, from the table of limits.
const SESSIONS: usize = 64;
/// Most nodes of a graph: keeps the checks of the whole short, whatever the file.
const MAX_NODES: usize = 1024;

/// Top-level keys, and whether the rest of the check reads them as a section of [`keys::SECTIONS`].
const TOP: [(&str, bool); 16] = [
    ("graph", false),
    ("version", false),
    ("extends", false),
    ("lanes", false),
    ("nodes", false),
    ("session", true),
    ("serve", true),
    ("scheduler", true),
    ("placement", true),
    ("places", false),
    ("defaults", false),
    ("platforms", false),
    ("env", false),
    ("variant", false),
    ("chunked", false),
    ("about", false),
];

impl GraphFile {
    /// Checks the graph against the node types of `registry`.
    ///
    /// # Errors
    /// All that is wrong with the graph, at once.
    pub fn check(&self, registry: &Registry, cx: &CheckCx) -> Result<(Plan, Warnings), Diagnostics> {
        let mut c = Check { file: self, registry, cx, out: self.found.clone(), lanes: vec!["main".to_owned()] };
        let plan = c.run();
        let errors = c.out.iter().any(|d| d.severity == Severity::Error);
        let all = Diagnostics::new(c.out, self.sources.clone());
        match plan {
            Some(p) if !errors => Ok((p, all)),
            _ => Err(all),
        }
    }
}

pub(super) struct Check<'a> {
    pub file: &'a GraphFile,
    pub registry: &'a Registry,
    pub cx: &'a CheckCx,
    pub out: Vec<Diagnostic>,
    pub lanes: Vec<String>,
}

impl Check<'_> {
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.out.push(Diagnostic::error(code, span, message).hint(hint));
    }
    /// Reads a value, or says what is wrong with it.
    pub fn read<T: serde::de::DeserializeOwned>(&mut self, tree: &Tree) -> Option<T> {
        from_tree(tree).map_err(|d| self.out.push(d)).ok()
    }
    pub fn not_yet(&mut self, span: Span, what: &str) {
        let m = format!("{what} is not on this place yet");
        self.error(Code::NotYet, span, m, "this version does not act on it yet; leave the key out");
    }

    fn run(&mut self) -> Option<Plan> {
        let file = self.file;
        let root = &file.root;
        let name = self.top(root);
        self.read_lanes(root);
        let env = self.env_map(root.get("env"));
        let mut drafts = self.nodes(root);
        let wires = edge::wires(self, &mut drafts);
        let looped = cycle::check(self, &drafts, &wires);
        let kinds = if looped { kinds::Kinds::unknown(&drafts) } else { kinds::resolve(self, &drafts, &wires) };
        edge::unused(self, &drafts, &wires);
        self.unfenced(&drafts);
        let session = self.session(root, &drafts);
        self.memory(&drafts);
        if self.out.iter().any(|d| d.severity == Severity::Error) {
            return None;
        }
        let depth = cycle::depths(&drafts, &wires);
        let mut nodes = Vec::new();
        let mut edges = Vec::new();
        let chunked = root.get("chunked").and_then(|t| from_tree(t).ok()).unwrap_or(true);
        for w in &wires {
            let kind = kinds.output(w.from).or_else(|| drafts[w.to.0].input_kind(w.to.1))?;
            let lane = drafts[w.from.0].lane;
            let from = drafts[w.from.0].schema.as_ref().and_then(|s| s.outputs.get(w.from.1));
            edges.push(PlanEdge {
                from: w.from,
                to: w.to,
                lane,
                kind,
                limit: w.limit,
                policy: w.policy,
                deadline: w.deadline,
                strict: w.strict,
                class: w.class,
                feedback: w.feedback,
                whole: !chunked && from.is_some_and(|p| p.segments),
            });
        }
        for (i, d) in drafts.iter().enumerate() {
            nodes.push(plan_node(i, d, &wires, &kinds, depth[i], &env)?);
        }
        let folder = self.file.folder().to_owned();
        let lanes = self.lanes.clone();
        let mut plan = Plan {
            name,
            folder,
            lanes,
            nodes,
            edges,
            session,
            scheduler: keys::scheduler(root),
            chunked,
            env,
            hash: 0,
        };
        plan.hash = hash::hash(&plan, root);
        Some(plan)
    }

    fn top(&mut self, root: &Tree) -> String {
        for e in root.as_map().unwrap_or_default() {
            let key = kebab(&e.key);
            if key.starts_with("x-") {
                continue;
            }
            match TOP.iter().find(|(k, _)| *k == key) {
                None => {
                    let d = Diagnostic::error(Code::UnknownKey, e.key_span, format!("unknown key `{}`", e.key));
                    self.out.push(if RESERVED.iter().any(|r| same_key(r, &e.key)) {
                        d.hint("this is a key of a node: indent it below one")
                    } else {
                        d.nearest(&e.key, TOP.iter().map(|(k, _)| *k))
                    });
                }
                Some((k, true)) => keys::check(&e.value, k, &keys::SECTIONS, &mut self.out),
                Some(_) => {}
            }
        }
        let top = self.file.top();
        let mut name = String::new();
        match root.get("graph") {
            None => self.error(Code::MissingKey, top, "`graph` is missing", "add `graph: NAME` as the first line"),
            Some(t) => {
                if let Some(text) = self.read::<String>(t) {
                    if !is_name(&text) {
                        self.bad_name(t.span, &text);
                    }
                    name = text;
                }
            }
        }
        if let Some(t) = root.get("version").filter(|t| t.as_text() != Some("1")) {
            let m = format!("version {} is unknown", t.as_text().unwrap_or("of this shape"));
            self.error(Code::Version, t.span, m, "write `version: 1`, or leave it out");
        }
        if let Some(t) = root.get("chunked") {
            self.read::<bool>(t);
        }
        if let Some(e) = root.entry("variant") {
            self.not_yet(e.key_span, "`variant`");
        }
        if let Some(t) = root.find("serve.front-ends").filter(|t| t.as_text() != Some("1")) {
            self.not_yet(t.span, "more than one front end");
        }
        if let Some(t) = root.get("places").filter(|t| !t.is_null()) {
            match t.as_map() {
                None => self.error(
                    Code::WrongType,
                    t.span,
                    "`places` takes a map",
                    "write `places: { NAME: { process: true } }`",
                ),
                Some(m) => {
                    for e in m {
                        if !is_name(&e.key) {
                            self.bad_name(e.key_span, &e.key);
                        }
                        self.not_yet(e.key_span, &format!("place `{}`: another process", e.key));
                        for x in e.value.as_map().unwrap_or_default() {
                            if is_secret(&x.key) {
                                keys::secret(&x.key, &x.value, &mut self.out);
                            }
                        }
                    }
                }
            }
        }
        if let Some(d) = root.get("defaults").filter(|t| !t.is_null()) {
            self.defaults(d);
        }
        name
    }
    fn defaults(&mut self, d: &Tree) {
        let Some(map) = d.as_map() else {
            self.error(
                Code::WrongType,
                d.span,
                "`defaults` takes a map",
                "write `defaults: { edge: { window: ... } }`",
            );
            return;
        };
        let own = |k: &str| RESERVED.iter().any(|r| same_key(r, k)) && !["use", "in", "fences"].contains(&k);
        for e in d.get("node").and_then(Tree::as_map).unwrap_or_default().iter().filter(|e| !own(&e.key)) {
            let m = format!("`{}` cannot be a default of all nodes", e.key);
            let d = Diagnostic::error(Code::UnknownKey, e.key_span, m);
            self.out.push(d.nearest(&e.key, RESERVED.into_iter().filter(|r| own(r))));
        }
        for part in map.iter().filter(|e| e.value.as_map().is_none() && !e.value.is_null()) {
            self.error(Code::WrongType, part.value.span, "defaults are maps", "write `{ key: value }`");
        }
        for e in map {
            if e.key != "node" && e.key != "edge" {
                let d =
                    Diagnostic::error(Code::UnknownKey, e.key_span, format!("unknown key `{}` in `defaults`", e.key));
                self.out.push(d.nearest(&e.key, ["node", "edge"]));
            }
        }
    }
    pub fn bad_name(&mut self, span: Span, name: &str) {
        let mut fixed = name.to_lowercase().replace(['_', ' ', '.'], "-");
        fixed.retain(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        let fixed = fixed.trim_start_matches(|c: char| !c.is_ascii_lowercase()).to_owned();
        let hint = if fixed.is_empty() {
            "names are lower-case letters, digits and `-`, and begin with a letter".to_owned()
        } else {
            format!("write `{fixed}`: lower-case letters, digits and `-`")
        };
        self.error(Code::Name, span, format!("`{name}` is not a name"), hint);
    }
    fn read_lanes(&mut self, root: &Tree) {
        let Some(t) = root.get("lanes").filter(|t| !t.is_null()) else { return };
        let Some(items) = t.as_seq() else {
            self.error(
                Code::WrongType,
                t.span,
                format!("`lanes` takes a list, found {}", t.shape()),
                "write `lanes: [reply]`",
            );
            return;
        };
        for item in items {
            let Some(name) = self.read::<String>(item) else { continue };
            if name == "main" {
                self.error(Code::Lane, item.span, "`main` always exists", "take it out of `lanes`");
            } else if !is_name(&name) {
                self.bad_name(item.span, &name);
            } else if self.lanes.contains(&name) {
                self.error(Code::Lane, item.span, format!("lane `{name}` is declared twice"), "remove one of them");
            } else if self.lanes.len() == MAX_LANES {
                let m = format!("more than {MAX_LANES} lanes with `main`");
                self.error(Code::Lane, item.span, m, "join lanes that are always fenced together");
            } else {
                self.lanes.push(name);
            }
        }
    }
    pub fn lane(&mut self, t: &Tree) -> Option<Lane> {
        let name = self.read::<String>(t)?;
        match self.lanes.iter().position(|l| *l == name) {
            Some(i) => Lane::new(i),
            None => {
                let d = Diagnostic::error(Code::Lane, t.span, format!("there is no lane `{name}`"));
                let d = match crate::file::nearest(&name, self.lanes.iter().map(String::as_str)) {
                    Some(n) => d.hint(format!("did you mean `{n}`?")),
                    None => d.hint(format!("declare it: `lanes: [{name}]`")),
                };
                self.out.push(d);
                None
            }
        }
    }
    pub fn env_map(&mut self, t: Option<&Tree>) -> Vec<(String, String)> {
        let Some(t) = t.filter(|t| !t.is_null()) else { return Vec::new() };
        let Some(m) = t.as_map() else {
            self.error(Code::WrongType, t.span, "`env` takes a map", "write `env: { NAME: value }`");
            return Vec::new();
        };
        let mut all = Vec::new();
        for e in m {
            if is_secret(&e.key) {
                keys::secret(&e.key, &e.value, &mut self.out);
            }
            let value = self.resolved(&e.value);
            if let Some(v) = self.read::<String>(&value) {
                all.push((e.key.clone(), v));
            }
        }
        all
    }
    /// The value with `${env:NAME}` replaced by the variable's value.
    pub fn resolved(&mut self, t: &Tree) -> Tree {
        let Some(env) = &self.cx.env else { return t.clone() };
        let mut missing = Vec::new();
        let tree = resolve(t, env, &mut missing);
        for (span, name) in missing {
            let m = format!("the variable {name} is not set");
            self.error(Code::EnvUnset, span, m, format!("set it: `export {name}=...`"));
        }
        tree
    }
    fn nodes<'a>(&mut self, root: &'a Tree) -> Vec<Draft<'a>> {
        let top = self.file.top();
        let Some(t) = root.get("nodes") else {
            self.error(Code::MissingKey, top, "`nodes` is missing", "add `nodes:` with at least one node");
            return Vec::new();
        };
        let Some(m) = t.as_map().filter(|m| !m.is_empty()) else {
            if t.as_map().is_some() || t.is_null() {
                let span = root.entry("nodes").map_or(top, |e| e.key_span);
                self.error(Code::NoNodes, span, "the graph has no nodes", "add a node: `name: { use: TYPE }`");
            } else {
                let m = format!("`nodes` takes a map from name to node, found {}", t.shape());
                self.error(Code::WrongType, t.span, m, "write `name: { use: TYPE }`");
            }
            return Vec::new();
        };
        if m.len() > MAX_NODES {
            let text = format!("the graph has {} nodes, more than {MAX_NODES}", m.len());
            self.error(Code::ManyNodes, m[MAX_NODES].key_span, text, "split the graph");
        }
        let defaults = root.find("defaults.node");
        m.iter().take(MAX_NODES).map(|e| Draft::read(self, e, defaults)).collect()
    }
    fn unfenced(&mut self, drafts: &[Draft<'_>]) {
        let Some(items) = self.file.root.get("lanes").and_then(Tree::as_seq) else { return };
        for t in items {
            let at = t.as_text().and_then(|n| self.lanes.iter().position(|l| l == n));
            let Some(lane) = at.and_then(Lane::new).filter(|l| *l != Lane::MAIN) else { continue };
            let broken = drafts.iter().any(|d| d.schema.is_none());
            let name = &self.lanes[lane.index()];
            let by_code = self.cx.fences.iter().any(|n| n == name);
            if !broken && !by_code && !drafts.iter().any(|d| d.fences == Some(lane)) {
                let hint = format!("say `fences: {name}` on the node that decides turns");
                let d = Diagnostic::warning(Code::Unfenced, t.span, format!("no node fences lane `{name}`"));
                self.out.push(d.hint(hint));
            }
        }
    }
    fn session(&mut self, root: &Tree, drafts: &[Draft<'_>]) -> SessionPlan {
        let section = root.get("session");
        let has = |c| drafts.iter().any(|d| d.schema.as_ref().is_some_and(|s| s.client == Some(c)));
        let duplex = has(crate::Client::In) && has(crate::Client::Out);
        let mode = section.and_then(|s| s.get("mode"));
        if duplex && mode.is_none() {
            let span = root.entry("session").map_or(self.file.top(), |e| e.key_span);
            let m = "the graph has both client ends and does not say how they are used";
            self.error(
                Code::Mode,
                span,
                m,
                "add `session: { mode: duplex }`, or `mode: turn` for one request at a time",
            );
        }
        let slots = drafts.iter().filter(|d| d.place == Place::Shared).filter_map(|d| d.slots).min();
        let given = section.and_then(|s| s.get("max-sessions")).and_then(|t| from_tree::<usize>(t).ok());
        let time = |key: &str, default: u64| {
            let t = section.and_then(|s| keys::duration(s, key));
            t.unwrap_or(std::time::Duration::from_secs(default))
        };
        let off = section.and_then(|s| s.get("idle-ttl").or_else(|| s.get("idle-ttl-s"))).is_some_and(Tree::is_null);
        SessionPlan {
            mode: if mode.and_then(Tree::as_text) == Some("duplex") { Mode::Duplex } else { Mode::Turn },
            max_sessions: given.unwrap_or(slots.unwrap_or(SESSIONS)),
            idle_ttl: (!off).then(|| time("idle-ttl", 300)),
        }
    }
    fn memory(&mut self, drafts: &[Draft<'_>]) {
        type Part = fn(&Draft<'_>) -> u64;
        let parts: [(&str, Option<u64>, Part); 2] =
            [("host", self.cx.host_memory, |d| d.memory.host), ("device", self.cx.device_memory, |d| d.memory.device)];
        for (what, machine, of) in parts {
            let Some(machine) = machine else { continue };
            let sum = drafts.iter().map(of).fold(0u64, u64::saturating_add);
            if sum <= machine {
                continue;
            }
            let asking: Vec<&Draft<'_>> = drafts.iter().filter(|d| of(d) > 0).collect();
            let table: Vec<String> = asking.iter().map(|d| format!("`{}` {}", d.name, Size(of(d)))).collect();
            let m = format!("{what} memory: {} asked, {} there ({})", Size(sum), Size(machine), table.join(", "));
            let mut d = Diagnostic::error(Code::Memory, asking[0].memory_span, m);
            for other in &asking[1..] {
                d = d.label(other.memory_span, "also asks");
            }
            self.out.push(d.hint("lower `slots` or the budgets, or use smaller models"));
        }
    }
}

fn plan_node(
    i: usize,
    d: &Draft<'_>,
    wires: &[edge::Wire],
    kinds: &kinds::Kinds,
    depth: usize,
    env: &[(String, String)],
) -> Option<PlanNode> {
    let configured = d.configured.clone()?;
    let mut schema = d.schema.clone()?;
    for (p, port) in schema.outputs.iter_mut().enumerate() {
        if let Some(k) = kinds.output((i, p)) {
            port.kind = k;
        }
    }
    let mut inputs = vec![None; schema.inputs.len()];
    let mut outputs = vec![Vec::new(); schema.outputs.len()];
    for (e, w) in wires.iter().enumerate() {
        if w.to.0 == i {
            inputs[w.to.1] = Some(e);
        }
        if w.from.0 == i {
            outputs[w.from.1].push(e);
        }
    }
    let mut own: BTreeMap<String, String> = env.iter().cloned().collect();
    own.extend(d.env.iter().cloned());
    Some(PlanNode {
        name: d.name.to_owned(),
        kind: d.kind.clone(),
        lane: d.lane,
        fences: d.fences,
        place: d.place,
        schema,
        inputs,
        outputs,
        slots: d.slots,
        threads: d.threads,
        active_streams: d.active_streams,
        step_budget: d.step_budget,
        restart: d.restart,
        cpus: d.pin.cpus.clone(),
        numa: d.pin.numa,
        init_timeout: d.init_timeout,
        required: d.required,
        memory: d.memory,
        sampling: d.sampling.clone(),
        chunk: d.chunk.clone(),
        chunks: d.chunks.clone(),
        env: own.into_iter().collect(),
        depth,
        configured,
    })
}
