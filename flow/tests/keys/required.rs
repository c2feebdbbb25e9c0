//! `required: false`: the death of such a node takes its branch and not the session.

use omni_flow::*;

use crate::common::{collect, start, text};

fn yaml(side: &str) -> String {
    format!(
        "
graph: degrade
session: {{ mode: turn }}
nodes:
  ask: {{ use: session.in, kind: text }}
  main: {{ use: test.pass, in: ask }}
  say: {{ use: session.out, in: main }}
  tee: {{ use: test.pass, in: ask }}
  side: {{ use: test.repeat, times: 1, in: tee{side} }}
  after: {{ use: test.pass, in: side }}
  noted: {{ use: session.out, in: after }}
"
    )
}

/// What came out of the main branch and out of the side branch, and how the session ended.
struct Ran {
    said: Vec<String>,
    end: Terminal,
    notes: Vec<String>,
    noted: Terminal,
    waited: Result<(), RunError>,
}

/// A session, fused and not, in which `word` comes to the side branch.
async fn run(side: &str, word: &str) -> Vec<Ran> {
    let mut all = Vec::new();
    for fuse in [true, false] {
        let engine = Engine::builder().clock(Clock::tokio()).inline().fuse(fuse).build().unwrap();
        let graph = start(&engine, &yaml(side)).await;
        let mut s = graph.open().unwrap();
        let (mut say, mut noted) = (s.output("say").unwrap(), s.output("noted").unwrap());
        let mut ask = s.input("ask").unwrap();
        let feed = async {
            for t in ["a", word, "b", "c"] {
                // A session that has died takes no more.
                let _ = ask.send(text(t)).await;
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            ask.end();
        };
        let (_, (said, end), (notes, noted)) = tokio::join!(feed, collect(&mut say), collect(&mut noted));
        let waited = tokio::time::timeout(std::time::Duration::from_secs(9), s.wait()).await.expect("it ends");
        all.push(Ran { said, end, notes, noted, waited });
    }
    all
}

#[tokio::test(start_paused = true)]
async fn the_session_goes_on_without_an_optional_branch() {
    for (word, kind) in [("panic", ErrorKind::Panic), ("fail", ErrorKind::Node)] {
        for Ran { said, end, notes, noted, waited } in run(", required: false", word).await {
            assert_eq!(said, ["a", word, "b", "c"]);
            assert!(matches!(end, Terminal::End), "{end:?}");
            assert_eq!(notes, ["a0"]);
            let Terminal::Error(e) = noted else { panic!("the branch ends in error") };
            assert_eq!((e.node(), e.kind()), ("degrade/side", kind));
            waited.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_session_ends_with_a_node_that_it_needs() {
    for ran in run("", "panic").await {
        let Terminal::Error(e) = ran.noted else { panic!("the branch ends in error") };
        assert_eq!(e.node(), "degrade/side");
        assert!(matches!(ran.end, Terminal::Error(_)), "{:?}", ran.end);
        assert_eq!(ran.waited.unwrap_err().node(), "degrade/side");
    }
}
