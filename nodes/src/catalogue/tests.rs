//! Against a local server, wheels made here and interpreters that are scripts.

use super::*;
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn content(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 31 % 251) as u8).collect()
}

/// A catalogue with the one model `m`.
/// Name, content, and the wheels (package, path inside) that give it.
type TestFile<'a> = (&'a str, &'a [u8], &'a [(&'a str, &'a str)]);

fn catalogue(files: &[TestFile<'_>]) -> Catalogue {
    let files: Vec<_> = files
        .iter()
        .map(|(name, bytes, wheels)| {
            let wheels: Vec<_> = wheels
                .iter()
                .map(|(package, inner)| serde_json::json!({"package": package, "version": "1.0", "inner": inner}))
                .collect();
            let sha256 = sum(bytes);
            serde_json::json!({"name": name, "size": bytes.len(), "sha256": sha256, "hub": name, "wheels": wheels})
        })
        .collect();
    let hub = serde_json::json!({"repository": "org/repo", "revision": "rev"});
    let model = serde_json::json!({"name": "m", "title": "t", "licence": "l", "hub": hub, "files": files});
    Catalogue::from_json(&serde_json::json!([model]).to_string()).unwrap()
}

/// What the server does with the n-th request.
#[derive(Clone, Copy)]
enum Answer {
    /// Honours ranges.
    Good,
    /// Claims everything, sends so many bytes of the body, closes.
    Cut(usize),
    /// Gives everything from the start, whatever was asked for.
    NoRanges,
    /// A status and no body.
    Status(u16),
    /// 206 from the wrong place.
    WrongRange,
}

struct Server {
    address: String,
    /// Path and first byte asked for.
    seen: Arc<Mutex<Vec<(String, usize)>>>,
}

fn serve(body: Vec<u8>, answers: Vec<Answer>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
            let (mut from, mut ranged) = (0, false);
            for line in lines.take_while(|l| !l.is_empty()) {
                if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                    (from, ranged) = (range.trim_end_matches('-').parse().unwrap(), true);
                }
            }
            log.lock().unwrap().push((path, from));
            let last = *answers.last().unwrap();
            let answer = *answers.get(n).unwrap_or(&last);
            let (status, start, send) = match answer {
                Answer::Status(s) => (s, 0, 0),
                Answer::NoRanges => (200, 0, body.len()),
                Answer::Good if from > body.len() => (416, 0, 0),
                Answer::Good => (if ranged { 206 } else { 200 }, from, body.len() - from),
                Answer::Cut(n) => (if ranged { 206 } else { 200 }, from, n.min(body.len() - from)),
                Answer::WrongRange if ranged => (206, from + 1, body.len() - from - 1),
                Answer::WrongRange => (200, 0, body.len()),
            };
            let length = if status < 300 { body.len() - start } else { 0 };
            let range = if status == 206 {
                format!("Content-Range: bytes {start}-{}/{}\r\n", body.len() - 1, body.len())
            } else {
                String::new()
            };
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n{range}\r\n");
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&body[start..start + send]);
        }
    });
    Server { address, seen }
}

fn options(root: &Path, hub: &str) -> FetchOptions {
    FetchOptions { hub: hub.to_owned(), python: "/nonexistent/python3".into(), ..FetchOptions::at(root) }
}

/// Counts what it is told; stops after some news of a file's length.
#[derive(Default)]
struct Watch {
    events: Mutex<Vec<String>>,
    at: AtomicUsize,
    stop_after: Option<usize>,
}

impl Progress for Watch {
    fn event(&self, event: Event<'_>) {
        if matches!(event, Event::At { .. }) {
            self.at.fetch_add(1, Ordering::Relaxed);
        }
        self.events.lock().unwrap().push(format!("{event:?}"));
    }

    fn cancelled(&self) -> bool {
        self.stop_after.is_some_and(|n| self.at.load(Ordering::Relaxed) >= n)
    }
}

fn attempts(error: FetchError) -> Vec<FetchError> {
    match error {
        FetchError::AllFailed { attempts, .. } => attempts.into_iter().map(|a| a.1).collect(),
        other => panic!("{other}"),
    }
}

#[test]
fn the_builtin_catalogue_is_whole() {
    let catalogue = Catalogue::builtin().unwrap();
    let names: Vec<_> = catalogue.models().iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["silero-vad", "whisper-tiny-en", "whisper-base", "smollm2-135m", "gemma3-270m", "piper-joe"]);
    for model in catalogue.models() {
        assert!(!model.licence.is_empty() && !model.files.is_empty());
        for file in &model.files {
            assert!(file.size > 0 && file.sha256.len() == 64 && (!file.wheels.is_empty() || file.hub.is_some()));
        }
    }
    let error = catalogue.get("whisper").unwrap_err().to_string();
    assert!(error.contains("whisper-tiny-en"), "{error}");
}

#[test]
fn fetches_verifies_lists_and_removes() {
    let dir = tempfile::tempdir().unwrap();
    let body = content(100_000);
    let (server, catalogue) = (serve(body.clone(), vec![Answer::Good]), catalogue(&[("a.bin", &body, &[])]));
    let options = options(dir.path(), &server.address);
    assert_eq!(catalogue.list(dir.path())[0].1, Health::Missing);
    let watch = Watch::default();
    let found = catalogue.resolve("m", &options, &watch).unwrap();
    assert_eq!(std::fs::read(found.file("a.bin").unwrap()).unwrap(), body);
    assert_eq!(server.seen.lock().unwrap()[0].0, "/org/repo/resolve/rev/a.bin");
    assert!(watch.events.lock().unwrap().iter().any(|e| e.contains("Finished")));
    assert_eq!(catalogue.list(dir.path())[0].1, Health::Good);
    // From the cache, without any source.
    let offline = FetchOptions { offline: true, ..options.clone() };
    assert_eq!(catalogue.resolve("m", &offline, &Quiet).unwrap(), found);
    assert_eq!(server.seen.lock().unwrap().len(), 1);
    // Damage of the same size is found by reading.
    let mut bad = body.clone();
    bad[5] ^= 1;
    std::fs::write(&found.files[0], bad).unwrap();
    assert_eq!(catalogue.verify("m", dir.path()).unwrap()[0].1, Health::Damaged);
    assert!(catalogue.remove("m", dir.path()).unwrap());
    assert!(!catalogue.remove("m", dir.path()).unwrap());
    assert_eq!(catalogue.verify("m", dir.path()).unwrap()[0].1, Health::Missing);
}

#[test]
fn offline_says_what_to_run() {
    let dir = tempfile::tempdir().unwrap();
    let catalogue = catalogue(&[("a.bin", b"abc", &[])]);
    let options = FetchOptions { offline: true, ..options(dir.path(), "http://127.0.0.1:1") };
    let error = catalogue.resolve("m", &options, &Quiet).unwrap_err();
    assert!(error.to_string().contains("omni-flow models pull m") && error.to_string().contains("a.bin"), "{error}");
    let url = "http://127.0.0.1:1/x.bin";
    let error = catalogue.resolve(url, &options, &Quiet).unwrap_err().to_string();
    assert!(error.contains("omni-flow models pull 'http://127.0.0.1:1/x.bin'"), "{error}");
}

#[test]
fn goes_on_after_cuts() {
    let dir = tempfile::tempdir().unwrap();
    let body = content(50_000);
    let server = serve(body.clone(), vec![Answer::Cut(10_000), Answer::Cut(10_000), Answer::Good]);
    let catalogue = catalogue(&[("a.bin", &body, &[])]);
    let found = catalogue.resolve("m", &options(dir.path(), &server.address), &Quiet).unwrap();
    assert_eq!(std::fs::read(&found.files[0]).unwrap(), body);
    let starts: Vec<usize> = server.seen.lock().unwrap().iter().map(|s| s.1).collect();
    assert_eq!(starts, [0, 10_000, 20_000]);
}

#[test]
fn stopping_keeps_what_has_arrived_and_the_next_try_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let body = content(3_000_000);
    let server = serve(body.clone(), vec![Answer::Good]);
    let catalogue = catalogue(&[("a.bin", &body, &[])]);
    let options = options(dir.path(), &server.address);
    let watch = Watch { stop_after: Some(2), ..Watch::default() };
    assert!(matches!(catalogue.resolve("m", &options, &watch), Err(FetchError::Cancelled)));
    let part = dir.path().join("models/m/a.bin.part");
    let kept = std::fs::metadata(&part).unwrap().len() as usize;
    assert!(kept > 0 && kept < body.len());
    let found = catalogue.resolve("m", &options, &Quiet).unwrap();
    assert_eq!(server.seen.lock().unwrap()[1].1, kept);
    assert_eq!(std::fs::read(&found.files[0]).unwrap(), body);
    assert!(!part.exists());
}

#[test]
fn servers_that_do_not_honour_ranges_cost_time_only() {
    let body = content(20_000);
    for answer in [Answer::NoRanges, Answer::WrongRange, Answer::Status(416)] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("models/m");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.bin.part"), &body[..5_000]).unwrap();
        let server = serve(body.clone(), vec![answer, Answer::Good]);
        let catalogue = catalogue(&[("a.bin", &body, &[])]);
        let found = catalogue.resolve("m", &options(dir.path(), &server.address), &Quiet).unwrap();
        assert_eq!(std::fs::read(&found.files[0]).unwrap(), body);
    }
}

#[test]
fn refusals_lies_and_silence_are_typed() {
    let body = content(9_000);
    let try_with = |served: Vec<u8>, answer| {
        let dir = tempfile::tempdir().unwrap();
        let server = serve(served, vec![answer]);
        let catalogue = catalogue(&[("a.bin", &body, &[])]);
        let error = catalogue.resolve("m", &options(dir.path(), &server.address), &Quiet).unwrap_err();
        assert!(!dir.path().join("models/m/a.bin").exists());
        let part = dir.path().join("models/m/a.bin.part");
        (attempts(error).remove(0), std::fs::metadata(part).map_or(0, |m| m.len()))
    };
    assert!(matches!(try_with(body.clone(), Answer::Status(404)).0, FetchError::Http { status: 404, .. }));
    let mut other = body.clone();
    other[0] ^= 1;
    let (error, left) = try_with(other, Answer::Good);
    assert!(matches!(error, FetchError::Checksum { .. }), "{error}");
    assert_eq!(left, 0);
    let (error, _) = try_with(content(9_001), Answer::Good);
    assert!(matches!(error, FetchError::Size { .. }), "{error}");
    let (error, left) = try_with(body.clone(), Answer::Cut(0));
    assert!(matches!(error, FetchError::Size { .. } | FetchError::Network { .. }), "{error}");
    assert_eq!(left, 0);
    let dir = tempfile::tempdir().unwrap();
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let catalogue = catalogue(&[("a.bin", &body, &[])]);
    let error = catalogue.resolve("m", &options(dir.path(), &format!("http://{dead}")), &Quiet).unwrap_err();
    assert!(matches!(attempts(error)[0], FetchError::Network { .. }));
}

#[test]
fn two_at_once_fetch_once() {
    let dir = tempfile::tempdir().unwrap();
    let body = content(400_000);
    let server = serve(body.clone(), vec![Answer::Good]);
    let catalogue = catalogue(&[("a.bin", &body, &[])]);
    let options = options(dir.path(), &server.address);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| catalogue.resolve("m", &options, &Quiet).unwrap());
        }
    });
    assert_eq!(server.seen.lock().unwrap().len(), 1);
    assert_eq!(catalogue.verify("m", dir.path()).unwrap()[0].1, Health::Good);
}

#[test]
fn the_lock_of_one_who_is_gone_does_not_hold() {
    let dir = tempfile::tempdir().unwrap();
    let held = cache::Lock::take(dir.path(), "m", Duration::ZERO, &Quiet).unwrap();
    let second = cache::Lock::take(dir.path(), "m", Duration::ZERO, &Quiet);
    assert!(matches!(second, Err(FetchError::Busy(path)) if path.ends_with("locks/m.lock")));
    drop(held);
    cache::Lock::take(dir.path(), "m", Duration::ZERO, &Quiet).unwrap();
}

#[test]
fn a_url_or_hub_file_or_path_works_alone() {
    let dir = tempfile::tempdir().unwrap();
    let body = content(1_000);
    let server = serve(body.clone(), vec![Answer::Good]);
    let catalogue = catalogue(&[]);
    let options = options(dir.path(), &server.address);
    let url = format!("{}/some/x.gguf#sha256={}", server.address, sum(&body));
    let found = catalogue.resolve(&url, &options, &Quiet).unwrap();
    assert_eq!(std::fs::read(found.with_extension("gguf").unwrap()).unwrap(), body);
    catalogue.resolve(&url, &options, &Quiet).unwrap();
    assert_eq!(server.seen.lock().unwrap().len(), 1);
    let wrong = format!("{}/some/y.gguf#sha256={}", server.address, sum(b"other"));
    assert!(matches!(catalogue.resolve(&wrong, &options, &Quiet), Err(FetchError::Checksum { .. })));
    catalogue.resolve("hub:a/b@v2/sub/z.onnx", &options, &Quiet).unwrap();
    assert_eq!(server.seen.lock().unwrap().last().unwrap().0, "/a/b/resolve/v2/sub/z.onnx");
    let file = found.files[0].to_str().unwrap();
    assert_eq!(catalogue.resolve(file, &options, &Quiet).unwrap().files, found.files);
    assert!(matches!(catalogue.resolve("./nowhere.gguf", &options, &Quiet), Err(FetchError::NoFile(_))));
}

#[test]
fn the_users_own_folder_comes_first_even_offline() {
    let (dir, mine) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(mine.path().join("a.bin"), b"abc").unwrap();
    let catalogue = catalogue(&[("a.bin", b"abc", &[])]);
    let from = Some(mine.path().to_str().unwrap().to_owned());
    let options = FetchOptions { offline: true, from, ..options(dir.path(), "http://127.0.0.1:1") };
    catalogue.resolve("m", &options, &Quiet).unwrap();
    assert_eq!(std::fs::read(dir.path().join("models/m/a.bin")).unwrap(), b"abc");
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// An interpreter whose `-m pip download ... -d DIR NAME==VERSION` runs `script` with `$dir` and `$what` set.
    fn python(dir: &Path, script: &str) -> PathBuf {
        let path = dir.join("python");
        let text = format!(
            "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -d ] && dir=\"$2\"; what=\"$1\"; shift; done\n{script}\n"
        );
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn wheel(path: &Path, inner: &str, bytes: &[u8]) {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
        zip.start_file(inner, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
        zip.finish().unwrap();
    }

    #[test]
    fn wheels_are_joined_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let body = content(30_000);
        wheel(&dir.path().join("one==1.0.whl"), "x/part0", &body[..12_000]);
        wheel(&dir.path().join("two==1.0.whl"), "x/part1", &body[12_000..]);
        let python = python(dir.path(), &format!("cp '{}'/\"$what\".whl \"$dir\"/", dir.path().display()));
        let catalogue = catalogue(&[("a.bin", &body, &[("one", "x/part0"), ("two", "x/part1")])]);
        let cache = dir.path().join("cache");
        // The hub refuses, so the next source is asked.
        let server = serve(body.clone(), vec![Answer::Status(404)]);
        let options = FetchOptions { python, ..options(&cache, &server.address) };
        let watch = Watch::default();
        let found = catalogue.resolve("m", &options, &watch).unwrap();
        assert_eq!(std::fs::read(&found.files[0]).unwrap(), body);
        assert!(watch.events.lock().unwrap().iter().any(|e| e.contains("Failed") && e.contains("404")));
        assert_eq!(std::fs::read_dir(cache.join("wheels")).unwrap().count(), 0);
    }

    #[test]
    fn a_hub_that_cannot_be_reached_is_asked_once() {
        let dir = tempfile::tempdir().unwrap();
        wheel(&dir.path().join("one==1.0.whl"), "x", b"abc");
        let python = python(dir.path(), &format!("cp '{}'/\"$what\".whl \"$dir\"/", dir.path().display()));
        let catalogue = catalogue(&[("a.bin", b"abc", &[("one", "x")]), ("b.bin", b"abc", &[("one", "x")])]);
        // Nobody listens at a port that was just given back.
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let options = FetchOptions { python, ..options(&dir.path().join("cache"), &format!("http://{gone}")) };
        let watch = Watch::default();
        catalogue.resolve("m", &options, &watch).unwrap();
        let failed = watch.events.lock().unwrap().iter().filter(|e| e.contains("Failed")).count();
        assert_eq!(failed, 1, "{:?}", watch.events.lock().unwrap());
    }

    /// Lets pip go on once it has been seen how much has arrived.
    struct Seen(PathBuf);
    impl Progress for Seen {
        fn event(&self, event: Event<'_>) {
            if matches!(event, Event::At { file: "one 1.0", done: 5000.. }) {
                std::fs::write(&self.0, b"").unwrap();
            }
        }
    }

    #[test]
    fn what_arrives_while_pip_downloads_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        wheel(&dir.path().join("one==1.0.whl"), "x", b"abc");
        let (seen, wheels) = (dir.path().join("seen"), dir.path().display());
        let script = format!(
            "mkdir \"$TMPDIR/pip-unpack\"; head -c 5000 /dev/zero > \"$TMPDIR/pip-unpack/w\"; n=0
            while [ ! -e '{}' ] && [ $n -lt 3000 ]; do sleep 0.01; n=$((n+1)); done
            [ -e '{0}' ] || exit 1; cp '{wheels}'/\"$what\".whl \"$dir\"/",
            seen.display()
        );
        let python = python(dir.path(), &script);
        let catalogue = catalogue(&[("a.bin", b"abc", &[("one", "x")])]);
        let server = serve(Vec::new(), vec![Answer::Status(404)]);
        let cache = dir.path().join("cache");
        let options = FetchOptions { python, ..options(&cache, &server.address) };
        catalogue.resolve("m", &options, &Seen(seen)).unwrap();
        assert_eq!(std::fs::read_dir(cache.join("wheels")).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn pip_that_fails_or_is_absent_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let catalogue = catalogue(&[("a.bin", b"abc", &[("one", "x")])]);
        let dead = serve(vec![], vec![Answer::Status(500)]);
        let fail = |python: PathBuf| {
            let options = FetchOptions { python, ..options(&dir.path().join("cache"), &dead.address) };
            attempts(catalogue.resolve("m", &options, &Quiet).unwrap_err()).remove(1)
        };
        let said = "ERROR: No matching distribution found for one==1.0";
        let error =
            fail(python(dir.path(), &format!("echo Traceback; echo '{said}' >&2; echo WARNING: x >&2; exit 1")));
        assert!(matches!(error, FetchError::Pip { fault: PipFault::NotFound, .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("No matching distribution found for one==1.0") && text.contains("OMNI_FLOW_LOG"),
            "{text}"
        );
        assert!(!text.contains("Traceback") && !text.contains('\n'), "one line: {text}");
        let error = fail(python(dir.path(), "kill -9 $$"));
        assert!(error.to_string().contains("signal: 9"), "{error}");
        let error = fail(python(dir.path(), "echo /usr/bin/python3: No module named pip >&2; exit 1"));
        assert!(matches!(error, FetchError::NoPip { .. }), "{error}");
        assert!(matches!(fail("/nonexistent/python3".into()), FetchError::NoPip { .. }));
        let error = fail(python(dir.path(), "exit 0"));
        assert!(matches!(error, FetchError::Wheel { .. }), "{error}");
        let error = fail(python(dir.path(), "echo rubbish > \"$dir\"/a.whl"));
        assert!(matches!(error, FetchError::Wheel { .. }), "{error}");
        wheel(&dir.path().join("w"), "y", b"abc");
        let error = fail(python(dir.path(), &format!("cp '{}'/w \"$dir\"/a.whl", dir.path().display())));
        assert!(error.to_string().contains("one") && matches!(error, FetchError::Wheel { .. }), "{error}");
    }

    #[test]
    fn a_full_disk_in_pip_is_a_full_disk() {
        let dir = tempfile::tempdir().unwrap();
        let catalogue = catalogue(&[("a.bin", b"abc", &[("one", "x")])]);
        let dead = serve(vec![], vec![Answer::Status(500)]);
        let script = "printf 'Traceback\\n  File \"x\"\\nOSError: [Errno 28] No space left on device\\n' >&2; exit 2";
        let options = FetchOptions { python: python(dir.path(), script), ..options(dir.path(), &dead.address) };
        let error = catalogue.resolve("m", &options, &Quiet).unwrap_err();
        assert!(matches!(&error, FetchError::DiskFull(p) if p.starts_with(dir.path().join("wheels"))), "{error}");
    }

    #[test]
    fn what_dead_runs_left_is_deleted_and_what_live_ones_have_is_not() {
        let dir = tempfile::tempdir().unwrap();
        wheel(&dir.path().join("one==1.0.whl"), "x", b"abc");
        let python = python(dir.path(), &format!("cp '{}'/\"$what\".whl \"$dir\"/", dir.path().display()));
        let catalogue = catalogue(&[("a.bin", b"abc", &[("one", "x")])]);
        let cache = dir.path().join("cache");
        for folder in ["one-1.0", "dead-2.0", "kept-3.0", "live-4.0"] {
            let own = cache.join("wheels").join(folder).join(".tmpAbCdEf/pip-unpack-x");
            std::fs::create_dir_all(&own).unwrap();
            std::fs::write(own.join("half.whl"), [0; 100]).unwrap();
        }
        std::fs::write(cache.join("wheels/kept-3.0/whole.whl"), b"").unwrap();
        let live = cache::Lock::try_take(&cache, "wheel--live-4.0").unwrap();
        let server = serve(Vec::new(), vec![Answer::Status(404)]);
        let options = FetchOptions { python, ..options(&cache, &server.address) };
        catalogue.resolve("m", &options, &Quiet).unwrap();
        let left = |folder: &str| {
            let entries = std::fs::read_dir(cache.join("wheels").join(folder)).into_iter().flatten();
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(left("live-4.0"), [".tmpAbCdEf"]);
        assert_eq!(left("kept-3.0"), ["whole.whl"]);
        assert!(!cache.join("wheels/dead-2.0").exists() && !cache.join("wheels/one-1.0").exists());
        drop(live);
        // A model that is whole needs nothing that another run may have kept for it.
        std::fs::create_dir_all(cache.join("wheels/one-1.0")).unwrap();
        std::fs::write(cache.join("wheels/one-1.0/one.whl"), b"").unwrap();
        catalogue.resolve("m", &options, &Quiet).unwrap();
        assert!(!cache.join("wheels/one-1.0").exists());
    }

    #[test]
    fn a_pip_that_hangs_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let catalogue = catalogue(&[("a.bin", b"abc", &[("one", "x")])]);
        let dead = serve(vec![], vec![Answer::Status(500)]);
        let python = python(dir.path(), "exec sleep 600");
        let options = FetchOptions { python, pip_timeout: Duration::ZERO, ..options(dir.path(), &dead.address) };
        let error = attempts(catalogue.resolve("m", &options, &Quiet).unwrap_err()).remove(1);
        assert!(matches!(error, FetchError::NoPip { .. }), "{error}");
    }

    #[test]
    fn a_full_disk_and_a_closed_cache_name_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let body = content(10_000);
        let server = serve(body.clone(), vec![Answer::Good]);
        let catalogue = catalogue(&[("a.bin", &body, &[])]);
        if Path::new("/dev/full").exists() {
            let folder = dir.path().join("models/m");
            std::fs::create_dir_all(&folder).unwrap();
            symlink("/dev/full", folder.join("a.bin.part")).unwrap();
            let error = catalogue.resolve("m", &options(dir.path(), &server.address), &Quiet).unwrap_err();
            assert!(matches!(&error, FetchError::DiskFull(p) if p.ends_with("models/m/a.bin.part")), "{error}");
        }
        // A file where the cache's folder should be: not writable by anyone.
        let closed = dir.path().join("file");
        std::fs::write(&closed, b"").unwrap();
        let error = catalogue.resolve("m", &options(&closed, &server.address), &Quiet).unwrap_err();
        assert!(matches!(&error, FetchError::Io { path, .. } if path.starts_with(&closed)), "{error}");
        assert!(error.to_string().contains("OMNI_FLOW_CACHE"));
    }
}
