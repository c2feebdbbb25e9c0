//! The OpenAPI document says what there is.

use omni_flow_transports::api::{Config, ROUTES};
use serde_json::json;

use super::world::{CHAT, HEAR, SPEAK, world};

#[tokio::test]
async fn every_route_of_the_document_is_there_and_every_other_is_not() {
    let w = world(SPEAK, 2, Config::default()).await;
    let document = w.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    for (path, methods) in paths.iter().filter(|(p, _)| *p != "/metrics" && *p != "/v1/omni/stats") {
        let at = path.replace("{name}", "x").replace("{id}", "g");
        for method in ["get", "post", "delete"] {
            let headers = "content-type: application/json\r\n";
            let a = w.request(&method.to_uppercase(), &at, headers, b"{}").await;
            let known = methods.get(method).is_some();
            assert_eq!(a.status == 405, !known, "{method} {path}: {}", a.status);
            let missing = a.status == 404 && a.text().contains(&format!("{at} is not available"));
            assert!(!missing, "{method} {path}");
        }
    }
    assert!(ROUTES.iter().all(|r| paths.contains_key(*r)));
    let a = w.get("/v1/nothing").await;
    assert_eq!((a.status, a.error().as_str()), (404, "/v1/nothing is not available"));
}

#[tokio::test]
async fn it_says_what_the_graph_serves() {
    for (nodes, bound) in
        [(SPEAK, "/v1/audio/speech"), (HEAR, "/v1/audio/transcriptions"), (CHAT, "/v1/chat/completions")]
    {
        let document = world(nodes, 2, Config::default()).await.get("/openapi.json").await.json();
        for path in ["/v1/audio/speech", "/v1/audio/transcriptions", "/v1/chat/completions"] {
            assert_eq!(document["paths"][path]["post"]["x-omni-flow-bound"], json!(path == bound), "{bound}: {path}");
        }
    }
    let only = Some(vec!["audio/voices".to_owned()]);
    let w = world(SPEAK, 2, Config { only, ..Config::default() }).await;
    assert_eq!(w.post("/v1/audio/speech", &json!({"input": "x"})).await.status, 404);
    assert_eq!(w.get("/v1/audio/voices").await.status, 200);
}
