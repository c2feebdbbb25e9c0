//! Node types that only declare facts: enough to read, check and draw graphs.

use omni_flow::units::{Dur, Size};
use omni_flow::{
    Body, BuildCx, BuildError, ChunkNotes, Client, Kind, Make, MediaTime, Medium, Opt, OptionError, Port, Registry,
    Schema,
};
use serde::Deserialize;

fn kind(s: &str) -> Kind {
    s.parse().unwrap()
}

macro_rules! toy {
    ($t:ident, $name:literal, $config:ty, $schema:expr $(, $refine:expr)?) => {
        pub struct $t;
        impl Make for $t {
            const NAME: &'static str = $name;
            type Config = $config;
            fn schema() -> Schema {
                $schema
            }
            $(fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
                #[allow(clippy::redundant_closure_call)]
                ($refine)(config, schema)
            })?
            /// Those that are models give chunks by a policy, the others do not.
            fn chunks(_: &Self::Config, cx: &BuildCx) -> Result<ChunkNotes, OptionError> {
                match &cx.chunk {
                    Some(c) if Self::schema().shared => Ok(ChunkNotes {
                        ports: vec![("text".into(), format!("chunks by {c}"))],
                        warnings: c.get("initial").map(|n| format!("`initial` is {n}")).into_iter().collect(),
                    }),
                    Some(_) => Err(OptionError::new("chunk", format!("`{}` has no policies", $name), "take it out")),
                    None => Ok(ChunkNotes::default()),
                }
            }
            fn build(_: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
                Err(BuildError { message: "a toy".into(), source: None })
            }
        }
    };
}

#[derive(Deserialize)]
pub struct Nothing {}

#[derive(Deserialize)]
pub struct Audio {
    #[serde(default)]
    audio: Rate,
}
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    rate: u32,
}
impl Default for Rate {
    fn default() -> Self {
        Self { rate: 48_000 }
    }
}
toy!(
    SessionIn,
    "session.in",
    Audio,
    Schema {
        client: Some(Client::In),
        ..Schema::new("What the client sends.")
            .output(Port::new("audio", kind("audio"), "what was said"))
            .option(Opt::maybe("audio", "map", "format of the audio"))
            .example("mic: { use: session.in, audio: { rate: 16000 } }")
    },
    |c: &Audio, s: &mut Schema| {
        s.outputs[0].kind = Kind::mono(c.audio.rate);
        Ok(())
    }
);
toy!(
    SessionOut,
    "session.out",
    Nothing,
    Schema {
        client: Some(Client::Out),
        ..Schema::new("What the client gets.")
            .input(Port::new("audio", kind("audio"), "to play").lossy())
            .input(Port::new("text", kind("text"), "to show").optional())
    }
);

#[derive(Deserialize)]
pub struct Resample {
    rate: u32,
    #[serde(default)]
    #[allow(dead_code)]
    quality: Quality,
}
#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Quality {
    #[default]
    High,
    Low,
}
toy!(
    Resampler,
    "audio.resample",
    Resample,
    Schema::new("Changes the sample rate.")
        .input(Port::new("in", kind("audio"), "any rate"))
        .output(Port::new("out", kind("audio"), "the new rate").like("in"))
        .option(Opt::required("rate", "integer", "samples per second, 8000 to 192000"))
        .option(Opt::new("quality", "high|low", "high", "how steep"))
        .example("down: { use: audio.resample, rate: 16000, in: mic }"),
    |c: &Resample, s: &mut Schema| {
        if !(8_000..=192_000).contains(&c.rate) {
            return Err(OptionError::new("rate", format!("{} Hz cannot be made", c.rate), "8000 to 192000"));
        }
        s.outputs[0].kind.rate = Some(c.rate);
        Ok(())
    }
);
toy!(
    Vad,
    "speech.vad",
    Nothing,
    Schema::new("Finds speech.")
        .input(Port::new("in", kind("audio 16000 mono f32"), "what is heard"))
        .output(Port::new("out", kind("audio 16000 mono f32"), "the same, with marks"))
);

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code)]
pub struct Turns {
    #[serde(default)]
    min_silence: Dur,
    #[serde(default)]
    hold: Size,
    #[serde(default)]
    eager: bool,
    #[serde(default)]
    threshold: f32,
    lang: Option<String>,
    id: Option<String>,
    at: Option<String>,
    version: Option<String>,
    count: Option<u32>,
    words: Option<Vec<String>>,
    api_key: Option<String>,
}
toy!(
    Turn,
    "speech.turn",
    Turns,
    Schema::new("Decides turns.")
        .input(Port::new("in", kind("audio 16000 mono f32"), "speech with marks"))
        .output(Port::new("utterance", kind("audio 16000 mono f32"), "one utterance"))
        .output(Port::new("decided", kind("signal"), "that it ended"))
        .fences()
        .option(Opt::new("min-silence", "duration", "500ms", "silence that ends a turn"))
        .option(Opt::new("hold", "size", "1MiB", "most kept"))
        .option(Opt::new("eager", "yes/no", "false", "begin early"))
        .option(Opt::new("threshold", "number", "0.5", "0 to 1"))
        .option(Opt::maybe("lang", "text", "language"))
        .option(Opt::maybe("id", "text", "any"))
        .option(Opt::maybe("at", "text", "a time"))
        .option(Opt::maybe("version", "text", "any"))
        .option(Opt::maybe("count", "integer", "any"))
        .option(Opt::maybe("words", "list", "any"))
        .option(Opt::maybe("api-key", "text", "a secret"))
);
toy!(
    Recogniser,
    "model.whisper",
    Nothing,
    Schema::new("Speech to text.")
        .input(Port::new("audio", kind("audio 16000 mono f32"), "speech"))
        .output(Port::new("text", kind("text"), "what was said"))
        .shared()
);
toy!(
    Chat,
    "model.chat",
    Nothing,
    Schema::new("Answers.")
        .input(Port::new("text", kind("text"), "the question"))
        .input(Port::new("played", kind("signal"), "what was heard of the answer").feedback())
        .output(Port::new("text", kind("text"), "the answer"))
        .shared()
);
toy!(
    Talker,
    "model.talker",
    Nothing,
    Schema::new("Text to audio.")
        .input(Port::new("text", kind("text"), "to say"))
        .output(Port::new("audio", kind("audio 16000 mono f32"), "said"))
        .shared()
);
toy!(
    Playout,
    "speech.playout",
    Nothing,
    Schema::new("Paces audio.")
        .input(Port::new("audio", kind("audio"), "to play").lossy())
        .output(Port::new("audio", kind("audio"), "at its pace").like("audio"))
        .output(Port::new("played", kind("signal"), "what was played"))
);
toy!(
    Join,
    "util.join",
    Nothing,
    Schema::new("Needs both.")
        .input(Port::new("a", Kind::of(Medium::Any), "one"))
        .input(Port::new("b", Kind::of(Medium::Any), "other"))
        .output(Port::new("out", Kind::of(Medium::Any), "both").like("a"))
);
toy!(
    Pass,
    "util.pass",
    Nothing,
    Schema::new("Gives what it takes.")
        .input(Port::new("in", Kind::of(Medium::Any), "any"))
        .output(Port::new("out", Kind::of(Medium::Any), "the same").like("in"))
);
toy!(
    Loop,
    "util.loop",
    Nothing,
    Schema::new("A loop that its author got wrong.")
        .input(Port::new("in", Kind::of(Medium::Any), "any"))
        .input(Port { required: true, ..Port::new("back", Kind::of(Medium::Any), "the loop").feedback() })
        .output(Port::new("out", Kind::of(Medium::Any), "the same").like("in"))
);
toy!(
    Encode,
    "audio.opus-encode",
    Nothing,
    Schema::new("Encodes.")
        .input(Port::new("in", kind("audio"), "samples"))
        .output(Port::new("out", kind("packet opus"), "packets"))
        .heavy()
);
toy!(Sink, "file.out", Nothing, Schema::new("Ends here.").input(Port::new("in", Kind::of(Medium::Any), "any")));

#[derive(Deserialize)]
pub struct Blocks {
    length: Dur,
}
toy!(
    Framer,
    "audio.frame",
    Blocks,
    Schema::new("Cuts blocks.")
        .input(Port::new("in", kind("audio"), "samples"))
        .output(Port::new("out", kind("audio"), "blocks").like("in"))
        .option(Opt::required("length", "duration", "length of a block")),
    |c: &Blocks, s: &mut Schema| {
        s.outputs[0].longest = MediaTime::from_duration(c.length.0);
        Ok(())
    }
);

#[derive(Deserialize)]
pub struct Named {
    model: String,
}
/// Its model is a file; a name in the catalogue could be fetched.
pub struct Translator;
impl Make for Translator {
    const NAME: &'static str = "model.translate";
    type Config = Named;
    fn schema() -> Schema {
        Schema::new("Text to text.")
            .input(Port::new("in", kind("text"), "text"))
            .output(Port::new("out", kind("text"), "text"))
            .option(Opt::required("model", "text", "a file, or the name of one"))
            .shared()
    }
    fn look(config: &Named, cx: &BuildCx) -> Result<(), OptionError> {
        let there = if config.model.contains('/') { cx.folder.join(&config.model).exists() } else { !cx.offline };
        let hint = "relative paths start at the folder of the graph file";
        if there { Ok(()) } else { Err(OptionError::new("model", format!("there is no `{}`", config.model), hint)) }
    }
    fn build(_: &Named, _: &BuildCx) -> Result<Body, BuildError> {
        Err(BuildError::new("a toy"))
    }
}

pub fn registry() -> Registry {
    let mut r = Registry::new();
    r.add::<SessionIn>().unwrap().add::<SessionOut>().unwrap().add::<Resampler>().unwrap().add::<Vad>().unwrap();
    r.add::<Turn>().unwrap().add::<Recogniser>().unwrap().add::<Chat>().unwrap().add::<Talker>().unwrap();
    r.add::<Playout>().unwrap().add::<Join>().unwrap().add::<Pass>().unwrap().add::<Loop>().unwrap();
    r.add::<Encode>().unwrap().add::<Sink>().unwrap().add::<Framer>().unwrap().add::<Translator>().unwrap();
    r
}
