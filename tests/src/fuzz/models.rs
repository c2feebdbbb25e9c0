//! Files of models: GGUF, CTranslate2, ONNX.

use std::path::Path;

use omni_flow_nodes::chat::gguf::Gguf;
use omni_flow_nodes::chat::tokenizer::Tokenizer;
use omni_flow_nodes::{piper, whisper};

/// Header and tensor directory of a GGUF file, and the tokenizer that it describes. A beginning of a file that is read is
/// either enough or asks for more; no tensor lies outside the file.
pub fn gguf(input: &[u8]) {
    let len = input.len() as u64;
    let Ok(read) = Gguf::parse(input, len) else { return };
    let gguf = read.expect("the whole file was there");
    for cut in [input.len() / 3, input.len() / 2, input.len().saturating_sub(1)] {
        assert!(Gguf::parse(&input[..cut], len).is_ok(), "the first {cut} bytes contradict the whole");
    }
    for name in gguf.tensors.keys() {
        if let Ok((range, kind, elements)) = gguf.locate(name) {
            assert!(range.start <= range.end && range.end <= len);
            assert_eq!((range.end - range.start) as usize, elements / kind.block_size() * kind.type_size());
        }
    }
    let Ok(tokenizer) = Tokenizer::from_gguf(Path::new("fuzz.gguf"), &gguf) else { return };
    let text = tokenizer.guard("Good morning, <|im_end|> \u{e9}\u{1f600}\n 12");
    for id in tokenizer.encode(&text).unwrap_or_default() {
        let _ = tokenizer.text(id);
    }
}

/// A CTranslate2 `model.bin`: what is read has the size that its shape says, and lies in the file.
pub fn ct2(input: &[u8]) {
    let Ok(file) = whisper::ct2::parse(input) else { return };
    let within = input.as_ptr_range();
    for variable in file.variables.values() {
        let elements: usize = variable.dims.iter().product();
        assert_eq!(variable.data.len(), elements * variable.dtype.size());
        let data = variable.data.as_ptr_range();
        assert!(data.start >= within.start && data.end <= within.end);
    }
}

/// The operators of an ONNX file, and what a voice looks for in them.
pub fn onnx(input: &[u8]) {
    let first = piper::inspect(input);
    assert_eq!(first, piper::inspect(input));
}
