//! The command line: what can be said, and the help that teaches it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

const EXAMPLES: &str = "\
Examples:
  Serve a voice assistant, and talk to it in the browser at http://127.0.0.1:8080:
    omni-flow run graphs/voice-assistant.yaml
  Ask the assistant a question and keep the answer:
    omni-flow run graphs/voice-assistant.yaml --input question.wav --output answer.wav
  Speak a text while it is being made into speech:
    omni-flow run graphs/speak.yaml --text \"Good morning.\" --output morning.wav
  See what a graph would do, without starting it:
    omni-flow check graphs/voice-assistant.yaml
  Write down what is said in a recording:
    omni-flow run graphs/transcribe.yaml --input question.wav
  Learn what a node type takes, gives and can be told:
    omni-flow nodes speech.turn
  All graphs that come with it, a line each:
    omni-flow run --help

Exit codes: 0 all went well, 1 the run failed, 2 the graph or the command line is wrong, 130 stopped by Ctrl-C.
Log: OMNI_FLOW_LOG=debug (or RUST_LOG), to standard error. Models are kept in OMNI_FLOW_CACHE, or ~/.cache/omni-flow.
Abort: nodes have OMNI_FLOW_ABORT_TIMEOUT seconds (2) to let go when a run is stopped at once.";

/// Realtime voice and video AI as one graph.
#[derive(Parser, Debug)]
#[command(
    name = "omni-flow",
    version,
    about = "Run realtime voice and video AI, described as a graph in a YAML file",
    after_long_help = EXAMPLES,
    after_help = "Try `omni-flow run graphs/tone.yaml --output tone.wav`; `omni-flow --help` has more examples.",
    arg_required_else_help = true,
    subcommand_required = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Serve a graph to clients; or run it once, a recording or a text in, a recording and text out
    Run(RunArgs),
    /// Talk to a Realtime server: by microphone, with a recording, or in writing
    Talk(crate::talk::TalkArgs),
    /// Check a graph without starting it, and print its plan
    Check(CheckArgs),
    /// Draw a graph as a Mermaid chart or an SVG picture
    Draw(DrawArgs),
    /// List the node types, or explain one: ports, options, an example
    Nodes(NodesArgs),
    /// List, fetch, verify or delete the models in the cache
    Models(ModelsArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one per command into a folder
    Man {
        /// Folder to write into; it must exist
        #[arg(value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
    },
}

/// The graph and what stands above it.
#[derive(Args, Debug, Clone)]
pub struct GraphArgs {
    /// The graph file
    #[arg(value_hint = ValueHint::FilePath)]
    pub graph: PathBuf,
    /// Sets one value of the graph: `nodes.llm.max-tokens=32`. May be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Merges JSON of the shape of a graph file into the graph: '{"session":{"max-sessions":2}}'
    #[arg(long = "override", value_name = "JSON")]
    pub overrides: Vec<String>,
}

// Lines of at most 98 columns: clap breaks longer ones, and a broken command cannot be copied.
const RUN_HELP: &str = "\
Graphs that come with it (each file begins with what it does and how to change it):
  tone.yaml: a sound, written to a file; needs no model
    omni-flow run graphs/tone.yaml --output tone.wav
  echo.yaml: gives back what it hears; needs no model
    omni-flow run graphs/echo.yaml --input question.wav --output heard.wav
  scripted-duplex.yaml: a partner that says what its script says; needs no model
    omni-flow run graphs/scripted-duplex.yaml --input question.wav --output answer.wav
  opus-roundtrip.yaml: a recording through the Opus codec and back; needs no model
    omni-flow run graphs/opus-roundtrip.yaml --input question.wav --output opus.wav
  vad-segments.yaml: prints where speech begins and ends in a recording
    omni-flow run graphs/vad-segments.yaml --input question.wav
  transcribe.yaml: speech to text, prints each utterance when it is over
    omni-flow run graphs/transcribe.yaml --input question.wav
  speak.yaml: text to speech, while the text arrives
    omni-flow run graphs/speak.yaml --text \"Good morning.\" --output morning.wav
  chat.yaml: answers questions over the chat API, as text, as speech, or as both
    omni-flow run graphs/chat.yaml
  voice-assistant.yaml: a spoken conversation; hears, answers aloud, can be interrupted
    omni-flow run graphs/voice-assistant.yaml --input question.wav --output answer.wav

Serving: a graph with a `session.in` that is given neither --input, --text nor --output is served
  to clients until Ctrl-C: a page to talk with at http://127.0.0.1:8080, the OpenAI Realtime
  protocol at ws://127.0.0.1:8080/v1/realtime; graphs of mode `turn` answer requests as the API
  has them (speech, transcripts, chat), as /openapi.json says. Keys, origins and limits stand
  under `serve:` and `session:` of the graph file. Anything but a loopback address needs
  `serve.api-keys`, or `serve.allow-anonymous: true`.
    omni-flow run graphs/voice-assistant.yaml
    omni-flow run graphs/voice-assistant.yaml --listen 127.0.0.1:9000 --tls-self-signed

How a session of a file runs:
  A recording (any rate and channel count) is fed into the graph's audio `session.in` at its own
  pace, as a microphone would, in chunks of 20 ms; then the input ends and what is under way comes
  out. Text goes to the text `session.in`; one for signals stays silent. Audio of `session.out`
  goes to --output while it is made; text and events are printed as they arrive. A graph without
  client ends that has one `file.in` or `file.out` takes --input and --output as their path.
  Ctrl-C ends the input and lets the answer come out (at most 10 s); a second one stops at once.

The tables at the end:
  answer  from the end of the speech (or the arrival of the text) to its first chunk; its length;
          underruns: gaps of more than 100 ms that a listener hears, and the longest.
  node    busy: time it computed; steps: how often it ran; longest: its longest single step.
  edge    chunks that passed; most held: the most that its queue ever held (chunks, bytes, time),
          `of` its limit; blocked: how long its sender waited for room; dropped: chunks that died,
          `stale` by a fence, `by policy` of the edge, `unread` since nobody read any more.
  The node behind an edge that is full, or blocked for long, is the slow one.

More examples:
  omni-flow run graphs/voice-assistant.yaml -i q.flac -o a.ogg --set nodes.llm.max-tokens=32
  omni-flow run graphs/speak.yaml --input letter.txt --output letter.wav
  echo 'Hello there.' | omni-flow run graphs/speak.yaml --input - --output hello.wav
  omni-flow run graphs/transcribe.yaml --input talk.mp3 --no-pace --json";

#[derive(Args, Debug, Clone)]
#[command(after_long_help = RUN_HELP)]
pub struct RunArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// What the graph hears or reads: an audio file, a text file, or `-` for standard input; `NODE=FILE` if the graph
    /// has several inputs
    #[arg(short, long = "input", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub inputs: Vec<String>,
    /// Text for the graph's text input
    #[arg(short, long, value_name = "TEXT")]
    pub text: Option<String>,
    /// Where its audio goes: `.wav`, or `.ogg`, `.opus` or `.oga` for Ogg Opus; `NODE=FILE` if the graph has several
    /// outputs
    #[arg(short, long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub outputs: Vec<String>,
    /// Serve it at this address; 127.0.0.1:8080 if neither this nor `serve.listen` is given. Port 0 takes any
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["inputs", "outputs", "text", "no_pace"])]
    pub listen: Option<String>,
    /// Certificate chain for TLS, a PEM file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, a PEM file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// TLS with a certificate made now, for development; its fingerprint is printed
    #[arg(long, conflicts_with = "tls_cert")]
    pub tls_self_signed: bool,
    /// Fetch nothing: use the models in the cache, or say what is missing and how to get it
    #[arg(long)]
    pub offline: bool,
    /// Seed of everything random, from 0 to 18446744073709551615; the same seed and input give the same answer
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// Compute threads, 1 to 1024; the machine's physical cores if not given
    #[arg(long, value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    pub threads: Option<u16>,
    /// Feed the recording as fast as the graph takes it, and not at its own pace
    #[arg(long)]
    pub no_pace: bool,
    /// Print events as JSON, one per line, and a last line that sums up
    #[arg(long)]
    pub json: bool,
}

/// A seed; the error says what one is.
fn seed(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| {
        let why = match word.trim_start_matches(['-', '+']) {
            digits if digits.is_empty() || digits.contains(|c: char| !c.is_ascii_digit()) => "it is no whole number",
            _ if word.starts_with('-') => "it is negative",
            _ => "it is too large",
        };
        format!(
            "{why}\n\n  tip: a seed is a whole number from 0 to {}, for instance `--seed 1`; leave it out for 0",
            u64::MAX
        )
    })
}

/// A number of threads.
fn threads(word: &str) -> Result<u16, String> {
    word.parse().ok().filter(|n| (1..=1024).contains(n)).ok_or_else(|| {
        "it is not within 1 to 1024\n\n  tip: leave `--threads` out to use each physical core once".to_owned()
    })
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  omni-flow check graphs/voice-assistant.yaml
  omni-flow check my.yaml --set nodes.asr.model=whisper-base --explain nodes.asr.model
  omni-flow check --codes

All findings are printed at once, each with its place, its code and a hint. Exit code 0: the graph can run; 2: it cannot.")]
pub struct CheckArgs {
    /// The graph file
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "codes")]
    pub graph: Option<PathBuf>,
    /// Sets one value of the graph: `nodes.llm.max-tokens=32`. May be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Merges JSON of the shape of a graph file into the graph
    #[arg(long = "override", value_name = "JSON")]
    pub overrides: Vec<String>,
    /// Print a value and which layer set it: `session.max-sessions`
    #[arg(long, value_name = "KEY")]
    pub explain: Option<String>,
    /// Also require that models which could be fetched are in the cache already
    #[arg(long)]
    pub offline: bool,
    /// List all codes of findings with what they mean
    #[arg(long)]
    pub codes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    /// A Mermaid flow chart, as Markdown pages show it
    Mermaid,
    /// A picture
    Svg,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  omni-flow draw graphs/voice-assistant.yaml
  omni-flow draw graphs/voice-assistant.yaml -o assistant.svg")]
pub struct DrawArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Form of the drawing; by the ending of --output if not given, else a Mermaid chart
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// File to write; standard output if not given
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct NodesArgs {
    /// A node type, `speech.turn`
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ModelsArgs {
    #[command(subcommand)]
    pub action: ModelsAction,
}

#[derive(Subcommand, Debug)]
pub enum ModelsAction {
    /// List the models of the catalogue and which of them are in the cache
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch models into the cache: names of the catalogue, `hub:ORG/REPO@REVISION/FILE` or addresses
    Pull {
        /// The models
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// A folder, or an address that ends before `/FILE`, to take the files from
        #[arg(long, value_name = "FOLDER|URL")]
        from: Option<String>,
        /// Use nothing but the cache and --from
        #[arg(long)]
        offline: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Read the files of models and compare their checksums; all cached models if none is named
    Verify {
        /// The models
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete models from the cache
    Rm {
        /// The models
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
    #[test]
    fn no_line_of_the_long_help_is_broken() {
        assert!(RUN_HELP.lines().all(|l| l.chars().count() <= 98), "{RUN_HELP}");
    }
    #[test]
    fn numbers_out_of_range_get_a_tip() {
        let run = |words: &[&str]| Cli::try_parse_from(["omni-flow", "run", "g.yaml"].iter().chain(words));
        for (word, why) in
            [("-1", "negative"), ("18446744073709551616", "too large"), ("1.5", "no whole"), ("-x", "no whole")]
        {
            for words in [vec!["--seed", word], vec![&*format!("--seed={word}")]] {
                let e = run(&words).unwrap_err();
                let text = e.to_string();
                assert_eq!(e.exit_code(), 2);
                for part in [word, "--seed", why, "tip: a seed is a whole number from 0 to 18446744073709551615"] {
                    assert!(text.contains(part), "{part} in {text}");
                }
            }
        }
        for word in ["0", "-1", "1025", "many"] {
            let text = run(&["--threads", word]).unwrap_err().to_string();
            assert!(text.contains("--threads") && text.contains("1 to 1024"), "{text}");
        }
        let Command::Run(args) = run(&["--seed", "18446744073709551615", "--threads", "1024"]).unwrap().command else {
            panic!()
        };
        assert_eq!((args.seed, args.threads), (u64::MAX, Some(1024)));
    }
    #[test]
    fn a_typo_in_a_command_is_answered_with_the_nearest() {
        let e = Cli::try_parse_from(["omni-flow", "chekc", "x.yaml"]).unwrap_err();
        assert_eq!(e.exit_code(), 2);
        assert!(e.to_string().contains("check"), "{e}");
    }
}
