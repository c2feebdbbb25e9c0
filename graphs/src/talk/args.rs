//! What `omni-flow talk` can be told.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const HELP: &str = "\
Examples:
  Talk to a server on this machine, by microphone and headphones:
    omni-flow talk
  Ask it with a recording, and keep the answer:
    omni-flow talk --wav question.wav --output answer.wav
  Write to it:
    omni-flow talk --text \"What is the tallest mountain?\" --text \"And the second?\"
  Talk to another server:
    OPENAI_API_KEY=... omni-flow talk 'wss://api.openai.com/v1/realtime?model=gpt-realtime'

The key comes from --key-file, or from OMNI_FLOW_API_KEY or OPENAI_API_KEY.
Microphone and speaker are programs that are usually there: arecord and aplay (alsa-utils), parec
and pacat (pulseaudio-utils), pw-record and pw-play (pipewire-bin), rec and play (sox), ffmpeg and
ffplay. The first one found is used. Echo is not cancelled: use headphones.
Times are from the end of the speech: heard, its transcript came; first word and first audio, of
the answer.
Ctrl-C ends the conversation; a second one ends it at once.
Exit codes: 0 it was answered, 1 it was not, 2 the command line is wrong, 130 stopped by Ctrl-C.";

/// Whom to talk to, and how.
#[derive(Args, Debug, Clone)]
#[command(after_long_help = HELP)]
pub struct TalkArgs {
    /// Address of a Realtime server
    #[arg(default_value = "ws://127.0.0.1:8080/v1/realtime")]
    pub url: String,
    /// A recording to speak, at its own pace, instead of the microphone; any format that the program reads
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub wav: Option<PathBuf>,
    /// The recording is one turn, whatever pauses it has: the server is not to find turns by itself
    #[arg(long, requires = "wav")]
    pub manual: bool,
    /// Something to write instead of speaking; each is a turn, and they come before the recording
    #[arg(short, long = "text", value_name = "TEXT")]
    pub texts: Vec<String>,
    /// Where the audio of the answers goes: `.wav`, or `.ogg`, `.opus` or `.oga` for Ogg Opus
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Who the model is and how it answers
    #[arg(long, value_name = "TEXT")]
    pub instructions: Option<String>,
    /// The voice
    #[arg(long, value_name = "NAME")]
    pub voice: Option<String>,
    /// The model, if the server has several
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Ends after so many answers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub turns: Option<u32>,
    /// A file that holds the API key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// Trust the server's certificate by its SHA-256, as a server with a certificate of its own prints it
    #[arg(long, value_name = "SHA256")]
    pub fingerprint: Option<String>,
    /// Trust the certificate in this PEM file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "fingerprint")]
    pub certificate: Option<PathBuf>,
    /// A command that writes the microphone's audio to its standard output: PCM, 16 bit, little endian, mono, 24 kHz
    #[arg(long, value_name = "COMMAND")]
    pub mic_command: Option<String>,
    /// A command that plays the same from its standard input
    #[arg(long, value_name = "COMMAND")]
    pub speaker_command: Option<String>,
    /// Print events as JSON, one per line, and a last line that sums up
    #[arg(long)]
    pub json: bool,
}
