//! Text and records: graph files, server-sent events, the catalogue, a voice's configuration, recordings.

use std::io::Cursor;
use std::sync::OnceLock;

use omni_flow::{CheckCx, Diagnostics, GraphFile, Registry, Stamp};
use omni_flow_nodes::catalogue::{Catalogue, Spec, is_model_name};
use omni_flow_nodes::chat::remote::SseParser;
use omni_flow_nodes::piper::VoiceConfig;
use omni_flow_nodes::registry::registry;
use omni_flow_nodes::util::recording::{Records, encode};

/// A graph file against all node types: read, or refused with findings that lie within their texts. What is right can be
/// drawn.
pub fn graph(input: &[u8]) {
    static TYPES: OnceLock<Registry> = OnceLock::new();
    let types = TYPES.get_or_init(|| registry().expect("the types of the library agree"));
    let text = String::from_utf8_lossy(input);
    let checked = GraphFile::parse("fuzz.yaml", &text).and_then(|file| file.check(types, &CheckCx::default()));
    let found: Diagnostics = match checked {
        Ok((plan, warnings)) => {
            assert!(!plan.svg().is_empty() && !plan.mermaid().is_empty());
            warnings
        }
        Err(found) => {
            assert!(found.has_errors());
            found
        }
    };
    for finding in found.iter() {
        for span in finding.span.into_iter().chain(finding.labels.iter().map(|(span, _)| *span)) {
            let source = found.sources().get(span.file).expect("a source");
            assert!(source.text.get(span.start as usize..span.end as usize).is_some(), "{finding:?}");
        }
    }
    assert!(found.is_empty() || !found.render(false).is_empty());
    let _ = found.to_json();
}

/// Server-sent events: any cut gives the same events, and they hold no more than came. The first two bytes choose the
/// longest line and the step.
pub fn sse(input: &[u8]) {
    let [limit, step, bytes @ ..] = input else { return };
    let read = |step: usize| {
        let (mut parser, mut events) = (SseParser::new(1 + usize::from(*limit)), Vec::new());
        let pushed = bytes.chunks(step).try_for_each(|piece| parser.push(piece, &mut events));
        let end = pushed.and_then(|()| parser.finish(&mut events));
        (end, events)
    };
    let whole = read(bytes.len().max(1));
    assert_eq!(whole, read(1));
    assert_eq!(whole, read(1 + usize::from(*step)));
    assert!(whole.1.iter().map(String::len).sum::<usize>() <= bytes.len());
}

/// A catalogue of models, and the way to write one model: what is read names files that stay in their folder.
pub fn catalogue(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(catalogue) = Catalogue::from_json(&text) {
        for model in catalogue.models() {
            assert!(is_model_name(&model.name) && model.files.iter().all(|f| is_model_name(&f.name)));
        }
    }
    if let Ok(Spec::Hub { repository, revision, file }) = text.parse() {
        assert!([repository, revision, file].iter().all(|part| part.split('/').all(is_model_name)));
    }
}

/// The configuration of a Piper voice: what is read encodes any phonemes.
pub fn voice_config(input: &[u8]) {
    let Ok(config) = VoiceConfig::parse(input) else { return };
    let phonemes = "h\u{259}l\u{2c8}o\u{28a}, ^_$\u{1f600}";
    let (_, unknown) = config.encode(phonemes);
    assert!(unknown <= phonemes.chars().count());
}

/// A recording: what is read can be written, and is read as the same again.
pub fn recording(input: &[u8]) {
    let Ok(mut records) = Records::new(Cursor::new(input)) else { return };
    let (mut bytes, mut count) = (input[..8].to_vec(), 0);
    while let Ok(Some(record)) = records.read_next() {
        let stamp = Stamp { pts: record.pts, len: record.len, last: record.last, ..Stamp::default() };
        encode(record.at, &stamp, &record.payload, &mut bytes).expect("what was read fits");
        count += 1;
    }
    let (mut again, mut same) = (Records::new(Cursor::new(&bytes)).expect("the same beginning"), bytes[..8].to_vec());
    for _ in 0..count {
        let record = again.read_next().expect("it was written").expect("all are there");
        let stamp = Stamp { pts: record.pts, len: record.len, last: record.last, ..Stamp::default() };
        encode(record.at, &stamp, &record.payload, &mut same).expect("it was written once");
    }
    assert_eq!(bytes, same);
}
