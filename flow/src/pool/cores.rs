//! How many physical cores this process may use.

use std::collections::BTreeSet;
use std::path::Path;

/// The number of physical cores, at least 1, at most the parallelism that the operating system grants this process
/// (affinity, container quota).
///
/// Two hyper-threads of a core share its arithmetic units, so a second compute thread there mostly slows the first. On
/// Linux the topology is read from `/sys`; where it cannot be read, each granted logical processor counts.
pub fn physical_cores() -> usize {
    let granted = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    distinct(Path::new("/sys/devices/system/cpu")).map_or(granted, |n| n.clamp(1, granted))
}

/// Counts different sets of sibling threads below `root`; `None` if there is no topology to read.
fn distinct(root: &Path) -> Option<usize> {
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(root).ok()?.flatten() {
        let name = entry.file_name();
        let digits = name.to_str().and_then(|n| n.strip_prefix("cpu"));
        if !digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit())) {
            continue;
        }
        if let Ok(siblings) = std::fs::read_to_string(entry.path().join("topology/thread_siblings_list")) {
            seen.insert(siblings.trim().to_owned());
        }
    }
    (!seen.is_empty()).then_some(seen.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyper_threads_count_once() {
        let dir = tempfile::tempdir().unwrap();
        for (cpu, siblings) in [("cpu0", "0,2\n"), ("cpu1", "1,3\n"), ("cpu2", "0,2\n"), ("cpu3", "1,3\n")] {
            let t = dir.path().join(cpu).join("topology");
            std::fs::create_dir_all(&t).unwrap();
            std::fs::write(t.join("thread_siblings_list"), siblings).unwrap();
        }
        std::fs::create_dir_all(dir.path().join("cpufreq")).unwrap();
        assert_eq!(distinct(dir.path()), Some(2));
        assert_eq!(distinct(&dir.path().join("absent")), None);
        assert_eq!(distinct(&dir.path().join("cpufreq")), None);
        assert!(physical_cores() >= 1);
    }
}
