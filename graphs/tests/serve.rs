//! `omni-flow run GRAPH` without an input serves: where it listens, what it refuses, how it ends.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use common::{exit, omni, run};

/// A server, ended with the test.
struct Server {
    child: Child,
    url: String,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(words: &[&str]) -> Self {
        let mut command = omni();
        command.args(["run", "graphs/echo.yaml", "--listen", "127.0.0.1:0", "--json"]).args(words);
        command.env("OMNI_FLOW_TEST_KEY", "sk-right").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["event"], "serving", "{line}");
        let url = line["url"].as_str().unwrap().to_owned();
        Self { child, url, lines }
    }
    fn at(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }
    /// Status and body of a request.
    fn get(&self, path: &str, headers: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(self.at()).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}\r\n", self.at()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
    fn interrupt(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    }
}

#[test]
fn a_graph_is_served_until_it_is_interrupted_and_ends_in_order() {
    let mut server = Server::start(&[]);
    let (status, body) = server.get("/health", "");
    assert_eq!((status, body.contains("\"status\":\"ok\"")), (200, true), "{body}");
    assert_eq!(server.get("/ready", "").0, 200);
    let (status, page) = server.get("/", "");
    assert!(status == 200 && page.contains("<html"), "{status}");
    let (status, text) = server.get("/metrics", "");
    assert_eq!(status, 200);
    let counted = "omni_flow_http_requests_total{route=\"/health\",status=\"200\"} 1";
    for name in [counted, "omni_flow_build_info{", "omni_flow_sessions_limit{graph=\"echo\"}", "process_open_fds "] {
        assert!(text.contains(name), "{name} in\n{text}");
    }
    assert_eq!(server.get("/v1/nothing", "").0, 404);
    let (status, document) = server.get("/openapi.json", "");
    assert!(status == 200 && document.contains("/v1/realtime"), "{status}");
    server.interrupt();
    let line = server.lines.next().unwrap().unwrap();
    assert!(line.contains("stopped"), "{line}");
    assert_eq!(exit(&mut server.child), Some(0));
}

#[test]
fn a_client_in_the_middle_of_a_request_does_not_keep_it() {
    let mut server = Server::start(&["--set", "serve.drain=200ms"]);
    let mut half = TcpStream::connect(server.at()).unwrap();
    half.write_all(b"GET /v1/omni/stats HTTP/1.1\r\nhost: x\r\n").unwrap();
    let mut stream = TcpStream::connect(server.at()).unwrap();
    write!(stream, "GET /v1/omni/stats HTTP/1.1\r\nhost: {}\r\n\r\n", server.at()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    server.interrupt();
    assert_eq!(exit(&mut server.child), Some(0));
}

#[test]
fn keys_are_asked_for_and_never_shown() {
    let server = Server::start(&["--set", "serve.api-keys=[\"${env:OMNI_FLOW_TEST_KEY}\"]"]);
    let (status, body) = server.get("/v1/models", "");
    assert!(status == 401 && body.contains("AuthenticationError") && !body.contains("sk-right"), "{body}");
    assert_eq!(server.get("/v1/models", "authorization: Bearer sk-wrong\r\n").0, 401);
    assert_eq!(server.get("/v1/models", "authorization: Bearer sk-right\r\n").0, 200);
    assert_eq!(server.get("/metrics", "").0, 401);
    assert_eq!(server.get("/health", "").0, 200, "whoever watches it needs no key");
}

#[test]
fn what_cannot_be_served_is_refused_before_anything_starts() {
    let taken = Server::start(&[]);
    let echo = ["run", "graphs/echo.yaml"];
    let with = |words: &[&str]| run(&[&echo[..], words].concat());
    with(&["--listen", taken.at()]).expect(2).complains(&["is in use", "--listen 127.0.0.1:0"]);
    with(&["--listen", "0.0.0.0:0"]).expect(2).complains(&["serve.api-keys", "allow-anonymous"]);
    with(&["--listen", "8080"]).expect(2).complains(&["HOST:PORT"]);
    with(&["--listen", "127.0.0.1:0", "--input", "x.wav"]).expect(2).complains(&["--listen", "--input"]);
    with(&["--set", "serve.listen=nowhere"]).expect(2).complains(&["serve.listen", "HOST:PORT"]);
    with(&["--set", "serve.api-keys=[sk-secret-1]"]).expect(2).complains(&["secret"]);
    let unset = with(&["--set", "serve.api-keys=[\"${env:OMNI_FLOW_UNSET}\"]"]).expect(2);
    assert!(unset.err.contains("OMNI_FLOW_UNSET"), "{}", unset.err);
    with(&["--set", "serve.routes=[realtime, karaoke]"]).expect(2).complains(&[
        "serve.routes",
        "karaoke",
        "audio/speech",
    ]);
    with(&["--tls-cert", "no.pem", "--tls-key", "no.pem"]).expect(2).complains(&["certificate no.pem"]);
    with(&["--tls-cert", "no.pem"]).expect(2).complains(&["--tls-key"]);
}
