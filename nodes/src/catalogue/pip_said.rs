//! What pip wrote when it failed, as one cause and one line: it may be a page of warnings and a traceback.
//!
//! pip has no codes: the words of its messages (pip 20 to 25) decide. A message that is not known is [`PipFault::Other`],
//! with its last line that says something.

/// Why pip failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PipFault {
    /// No room where it downloads to.
    DiskFull,
    /// The index was not reached, or went away.
    Network,
    /// The index has no such package, version, or none for this system.
    NotFound,
    /// What arrived is not what the index promised.
    Hash,
    /// The index refused (a status of HTTP).
    Refused,
    /// Anything else.
    Other,
}

impl PipFault {
    /// What it means and what to do.
    pub fn advice(self) -> &'static str {
        match self {
            Self::DiskFull => "the disk is full; free some space or set OMNI_FLOW_CACHE",
            Self::Network => {
                "the package index cannot be reached; look at the network, at proxies and at PIP_INDEX_URL"
            }
            Self::NotFound => {
                "the package index has no such version, or did not answer; look at PIP_INDEX_URL, or take the files from elsewhere with `omni-flow models pull NAME --from`"
            }
            Self::Hash => {
                "what arrived is not what the index promised; try again, and if it stays so, do not trust the index"
            }
            Self::Refused => "the package index refused; look at PIP_INDEX_URL and its password",
            Self::Other => "pip says",
        }
    }
}

/// Words of messages, the surest first.
const WORDS: [(PipFault, &[&str]); 4] = [
    (
        PipFault::DiskFull,
        &["No space left on device", "[Errno 28]", "Disk quota exceeded", "not enough space on the disk"],
    ),
    (PipFault::Hash, &["DO NOT MATCH THE HASHES", "HashMismatch", "Expected sha256", "Hash mismatch"]),
    (PipFault::Refused, &["HTTP error 4", "HTTP error 5", "Client Error", "Server Error", "401 Error", "403 Error"]),
    (
        PipFault::Network,
        &[
            "Network is unreachable",
            "connection broken by",
            "Temporary failure in name resolution",
            "Name or service not known",
            "getaddrinfo failed",
            "nodename nor servname",
            "Connection refused",
            "Connection reset",
            "Cannot connect to proxy",
            "Read timed out",
            "ReadTimeoutError",
            "ConnectTimeoutError",
            "IncompleteRead",
            "ProtocolError",
            "NewConnectionError",
            "No route to host",
            "CERTIFICATE_VERIFY_FAILED",
        ],
    ),
];
const MISSING: [&str; 2] = ["No matching distribution", "Could not find a version"];
/// Longest line that is told, in characters.
const LONG: usize = 240;

/// The cause, and the line that says it best.
pub(crate) fn pip_fault(said: &str) -> (PipFault, String) {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let last = |words: &[&str]| lines.iter().rev().find(|l| words.iter().any(|w| l.contains(w))).copied();
    // After retries in vain pip says that it found no version; an index that was reached lists those that it has.
    let versions =
        last(&MISSING[1..]).is_some_and(|l| l.contains("(from versions: ") && !l.contains("(from versions: none)"));
    let known = WORDS.iter().filter(|(fault, _)| !(versions && *fault == PipFault::Network));
    let (fault, line) = known
        .filter_map(|(fault, words)| last(words).map(|l| (*fault, l)))
        .next()
        .or_else(|| last(&MISSING).map(|l| (PipFault::NotFound, l)))
        .unwrap_or((PipFault::Other, plainest(&lines)));
    let line = match fault {
        PipFault::Hash => sums(&lines).unwrap_or_else(|| line.to_owned()),
        _ => line.to_owned(),
    };
    (fault, brief(&line))
}

/// The last error of a text, else its last line that is no warning, notice or place in a program.
fn plainest<'a>(lines: &[&'a str]) -> &'a str {
    let error = lines.iter().rev().find(|l| l.starts_with("ERROR:"));
    let noise = |l: &&&str| !["WARNING:", "[notice]", "File \"", "Traceback"].iter().any(|n| l.starts_with(n));
    error.or_else(|| lines.iter().rev().find(noise)).or(lines.last()).copied().unwrap_or("it wrote nothing")
}

/// "expected sha256 ..., got ...", which pip spreads over lines.
fn sums(lines: &[&str]) -> Option<String> {
    let after = |word: &str| lines.iter().find_map(|l| Some(l.split_once(word)?.1.trim()));
    Some(format!("expected sha256 {}, got {}", after("Expected sha256")?, after("Got ")?))
}

/// Without pip's own words around it, and not too long: the ends of a line say most.
fn brief(line: &str) -> String {
    let line = line.strip_prefix("ERROR:").or_else(|| line.strip_prefix("WARNING:")).unwrap_or(line).trim();
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let n = line.chars().count();
    if n <= LONG {
        return line;
    }
    let (head, tail): (String, String) =
        (line.chars().take(LONG / 2).collect(), line.chars().skip(n - LONG / 2).collect());
    format!("{head} … {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect(said: &str, fault: PipFault, line: &str) {
        assert_eq!(pip_fault(said), (fault, line.to_owned()));
    }

    const RETRY: &str = "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3 object>: Failed to establish a new connection: [Errno 101] Network is unreachable')': /simple/x/\n";
    const NONE: &str = "ERROR: Could not find a version that satisfies the requirement x==1 (from versions: none)\nERROR: No matching distribution found for x==1\n";

    #[test]
    fn a_full_disk_is_told_from_a_traceback_and_from_a_message() {
        let trace = "ERROR: Exception:\nTraceback (most recent call last):\n  File \"/usr/lib/python3/x.py\", line 1, in run\n    f.write(chunk)\nOSError: [Errno 28] No space left on device\n";
        expect(trace, PipFault::DiskFull, "OSError: [Errno 28] No space left on device");
        let line = "Could not install packages due to an OSError: [Errno 28] No space left on device";
        expect(&format!("ERROR: {line}\n\n[notice] A new release of pip is there\n"), PipFault::DiskFull, line);
    }
    #[test]
    fn an_index_without_the_version_is_not_one_that_is_out_of_reach() {
        expect(NONE, PipFault::NotFound, "No matching distribution found for x==1");
        let (fault, line) = pip_fault(&format!("{RETRY}{NONE}"));
        assert_eq!(fault, PipFault::Network);
        assert!(line.contains("Network is unreachable") && line.chars().count() <= LONG + 3, "{line}");
        // A retry that went well, and a version that is not there.
        let there = NONE.replace("none", "0.1, 0.2");
        assert_eq!(pip_fault(&format!("{RETRY}{there}")).0, PipFault::NotFound);
    }
    #[test]
    fn the_two_sums_of_a_mismatch_stand_in_one_line() {
        let said = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated ...\n    x from http://h/x.whl:\n        Expected sha256 aaaa\n             Got        bbbb\n";
        expect(said, PipFault::Hash, "expected sha256 aaaa, got bbbb");
    }
    #[test]
    fn refusals_and_the_unknown_are_told_in_their_last_line_that_says_something() {
        expect(
            "ERROR: HTTP error 403 while getting http://h/x.whl\n",
            PipFault::Refused,
            "HTTP error 403 while getting http://h/x.whl",
        );
        expect("WARNING: a\nERROR: odd\nWARNING: b\n", PipFault::Other, "odd");
        expect(
            "Traceback (most recent call last):\n  File \"x\", line 1\nValueError: odd\n",
            PipFault::Other,
            "ValueError: odd",
        );
        expect("", PipFault::Other, "it wrote nothing");
        expect("WARNING: only this", PipFault::Other, "only this");
        assert_eq!(pip_fault(&"x\u{1b}".repeat(10_000)).1.chars().count(), LONG + 3);
    }
}
