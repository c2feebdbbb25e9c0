//! Any audio file, from memory and through a pipe.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use omni_flow_media::file::{AudioFile, Input};

fuzz_target!(|input: &[u8]| {
    for source in [Input::memory(input.to_vec()), Input::pipe(Cursor::new(input.to_vec()))] {
        let Ok(mut file) = AudioFile::new(source, "fuzz") else { continue };
        let mut out = Vec::new();
        while matches!(file.next(&mut out), Ok(1..)) {
            out.clear();
        }
    }
});
