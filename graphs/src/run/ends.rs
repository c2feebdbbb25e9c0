//! Which file or text goes to which client end of a graph: pure, from the plan's ends and the command line's words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use omni_flow::{Client, Kind, Medium, Plan};

use crate::failure::Failure;

/// A client end: the name of its node and what flows there.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub node: String,
    pub kind: Kind,
}

/// What is put in at an end.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    File(PathBuf),
    Stdin,
    Text(String),
}

/// The ends of a plan, in file order.
pub fn of(plan: &Plan) -> (Vec<End>, Vec<End>) {
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for n in &plan.nodes {
        match n.schema.client {
            Some(Client::In) => {
                let kind = n.schema.outputs.first().map_or(Kind::of(Medium::Any), |p| p.kind.clone());
                inputs.push(End { node: n.name.clone(), kind });
            }
            Some(Client::Out) => {
                let edge = n.inputs.first().copied().flatten();
                let kind = edge.map_or(Kind::of(Medium::Any), |e| plan.edges[e].kind.clone());
                outputs.push(End { node: n.name.clone(), kind });
            }
            None => {}
        }
    }
    (inputs, outputs)
}

/// `NODE=FILE` where `NODE` is one of `names`; else all of it is the file.
pub fn named<'a>(word: &'a str, names: &[String]) -> (Option<&'a str>, &'a str) {
    match word.split_once('=') {
        Some((node, file)) if names.iter().any(|n| n == node) => (Some(node), file),
        _ => (None, word),
    }
}

/// What each input end is fed with. One for signals is for a client that has something to say: nothing feeds it here.
pub fn inputs(ends: &[End], given: &[String], text: Option<&str>) -> Result<Vec<(End, Given)>, Failure> {
    let names: Vec<String> = ends.iter().map(|e| e.node.clone()).collect();
    let mut bound: Vec<Option<Given>> = vec![None; ends.len()];
    let stdin = |g: &str| if g == "-" { Given::Stdin } else { Given::File(g.into()) };
    // Named ones first, so that an unnamed one takes what they leave.
    let mut words: Vec<(Option<&str>, &str)> = given.iter().map(|w| named(w, &names)).collect();
    words.sort_by_key(|(node, _)| node.is_none());
    if text.is_some_and(|t| t.trim().is_empty()) {
        return Err(Failure::usage("the text of --text is empty", "give some words"));
    }
    if let Some(t) = text {
        let Some(i) = ends.iter().position(|e| e.kind.medium == Medium::Text) else {
            return Err(Failure::usage("this graph has no text input for --text", listens(ends)));
        };
        bound[i] = Some(Given::Text(t.to_owned()));
    }
    for (node, file) in words {
        let free = |i: &usize| bound[*i].is_none() && feedable(&ends[*i].kind);
        let at = match node {
            Some(n) => ends.iter().position(|e| e.node == n),
            None => (0..ends.len()).find(free),
        };
        let Some(i) = at else {
            return Err(Failure::usage(format!("there is no input left for --input {file}"), listens(ends)));
        };
        if bound[i].is_some() {
            return Err(Failure::usage(format!("the input `{}` is given twice", ends[i].node), "keep one of them"));
        }
        if bound.contains(&Some(Given::Stdin)) && file == "-" {
            return Err(Failure::usage("standard input can feed one input only", "give the other one a file"));
        }
        bound[i] = Some(stdin(file));
    }
    let mut all = Vec::new();
    for (end, given) in ends.iter().zip(bound) {
        let name = &end.node;
        if end.kind.medium == Medium::Signal && given.is_none() {
            continue;
        }
        if !feedable(&end.kind) {
            let hint = "put a decoder behind an audio input, or open the graph from a program (see examples/)";
            return Err(Failure::usage(
                format!("this graph takes {} at `{name}`; `run` can feed audio and text", end.kind),
                hint,
            ));
        }
        let Some(given) = given else { return Err(unfed(end, ends.len() > 1)) };
        all.push((end.clone(), given));
    }
    Ok(all)
}

fn feedable(kind: &Kind) -> bool {
    matches!(kind.medium, Medium::Audio | Medium::Text)
}

fn unfed(end: &End, several: bool) -> Failure {
    let name = &end.node;
    let at = if several { format!("{name}=") } else { String::new() };
    if end.kind.medium == Medium::Text {
        return Failure::usage(
            format!("this graph reads text at `{name}`: give it some with --text \"...\""),
            format!("or --input {at}FILE, or --input {at}- for standard input"),
        );
    }
    Failure::usage(
        format!("this graph listens at `{name}`: give it a recording with --input {at}FILE"),
        "any rate and channel count will do; without --input and --output the graph is served to live callers",
    )
}

fn listens(ends: &[End]) -> String {
    if ends.is_empty() {
        return "this graph has no `session.in` and needs no input".to_owned();
    }
    let all: Vec<String> = ends.iter().map(|e| format!("`{}` ({})", e.node, e.kind)).collect();
    format!("its inputs are {}", all.join(", "))
}

/// Where the audio of each output end goes, by node.
pub fn outputs(ends: &[End], given: &[String]) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let names: Vec<String> = ends.iter().map(|e| e.node.clone()).collect();
    let audio: Vec<&End> = ends.iter().filter(|e| e.kind.medium == Medium::Audio).collect();
    let mut bound: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut words: Vec<(Option<&str>, &str)> = given.iter().map(|w| named(w, &names)).collect();
    words.sort_by_key(|(node, _)| node.is_none());
    for (node, file) in words {
        if let (None, Some((name, _))) =
            (node, file.split_once('=').filter(|(n, _)| !n.is_empty() && !n.contains(['/', '.'])))
        {
            let known: Vec<String> = audio.iter().map(|e| format!("`{}`", e.node)).collect();
            let hint = format!("outputs with audio: {}; for a file of that name write ./{file}", known.join(", "));
            return Err(Failure::usage(format!("this graph has no output `{name}`"), hint));
        }
        let free = || audio.iter().find(|e| !bound.contains_key(&e.node));
        let end = match node {
            Some(n) => audio.iter().find(|e| e.node == n),
            None => free(),
        };
        let Some(end) = end else {
            let hint = "text and events are printed; leave --output out";
            return Err(Failure::usage(format!("there is no audio output for --output {file}"), hint));
        };
        if file == "-" {
            let hint = format!(
                "give a file with --output; a graph writes there with `use: file.out, path: \"-\"` in place of `{}`",
                end.node
            );
            return Err(Failure::usage("standard output is for the transcript and the tables, not for audio", hint));
        }
        writable(Path::new(file))?;
        if bound.values().any(|p| p == Path::new(file)) {
            return Err(Failure::usage(format!("two outputs go to `{file}`"), "give each a file of its own"));
        }
        if bound.insert(end.node.clone(), file.into()).is_some() {
            return Err(Failure::usage(format!("the output `{}` is given twice", end.node), "keep one of them"));
        }
    }
    if let Some(end) = audio.iter().find(|e| !bound.contains_key(&e.node)) {
        let at = if audio.len() > 1 { format!("{}=", end.node) } else { String::new() };
        return Err(Failure::usage(
            format!("this graph speaks at `{}`: say where its audio goes with --output {at}FILE.wav", end.node),
            "a file that ends in .ogg gets Ogg Opus",
        ));
    }
    Ok(bound)
}

/// Refuses names that promise a format which is not written. A name without an ending (a device, a pipe) gets WAV.
pub fn writable(path: &Path) -> Result<(), Failure> {
    let Some(ending) = path.extension().map(|e| e.to_string_lossy().to_lowercase()) else { return Ok(()) };
    if WAV.contains(&ending.as_str()) || OGG.contains(&ending.as_str()) {
        return Ok(());
    }
    let (wav, ogg) = (path.with_extension("wav"), path.with_extension("ogg"));
    let (wav, ogg) = (wav.display(), ogg.display());
    Err(Failure::usage(
        format!(
            "no audio is written as .{ending} (`{}`); what is: .wav (WAV, 16-bit PCM), .ogg, .opus or .oga (Ogg Opus)",
            path.display()
        ),
        format!(
            "use {wav}, or {ogg} for a small file; a converter makes other formats of it, as `ffmpeg -i {wav} {}`",
            path.display()
        ),
    ))
}

/// Endings of WAV and of Ogg Opus, in small letters.
const WAV: [&str; 2] = ["wav", "wave"];
const OGG: [&str; 3] = ["ogg", "opus", "oga"];

/// True if a file of this name gets Ogg Opus.
pub fn is_ogg(path: &Path) -> bool {
    path.extension().is_some_and(|e| OGG.iter().any(|o| e.eq_ignore_ascii_case(o)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(node: &str, kind: &str) -> End {
        End { node: node.to_owned(), kind: kind.parse().unwrap() }
    }
    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|s| (*s).to_owned()).collect()
    }
    fn says(r: Result<impl std::fmt::Debug, Failure>) -> String {
        match r.unwrap_err() {
            Failure::Usage { message, hint } => format!("{message} | {hint}"),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn an_input_without_a_file_says_how_to_give_one() {
        let mic = [end("mic", "audio 16000 mono f32")];
        assert!(
            says(inputs(&mic, &[], None)).starts_with("this graph listens at `mic`: give it a recording with --input")
        );
        let two = [end("mic", "audio 16000"), end("note", "text")];
        assert!(says(inputs(&two, &words(&["a.wav"]), None)).contains("reads text at `note`"));
        assert!(says(inputs(&two, &words(&["note=a.txt"]), None)).contains("--input mic=FILE"));
    }
    #[test]
    fn files_go_to_the_ends_named_or_in_order() {
        let two = [end("mic", "audio 16000"), end("note", "text")];
        let got = inputs(&two, &words(&["a=b.wav", "note=-"]), None).unwrap();
        assert_eq!(got[0].1, Given::File("a=b.wav".into()), "a name with = in it is a file");
        assert_eq!(got[1].1, Given::Stdin);
        let got = inputs(&two, &words(&["a.wav"]), Some("hello")).unwrap();
        assert_eq!(got[1].1, Given::Text("hello".into()));
        assert!(says(inputs(&two, &words(&["a", "b", "c"]), None)).contains("no input left"));
        assert!(says(inputs(&two, &words(&["mic=a", "mic=b"]), None)).contains("given twice"));
        assert!(says(inputs(&two, &words(&["-", "-"]), None)).contains("standard input"));
        assert!(says(inputs(&[], &words(&["a"]), None)).contains("needs no input"));
    }
    #[test]
    fn an_input_for_signals_stays_unfed() {
        let all = [end("control", "signal"), end("mic", "audio 16000 mono f32")];
        let got = inputs(&all, &words(&["a.wav"]), None).unwrap();
        assert_eq!(got, [(all[1].clone(), Given::File("a.wav".into()))]);
        assert!(inputs(&all[..1], &[], None).unwrap().is_empty());
        assert!(says(inputs(&all, &words(&["control=a.wav"]), None)).contains("takes signal at `control`"));
    }
    #[test]
    fn an_input_that_cannot_be_fed_is_refused() {
        assert!(says(inputs(&[end("x", "packet opus")], &[], None)).contains("packet opus at `x`"));
        assert!(says(inputs(&[end("x", "audio 16000")], &[], Some("hi"))).contains("no text input"));
        assert!(says(inputs(&[end("x", "text")], &[], Some(" "))).contains("empty"));
    }
    #[test]
    fn formats_that_are_not_written_are_refused_with_those_that_are() {
        let all = [end("speaker", "audio")];
        for name in ["t.mp3", "T.FLAC", "a.b/c.m4a", "x.wav.txt", "speaker=t.mp3"] {
            let text = says(outputs(&all, &words(&[name])));
            for part in ["no audio is written as .", ".wav (WAV", ".ogg, .opus or .oga (Ogg Opus)"] {
                assert!(text.contains(part), "{text}");
            }
        }
        assert!(says(outputs(&all, &words(&["t.mp3"]))).contains("use t.wav, or t.ogg"));
        for name in ["t.wav", "t.WAVE", "t.ogg", "t.Opus", "t.oga", "/dev/full", "dir.d/name"] {
            outputs(&all, &words(&[name])).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        assert!(is_ogg(Path::new("a.OGA")) && is_ogg(Path::new("a.opus")) && !is_ogg(Path::new("a.wav")));
    }
    #[test]
    fn audio_outputs_need_a_file_and_others_take_none() {
        let all = [end("said", "text"), end("speaker", "audio")];
        assert!(says(outputs(&all, &[])).contains("speaks at `speaker`"));
        assert_eq!(outputs(&all, &words(&["a.wav"])).unwrap()["speaker"], PathBuf::from("a.wav"));
        assert!(says(outputs(&all[..1], &words(&["a.wav"]))).contains("no audio output"));
        assert!(says(outputs(&all, &words(&["said=a.wav"]))).contains("no audio output"));
        let two = [end("l", "audio"), end("r", "audio")];
        assert!(says(outputs(&two, &words(&["a.wav", "a.wav"]))).contains("two outputs"));
        assert!(says(outputs(&two, &words(&["a.wav"]))).contains("--output r=FILE.wav"));
    }
}
