//! Which processors compute threads are bound to.
//!
//! A graph file names processors (`cpus: [0, 1]`) or a NUMA node (`numa: 0`); a thread then runs on these alone, and so
//! does every thread that it starts. Numbers are those of the operating system. On Linux only: elsewhere
//! [`SUPPORTED`] is false, and the keys are refused when a graph is checked.

use std::path::{Path, PathBuf};

/// True if threads can be bound here.
pub(crate) const SUPPORTED: bool = cfg!(target_os = "linux");

/// Processor numbers are below this: the size of the kernel's usual set (`CPU_SETSIZE`).
pub(crate) const MOST: usize = 1024;

/// Where Linux lists its NUMA nodes.
const NODES: &str = "/sys/devices/system/node";

/// Why threads cannot be bound as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AffinityError {
    /// Not there, or not granted to this process.
    #[error("this process may not use the processors {} (it may use {})", list(absent), list(allowed))]
    Absent { absent: Vec<usize>, allowed: Vec<usize> },
    /// No such node.
    #[error("this machine has no NUMA node {node} (it has {})", list(there))]
    NoNode { node: usize, there: Vec<usize> },
    /// All processors of the node are kept from this process.
    #[error(
        "this process may use no processor of NUMA node {node} (it has {}, granted are {})",
        list(has),
        list(allowed)
    )]
    NoneLeft { node: usize, has: Vec<usize>, allowed: Vec<usize> },
    /// A list that is none.
    #[error("{} holds `{text}`, which is not a list of processors", path.display())]
    List { path: PathBuf, text: String },
    /// The operating system refuses.
    #[error("the operating system does not tell or change where threads run: {0}")]
    System(String),
}

/// The processors that `cpus` or else `numa` asks for, in ascending order, after a look at the machine.
pub(crate) fn resolve(cpus: &[usize], numa: Option<usize>) -> Result<Vec<usize>, AffinityError> {
    let allowed = allowed()?;
    match numa.filter(|_| cpus.is_empty()) {
        Some(node) => of_node(Path::new(NODES), node, &allowed),
        None => {
            let absent: Vec<usize> = cpus.iter().copied().filter(|c| !allowed.contains(c)).collect();
            if absent.is_empty() { Ok(cpus.to_vec()) } else { Err(AffinityError::Absent { absent, allowed }) }
        }
    }
}

/// Those of `allowed` that belong to a NUMA node below `root`.
fn of_node(root: &Path, node: usize, allowed: &[usize]) -> Result<Vec<usize>, AffinityError> {
    let path = root.join(format!("node{node}")).join("cpulist");
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Err(AffinityError::NoNode { node, there: nodes(root) });
    };
    let Some(has) = parse(&text) else {
        return Err(AffinityError::List { path, text: text.trim().chars().take(80).collect() });
    };
    let left: Vec<usize> = has.iter().copied().filter(|c| allowed.contains(c)).collect();
    if left.is_empty() { Err(AffinityError::NoneLeft { node, has, allowed: allowed.to_vec() }) } else { Ok(left) }
}

fn nodes(root: &Path) -> Vec<usize> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut all: Vec<usize> =
        entries.filter_map(|e| e.file_name().to_str()?.strip_prefix("node")?.parse().ok()).collect();
    all.sort_unstable();
    all
}

/// A list as the kernel writes it: `0-3,8,10-11`; empty for a node without processors. In ascending order, each once.
/// `None` if it is no such list, or names a processor of [`MOST`] or above.
fn parse(text: &str) -> Option<Vec<usize>> {
    let mut has = vec![false; MOST];
    for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(from)?, number(to)?);
        has.get_mut(from..=to).filter(|r| !r.is_empty())?.fill(true);
    }
    Some(has.iter().enumerate().filter(|(_, h)| **h).map(|(i, _)| i).collect())
}

fn number(text: &str) -> Option<usize> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A list as the kernel would write it; the numbers are in ascending order. "none" if there are none.
pub(crate) fn list(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for c in cpus {
        match parts.last_mut() {
            Some((_, to)) if *to + 1 == *c => *to = *c,
            _ => parts.push((*c, *c)),
        }
    }
    let shown: Vec<String> =
        parts.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(",") }
}

/// The processors that the calling thread may use, in ascending order.
#[cfg(target_os = "linux")]
pub(crate) fn allowed() -> Result<Vec<usize>, AffinityError> {
    let set = rustix::thread::sched_getaffinity(None).map_err(|e| AffinityError::System(e.to_string()))?;
    Ok((0..MOST).filter(|c| set.is_set(*c)).collect())
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn allowed() -> Result<Vec<usize>, AffinityError> {
    Err(AffinityError::System("not on this system".to_owned()))
}

/// Binds the calling thread to `cpus`, all below [`MOST`].
#[cfg(target_os = "linux")]
pub(super) fn bind(cpus: &[usize]) -> Result<(), AffinityError> {
    let mut set = rustix::thread::CpuSet::new();
    cpus.iter().filter(|c| **c < MOST).for_each(|c| set.set(*c));
    rustix::thread::sched_setaffinity(None, &set).map_err(|e| AffinityError::System(e.to_string()))
}
#[cfg(not(target_os = "linux"))]
pub(super) fn bind(_: &[usize]) -> Result<(), AffinityError> {
    allowed().map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(parse("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse("0\n"), Some(vec![0]));
        assert_eq!(parse("\n"), Some(vec![]), "a node of memory alone");
        assert_eq!(parse("3,1-2,2"), Some(vec![1, 2, 3]));
        assert_eq!(parse("1023"), Some(vec![1023]));
        for wrong in [
            "a",
            "1-",
            "-1",
            "1,,2",
            ",",
            "3-1",
            "1024",
            "0-18446744073709551615",
            "0-99999999999999999999",
            "+1",
            "1-2-3",
            "0x1",
            "1 2",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_list_reads_back(cpus in prop::collection::btree_set(0usize..MOST, 1..40)) {
            let cpus: Vec<usize> = cpus.into_iter().collect();
            prop_assert_eq!(parse(&list(&cpus)), Some(cpus));
        }
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9,\\- \\n]{0,40}") {
            if let Some(cpus) = parse(&text) {
                prop_assert!(cpus.windows(2).all(|w| w[0] < w[1]) && cpus.iter().all(|c| *c < MOST));
            }
        }
    }

    #[test]
    fn a_node_is_its_processors_that_are_granted() {
        let dir = tempfile::tempdir().unwrap();
        for (node, text) in [("node0", "0-3\n"), ("node1", "4-7\n"), ("node2", "what\n"), ("node12", "\n")] {
            std::fs::create_dir(dir.path().join(node)).unwrap();
            std::fs::write(dir.path().join(node).join("cpulist"), text).unwrap();
        }
        std::fs::write(dir.path().join("possible"), "0-2\n").unwrap();
        assert_eq!(of_node(dir.path(), 1, &[0, 5, 6]), Ok(vec![5, 6]));
        let e = of_node(dir.path(), 1, &[0, 1, 2]).unwrap_err();
        assert_eq!(e.to_string(), "this process may use no processor of NUMA node 1 (it has 4-7, granted are 0-2)");
        let e = of_node(dir.path(), 3, &[0]).unwrap_err();
        assert_eq!(e.to_string(), "this machine has no NUMA node 3 (it has 0-2,12)");
        assert!(matches!(of_node(dir.path(), 2, &[0]), Err(AffinityError::List { text, .. }) if text == "what"));
        assert!(matches!(of_node(dir.path(), 12, &[0]), Err(AffinityError::NoneLeft { .. })));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_runs_where_it_was_bound() {
        let all = allowed().unwrap();
        let last = *all.last().unwrap();
        let seen = std::thread::spawn(move || {
            bind(&[last]).unwrap();
            // What it starts runs there too.
            (allowed().unwrap(), std::thread::spawn(|| allowed().unwrap()).join().unwrap())
        });
        assert_eq!(seen.join().unwrap(), (vec![last], vec![last]));
        assert_eq!(allowed().unwrap(), all, "others run where they did");
        let absent = (0..MOST).find(|c| !all.contains(c)).unwrap();
        let e = resolve(&[all[0], absent], None).unwrap_err();
        assert_eq!(e, AffinityError::Absent { absent: vec![absent], allowed: all.clone() });
        assert_eq!(resolve(&all, None), Ok(all.clone()));
        assert!(matches!(resolve(&[], Some(999_999)), Err(AffinityError::NoNode { .. })));
    }
}
