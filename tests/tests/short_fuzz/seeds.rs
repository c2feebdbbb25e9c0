//! Small right files of each format, written here field by field.

use std::sync::Arc;
use std::time::Duration;

use omni_flow::{Dtype, MediaTime, Packet, Payload, Pcm, Signal, Stamp, Tensor, Tokens, TurnEnd};
use omni_flow_media::opus::{EncoderConfig, OpusEncoder};
use omni_flow_nodes::util::recording::{MAGIC, encode};

/// Packets of a tone: 20 ms mono and stereo, 60 ms.
pub fn opus_packets() -> Vec<Vec<u8>> {
    let kinds = [(16_000, 1, 200), (48_000, 2, 200), (24_000, 1, 600)];
    let packet = |(rate, channels, frame_tenths)| {
        let config = EncoderConfig { rate, channels, frame_tenths, complexity: 1, ..EncoderConfig::default() };
        let samples = usize::from(frame_tenths) * rate as usize / 10_000 * usize::from(channels);
        let tone: Vec<f32> = (0..samples).map(|i| 0.3 * (i as f32 * 0.05).sin()).collect();
        OpusEncoder::new(config).unwrap().encode(&tone).unwrap()
    };
    kinds.into_iter().map(packet).collect()
}

/// Pages as the target `ogg_opus` takes them: head, tags, some packets.
pub fn ogg_pages() -> Vec<Vec<u8>> {
    let page = |kind: u8, sequence: u8, position: u8, body: &[u8]| {
        let mut page = vec![kind, 0, sequence, position, 1, u8::try_from(body.len()).unwrap()];
        page.extend_from_slice(body);
        page
    };
    let mut head = b"OpusHead".to_vec();
    head.extend([1, 1, 0x38, 1, 0x80, 0x3E, 0, 0, 0, 0, 0]);
    let mut tags = b"OpusTags".to_vec();
    tags.extend([0; 8]);
    let packet = opus_packets().into_iter().find(|p| p.len() < 255).expect("a short packet");
    let mut all = [page(2, 0, 1, &head), page(0, 1, 1, &tags)].concat();
    for i in 0..4 {
        all.extend(page(if i == 3 { 4 } else { 0 }, 2 + i, 3 + 2 * i, &packet));
    }
    vec![all]
}

/// One with byte pairs, one with pieces and scores; both with a tensor in f32 and one in blocks.
pub fn gguf() -> Vec<Vec<u8>> {
    let text = |out: &mut Vec<u8>, s: &str| {
        out.extend((s.len() as u64).to_le_bytes());
        out.extend(s.as_bytes());
    };
    let file = |model: &str, tokens: &[&str], more: &dyn Fn(&mut Vec<u8>), keys: u64| {
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend(2u64.to_le_bytes());
        out.extend((3 + keys).to_le_bytes());
        for (key, value) in [("general.architecture", "llama"), ("tokenizer.ggml.model", model)] {
            text(&mut out, key);
            out.extend(8u32.to_le_bytes());
            text(&mut out, value);
        }
        text(&mut out, "tokenizer.ggml.tokens");
        texts(&mut out, tokens);
        more(&mut out);
        for (name, dims, kind, offset) in [("a", &[8u64, 2][..], 0u32, 0u64), ("b", &[32], 8, 64)] {
            text(&mut out, name);
            out.extend((dims.len() as u32).to_le_bytes());
            dims.iter().for_each(|d| out.extend(d.to_le_bytes()));
            out.extend(kind.to_le_bytes());
            out.extend(offset.to_le_bytes());
        }
        out.resize(out.len().next_multiple_of(32) + 64 + 34, 1);
        out
    };
    let pairs = |out: &mut Vec<u8>| {
        text(out, "tokenizer.ggml.merges");
        texts(out, &["a b"]);
    };
    let scores = |out: &mut Vec<u8>| {
        text(out, "tokenizer.ggml.scores");
        out.extend([9u32, 6].iter().flat_map(|v| v.to_le_bytes()));
        out.extend(4u64.to_le_bytes());
        (0..4).for_each(|i| out.extend((-(i as f32)).to_le_bytes()));
    };
    vec![
        file("gpt2", &["a", "b", "ab", "<|im_end|>"], &pairs, 1),
        file("llama", &["<unk>", "a", "b", "ab"], &scores, 1),
    ]
}

/// An array of strings of a GGUF file.
fn texts(out: &mut Vec<u8>, all: &[&str]) {
    out.extend([9u32, 8].iter().flat_map(|v| v.to_le_bytes()));
    out.extend((all.len() as u64).to_le_bytes());
    for s in all {
        out.extend((s.len() as u64).to_le_bytes());
        out.extend(s.as_bytes());
    }
}

/// Three variables and an alias.
pub fn ct2() -> Vec<Vec<u8>> {
    let text = |out: &mut Vec<u8>, s: &str| {
        out.extend((s.len() as u16 + 1).to_le_bytes());
        out.extend(s.as_bytes());
        out.push(0);
    };
    let mut out = 6u32.to_le_bytes().to_vec();
    text(&mut out, "WhisperSpec");
    out.extend(3u32.to_le_bytes());
    let variables: [(&str, &[u32], u8, usize); 3] =
        [("encoder/weight", &[2, 3], 4, 12), ("heads", &[], 2, 2), ("bias", &[4], 0, 16)];
    out.extend((variables.len() as u32).to_le_bytes());
    for (name, dims, kind, bytes) in variables {
        text(&mut out, name);
        out.push(dims.len() as u8);
        dims.iter().for_each(|d| out.extend(d.to_le_bytes()));
        out.push(kind);
        out.extend((bytes as u32).to_le_bytes());
        out.extend(std::iter::repeat_n(1, bytes));
    }
    out.extend(1u32.to_le_bytes());
    text(&mut out, "decoder/weight");
    text(&mut out, "encoder/weight");
    vec![out]
}

/// The joints of a small vocoder, and a graph that is none.
pub fn onnx() -> Vec<Vec<u8>> {
    let field = |number: u8, content: &[u8]| {
        let mut out = vec![number << 3 | 2];
        let mut len = content.len();
        while len >= 0x80 {
            out.push(len as u8 | 0x80);
            len >>= 7;
        }
        out.push(len as u8);
        out.extend(content);
        out
    };
    let node = |op: &str, inputs: &[&str], output: &str, ints: &[(&str, &[u8])]| {
        let mut node: Vec<u8> = inputs.iter().flat_map(|i| field(1, i.as_bytes())).collect();
        node.extend(field(2, output.as_bytes()));
        node.extend(field(4, op.as_bytes()));
        for (name, values) in ints {
            node.extend(field(5, &[field(1, name.as_bytes()), field(8, values)].concat()));
        }
        field(1, &node)
    };
    let model = |nodes: &[Vec<u8>]| {
        let mut graph = nodes.concat();
        graph.extend(field(12, &field(1, b"output")));
        field(7, &graph)
    };
    let vocoder = [
        node("RandomNormalLike", &["text"], "noise", &[]),
        node("Mul", &["text", "noise"], "latents", &[]),
        node("Conv", &["latents", "w1"], "a", &[("kernel_shape", &[7]), ("pads", &[3, 3]), ("dilations", &[1])]),
        node("LeakyRelu", &["a"], "b", &[]),
        node("ConvTranspose", &["b", "w2"], "c", &[("kernel_shape", &[16]), ("strides", &[8]), ("pads", &[4, 4])]),
        node("Conv", &["c", "w3"], "d", &[("kernel_shape", &[3]), ("pads", &[1, 1])]),
        node("Tanh", &["d"], "output", &[]),
    ];
    vec![model(&vocoder), model(&[node("Conv", &["x", "w"], "output", &[("pads", &[3, 3])])])]
}

/// A chat server's answer, and the corners of the format.
pub fn sse() -> Vec<Vec<u8>> {
    [
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n",
        "\u{feff}: hello\r\nevent: x\r\ndata: a\r\ndata: b\r\n\r\nid: 1\ndata\n\n",
        "data:a\rdata: b\r\rdata: the end without a blank line",
    ]
    .map(|s| s.as_bytes().to_vec())
    .to_vec()
}

/// Events of a Realtime client, those with most fields.
pub fn client_events() -> Vec<Vec<u8>> {
    [
        r#"{"type":"session.update","event_id":"e1","session":{"instructions":"Be short.","output_modalities":["audio"]}}"#,
        r#"{"type":"session.resume","session_id":"s1","resume_token":"t","last_received_server_event_seq":7}"#,
        r#"{"type":"input_audio_buffer.append","audio":"AAAA","format":{"type":"audio/pcm","rate":24000},"duration_ms":20}"#,
        r#"{"type":"input_audio_buffer.append","video_frames":["/9j/4AAQ"],"vad":{"is_speech":true},"overlap":"ack"}"#,
        r#"{"type":"input.commit","final":true,"is_speech":null}"#,
        r#"{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}}"#,
        r#"{"type":"conversation.item.truncate","item_id":"item_r1","content_index":0,"audio_end_ms":1200}"#,
        r#"{"type":"response.create","response":{"instructions":"Sing.","metadata":{"a":"b"}}}"#,
        r#"{"type":"playback.ack","response_id":"r1","played_ms":200.5,"truncate":true}"#,
        r#"{"type":"turn.signal","event":"playback_ack","payload":{"played_ms":20}}"#,
    ]
    .map(|s| s.as_bytes().to_vec())
    .to_vec()
}

/// One record of each kind, alone and together.
pub fn recordings() -> Vec<Vec<u8>> {
    let t = MediaTime::from_ticks;
    let tensor = Tensor { dtype: Dtype::F32, shape: [2, 1].into(), buf: bytes::Bytes::from_static(&[0; 8]).into() };
    let data = bytes::Bytes::from_static(&[7; 9]);
    let payloads = [
        Payload::Audio(Pcm::mono(16_000, vec![0.5; 4]).with_voice(0.5)),
        Payload::Text("Good morning".into()),
        Payload::Tokens(Tokens([1, 2, 3].into())),
        Payload::Tensor(tensor),
        Payload::Packet(Packet { codec: "opus".into(), data, key: true, rate: 48_000, channels: 1 }),
        Payload::Signal(Signal::SpeechStarted { at: t(5) }),
        Payload::Signal(Signal::TurnEnded { start: t(1), speech_end: t(2), end: t(3), reason: TurnEnd::Silence }),
        Payload::Signal(Signal::Gap { items: 3, len: t(9) }),
        Payload::Signal(Signal::Named { name: "n".into(), data: Arc::from("{}") }),
    ];
    let stamp = Stamp { pts: t(705_600), len: t(1), last: true, ..Stamp::default() };
    let mut together = MAGIC.to_vec();
    let mut all = Vec::new();
    for (i, payload) in payloads.iter().enumerate() {
        let at = Duration::from_millis(i as u64);
        let mut alone = MAGIC.to_vec();
        encode(at, &stamp, payload, &mut alone).unwrap();
        encode(at, &stamp, payload, &mut together).unwrap();
        all.push(alone);
    }
    all.push(together);
    all
}

/// The shipped catalogue, a small one, and ways to write one model.
pub fn catalogues() -> Vec<Vec<u8>> {
    let sum = "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49";
    let small = format!(
        "[{{\"name\":\"m\",\"title\":\"t\",\"licence\":\"MIT\",\"hub\":{{\"repository\":\"a/b\",\"revision\":\"c\"}},\
         \"files\":[{{\"name\":\"f\",\"size\":3,\"sha256\":\"{sum}\",\"hub\":\"f\"}}]}}]"
    );
    let specs = ["hub:org/repo@main/folder/file.gguf", "https://host/file#sha256=", "./file.gguf", "smollm2-135m"];
    let mut all: Vec<Vec<u8>> = specs.iter().map(|s| s.as_bytes().to_vec()).collect();
    all[1].extend(sum.as_bytes());
    all.extend([small.into_bytes(), include_bytes!("../../../nodes/src/catalogue/models.json").to_vec()]);
    all
}

/// A voice with a few phonemes.
pub fn voice_configs() -> Vec<Vec<u8>> {
    let text = r#"{
        "audio": { "sample_rate": 22050 }, "espeak": { "voice": "en-us" }, "language": { "code": "en_US" },
        "inference": { "noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8 }, "num_speakers": 2, "num_symbols": 256,
        "speaker_id_map": { "a": 0, "b": 1 },
        "phoneme_id_map": { "_": [0], "^": [1], "$": [2], " ": [3], "h": [20], "l": [24], "o": [27] }
    }"#;
    vec![text.as_bytes().to_vec()]
}

/// The graphs that are shipped.
pub fn graphs() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../graphs");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "yaml")).collect();
    files.sort();
    assert!(files.len() >= 6, "the shipped graphs are there");
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}
