//! Standard output, for people and machines. A reader that went away (`| head`) is no error; a
//! full disk is.

use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static GONE: AtomicBool = AtomicBool::new(false);
static FAILED: OnceLock<std::io::Error> = OnceLock::new();
/// Writes `text` to standard output at once.
pub fn put(text: &str) {
    if GONE.load(Ordering::Relaxed) {
        return;
    }
    let mut out = std::io::stdout().lock();
    if let Err(e) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        GONE.store(true, Ordering::Relaxed);
        if e.kind() != std::io::ErrorKind::BrokenPipe {
            let _ = FAILED.set(e);
        }
    }
}

/// What a reader has to take the last words of a program in.
pub const LAST: Duration = Duration::from_secs(2);

/// Writes last words. If nobody reads them within [`LAST`], they are not said, and keep nobody.
pub fn last(text: String) {
    let (done, written) = std::sync::mpsc::channel();
    let write = move || {
        put(&text);
        // An error says that nobody waits any longer.
        let _ = done.send(());
    };
    // Without a thread the words are lost, as to a reader that does not read.
    if std::thread::Builder::new().name("last words".into()).spawn(write).is_ok() {
        let _ = written.recv_timeout(LAST);
    }
}

/// Why something could not be written, unless it was only that nobody reads.
pub fn failed() -> Option<&'static std::io::Error> {
    FAILED.get()
}

/// One line of JSON.
pub fn json_line(value: &serde_json::Value) {
    put(&format!("{value}\n"));
}

/// JSON over several lines, for a command whose whole answer it is.
pub fn json(value: &impl serde::Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => put(&format!("{text}\n")),
        Err(e) => eprintln!("error: {e}"),
    }
}

/// A table with columns of equal width; the columns in `right` are set to the right.
pub fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut all = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (c, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[c] - cell.chars().count());
            let (before, after) = if right.contains(&c) { (pad.as_str(), "") } else { ("", pad.as_str()) };
            line.push_str(&format!(" {before}{cell}{after} "));
        }
        all.push_str(line.trim_end());
        all.push('\n');
    }
    all
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_line_up() {
        let rows = [vec!["node".to_owned(), "ms".to_owned()], vec!["a".to_owned(), "1234".to_owned()]];
        assert_eq!(table(&rows, &[1]), "  node    ms\n  a     1234\n");
    }
}
