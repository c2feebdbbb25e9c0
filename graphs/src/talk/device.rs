//! Microphone and speaker: programs that are usually there, so that nothing has to be linked.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use tokio::process::{Child, Command};

use crate::failure::Failure;

/// Samples per second of both.
pub const RATE: u32 = 24_000;

/// A program with its arguments, and the package that has it.
type Tool = (&'static str, &'static [&'static str], &'static str);

const RECORDERS: [Tool; 5] = [
    ("arecord", &["-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", "24000"], "alsa-utils"),
    ("parec", &["--raw", "--format=s16le", "--channels=1", "--rate=24000", "--latency-msec=20"], "pulseaudio-utils"),
    ("pw-record", &["-a", "--format=s16", "--channels=1", "--rate=24000", "-"], "pipewire-bin"),
    ("rec", &["-q", "-t", "raw", "-b", "16", "-e", "signed-integer", "-L", "-c", "1", "-r", "24000", "-"], "sox"),
    (
        "ffmpeg",
        &["-loglevel", "error", "-f", "pulse", "-i", "default", "-f", "s16le", "-ac", "1", "-ar", "24000", "-"],
        "ffmpeg",
    ),
];

const PLAYERS: [Tool; 5] = [
    ("aplay", &["-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", "24000"], "alsa-utils"),
    ("pacat", &["--raw", "--format=s16le", "--channels=1", "--rate=24000", "--latency-msec=50"], "pulseaudio-utils"),
    ("pw-play", &["-a", "--format=s16", "--channels=1", "--rate=24000", "-"], "pipewire-bin"),
    ("play", &["-q", "-t", "raw", "-b", "16", "-e", "signed-integer", "-L", "-c", "1", "-r", "24000", "-"], "sox"),
    ("ffplay", &["-loglevel", "error", "-nodisp", "-autoexit", "-f", "s16le", "-ar", "24000", "-i", "-"], "ffmpeg"),
];

/// A microphone or a speaker, chosen and not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    program: String,
    args: Vec<String>,
}

impl Device {
    /// A microphone: the user's command, or the first program that is there.
    ///
    /// # Errors
    /// [`Failure::Usage`]: none is; what to install.
    pub fn microphone(command: Option<&str>) -> Result<Self, Failure> {
        let found = command.map(shell).or_else(|| first(&RECORDERS, there));
        found.ok_or_else(|| {
            Failure::usage(
                format!("there is no microphone to be had: none of {} is installed", names(&RECORDERS)),
                "install alsa-utils or another of them, give --mic-command, or speak a recording with --wav FILE",
            )
        })
    }
    /// A speaker, if there is one.
    pub fn speaker(command: Option<&str>) -> Option<Self> {
        command.map(shell).or_else(|| first(&PLAYERS, there))
    }
    /// What to say if there is no speaker.
    pub fn no_speaker() -> String {
        format!("note: answers are not played: none of {} is installed (or give --speaker-command)", names(&PLAYERS))
    }
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Ctrl-C is for the conversation; these end with it.
        command.args(&self.args).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        command
    }
    /// Starts to record; audio comes from its standard output.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn record(&self) -> anyhow::Result<Child> {
        let child = self.command().stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        child.with_context(|| format!("cannot start the microphone `{}`", self.program))
    }
    /// Starts to play what is written to its standard input.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn play(&self) -> anyhow::Result<Child> {
        let child = self.command().stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        child.with_context(|| format!("cannot start the speaker `{}`", self.program))
    }
}

fn shell(command: &str) -> Device {
    Device { program: "sh".to_owned(), args: vec!["-c".to_owned(), command.to_owned()] }
}

fn first(tools: &[Tool], there: impl Fn(&str) -> bool) -> Option<Device> {
    let (program, args, _) = tools.iter().find(|(program, _, _)| there(program))?;
    Some(Device { program: (*program).to_owned(), args: args.iter().map(|a| (*a).to_owned()).collect() })
}

fn names(tools: &[Tool]) -> String {
    let all: Vec<String> = tools.iter().map(|(program, _, package)| format!("{program} ({package})")).collect();
    all.join(", ")
}

/// True if a program stands in one of the folders of `PATH`.
fn there(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| runs(&folder.join(program)))
}

fn runs(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    {
        path.is_file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_there_is_taken() {
        let found = first(&RECORDERS, |p| p == "rec" || p == "parec").unwrap();
        assert_eq!(found.program, "parec");
        assert_eq!(first(&PLAYERS, |_| false), None);
        assert!(names(&RECORDERS).starts_with("arecord (alsa-utils), parec"));
    }
    #[test]
    fn a_command_of_ones_own_goes_before() {
        assert_eq!(Device::microphone(Some("cat x")).unwrap().args, ["-c", "cat x"]);
    }
}
