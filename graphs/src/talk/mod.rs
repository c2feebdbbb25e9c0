//! `omni-flow talk`: a conversation with a Realtime server in a terminal, spoken or written.

mod args;
mod device;
mod feed;
mod screen;
mod speaker;
mod turns;

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use omni_flow::{Clock, Kind, Mono, Pcm};
use omni_flow_transports::client::{
    AudioFormat, Client, ClientError, Command, Event, Options, ResponseConfig, Secret, SessionConfig, Trust,
    TurnDetection,
};
use tokio::task::JoinSet;

pub use args::TalkArgs;
use device::{Device, RATE};
use feed::{Mouth, Voice};
use screen::Screen;
use speaker::Speaker;
use turns::{Shown, Turns};

use crate::failure::Failure;
use crate::run::ends::writable;
use crate::run::sink::{Sink, Target};
use crate::run::stop::Stop;

/// Quiet after the end of a recording, with nothing under way, that ends the conversation.
const QUIET: Duration = Duration::from_secs(2);
/// The longest that an answer is waited for.
const ANSWER: Duration = Duration::from_secs(60);
/// Where a key may stand.
const KEYS: [&str; 2] = ["OMNI_FLOW_API_KEY", "OPENAI_API_KEY"];
/// Names our questions, so that a refusal is told apart.
const ASKS: &str = "talk_ask";

/// Talks to the server that the arguments name.
pub fn run(args: &TalkArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let done = runtime.block_on(async { talk(&args.url, args, &Stop::listen()).await });
    // A recording that is read from a pipe must not hold the program.
    runtime.shutdown_background();
    done
}

/// Talks to the server at `url` until the conversation is over or `stop` asks for its end. What `args` say of the address
/// does not matter.
///
/// # Errors
/// [`Failure::Usage`]: files, devices or options cannot be used; [`Failure::Run`]: there was no connection or no answer;
/// [`Failure::Interrupted`].
///
/// # Cancel safety
/// Dropped, the conversation ends; what was written is kept.
pub async fn talk(url: &str, args: &TalkArgs, stop: &Stop) -> Result<(), Failure> {
    let options = options(args)?;
    // What can be wrong here is said before anybody is called.
    let spoken = args.wav.is_none() && args.texts.is_empty();
    let voice = match &args.wav {
        Some(path) => Some(Voice::recording(path)?),
        None if spoken || args.mic_command.is_some() => {
            Some(Voice::Microphone(Device::microphone(args.mic_command.as_deref())?))
        }
        None => None,
    };
    let speaker = match spoken || args.speaker_command.is_some() {
        true => Device::speaker(args.speaker_command.as_deref()),
        false => None,
    };
    if spoken && speaker.is_none() {
        eprintln!("{}", Device::no_speaker());
    }
    let sink = match &args.output {
        Some(path) => {
            writable(path)?;
            Some(Target::open(path)?.begin(&Kind::mono(RATE))?)
        }
        None => None,
    };
    let connect = Client::connect(url, options);
    let client = tokio::select! {
        biased;
        () = stop.asked(1) => return Err(Failure::Interrupted),
        client = connect => client.map_err(failed)?,
    };
    if !args.json {
        eprintln!("connected; Ctrl-C ends the conversation");
    }
    let clock = Clock::tokio();
    let mut talk = Talk {
        mouth: Mouth::new(client.commands(), clock.clone()),
        client,
        clock,
        screen: Screen::new(args.json, 2 * RATE as usize),
        turns: Turns::default(),
        texts: args.texts.iter().cloned().collect(),
        voice,
        voices: JoinSet::new(),
        speaker: speaker.map(Speaker::new),
        sink,
        most: args.turns,
        quiet: None,
    };
    let ended = talk.converse(stop).await;
    talk.end(ended, stop).await
}

fn failed(e: ClientError) -> Failure {
    match e {
        ClientError::Options(message) => Failure::usage(message, "`omni-flow talk --help` has examples"),
        ClientError::Refused { status: 401, message } => Failure::usage(
            format!("the server wants a key: {message}"),
            format!("put it into {} or into a file for --key-file", KEYS[0]),
        ),
        e => Failure::Run(e.into()),
    }
}

fn options(args: &TalkArgs) -> Result<Options, Failure> {
    let read = |path: &std::path::Path| {
        std::fs::read(path)
            .map_err(|e| Failure::usage(format!("`{}` cannot be read: {e}", path.display()), "give another file"))
    };
    let key = match &args.key_file {
        Some(path) => Some(String::from_utf8_lossy(&read(path)?).trim().to_owned()),
        None => KEYS.iter().find_map(|name| std::env::var(name).ok()),
    };
    let key = key.filter(|k| !k.is_empty()).map(Secret::new);
    let trust = match (&args.fingerprint, &args.certificate) {
        (Some(print), _) => Trust::fingerprint(print).map_err(failed)?,
        (None, Some(path)) => Trust::pem(&read(path)?).map_err(failed)?,
        (None, None) => Trust::Roots,
    };
    // Every server takes and gives this.
    let format = AudioFormat::Pcm16(RATE);
    let mut session = SessionConfig::new().input(format).output(format);
    if args.manual {
        session = session.turns(TurnDetection::Manual);
    }
    if let Some(text) = &args.instructions {
        session = session.instructions(text);
    }
    if let Some(voice) = &args.voice {
        session = session.voice(voice);
    }
    Ok(Options { model: args.model.clone(), key, trust, session: Some(session), ..Options::default() })
}

/// A conversation.
struct Talk {
    client: Client,
    clock: Clock,
    mouth: Mouth,
    screen: Screen,
    turns: Turns,
    texts: VecDeque<String>,
    voice: Option<Voice>,
    voices: JoinSet<anyhow::Result<()>>,
    speaker: Option<Speaker>,
    sink: Option<Sink>,
    most: Option<u32>,
    /// All has been said; nothing has been under way since then.
    quiet: Option<Mono>,
}

impl Talk {
    /// True if the server finds the ends of turns by itself.
    fn detects(&self) -> bool {
        let session = self.client.session();
        !session["audio"]["input"]["turn_detection"].is_null() || !session["turn_detection"].is_null()
    }
    /// Asks for an answer to what was said up to `end`.
    async fn ask(&mut self, end: Mono) -> Result<(), Failure> {
        self.client.send(Command::respond(ResponseConfig::new()).id(ASKS)).await.map_err(failed)?;
        self.turns.asked(end);
        Ok(())
    }
    /// Says the next thing, if nothing is under way. False: there is nothing more to say or to wait for.
    async fn go_on(&mut self) -> Result<bool, Failure> {
        if self.most.is_some_and(|most| self.turns.answers() >= most) {
            return Ok(false);
        }
        if !self.turns.quiet() {
            self.quiet = None;
            return Ok(true);
        }
        if let Some(text) = self.texts.pop_front() {
            self.client.send(Command::user_text(&text).id(ASKS)).await.map_err(failed)?;
            self.screen.show(&Shown::Heard { text, after: None });
            let now = self.clock.now();
            self.ask(now).await?;
        } else if let Some(voice) = self.voice.take() {
            if matches!(voice, Voice::Microphone(_)) && !self.detects() {
                let message = "this server does not find the ends of turns, which a microphone needs";
                return Err(Failure::usage(message, "speak a recording with --wav FILE, or write with --text"));
            }
            self.voices.spawn(self.mouth.clone().speak(voice));
        } else if self.voices.is_empty() {
            return Ok(false);
        }
        Ok(true)
    }
    /// A recording has been spoken.
    async fn spoke(&mut self) -> Result<(), Failure> {
        if self.detects() {
            self.voices.spawn(self.mouth.clone().listen());
            self.quiet = Some(self.clock.now());
            return Ok(());
        }
        self.client.send(Command::commit().id(ASKS)).await.map_err(failed)?;
        let now = self.clock.now();
        let end = self.mouth.spoken(now).unwrap_or(now);
        self.ask(end).await
    }
    /// Until all is said and answered.
    async fn converse(&mut self, stop: &Stop) -> Result<(), Failure> {
        let mut events = self.client.events();
        let mut said = false;
        while self.go_on().await? {
            let now = self.clock.now();
            if said && self.turns.quiet() {
                self.quiet.get_or_insert(now);
            }
            let alarm = match (self.quiet, self.turns.awaits()) {
                (Some(quiet), _) => Some(quiet.plus(QUIET)),
                (None, Some(asked)) => Some(asked.plus(ANSWER)),
                (None, None) => None,
            };
            let clock = self.clock.clone();
            tokio::select! {
                biased;
                () = stop.asked(1) => return Err(Failure::Interrupted),
                event = events.next() => match event {
                    Some(event) => self.event(event).await?,
                    None => {
                        let end = self.client.closed().await;
                        return Err(end.map_or_else(failed, |c| Failure::Run(anyhow!("the session ended: {}", c.reason))));
                    }
                },
                Some(done) = self.voices.join_next() => {
                    done.context("the microphone's task failed")??;
                    said = true;
                    self.spoke().await?;
                }
                () = clock.sleep_until(alarm.unwrap_or_default()), if alarm.is_some() => {
                    if self.quiet.is_some() {
                        return Ok(());
                    }
                    return Err(Failure::Run(anyhow!("no answer began within {} s", ANSWER.as_secs())));
                }
            }
        }
        Ok(())
    }
    async fn event(&mut self, event: Event) -> Result<(), Failure> {
        if let Event::Error { error } = &event
            && error.event_id.as_deref() == Some(ASKS)
        {
            return Err(Failure::Run(ClientError::Server(error.clone()).into()));
        }
        let now = self.clock.now();
        let mouth = self.mouth.clone();
        let Some(shown) = self.turns.event(event, now, || mouth.spoken(now)) else { return Ok(()) };
        self.screen.show(&shown);
        match shown {
            Shown::Audio(bytes) => {
                if let Some(sink) = &mut self.sink {
                    let samples = bytes.as_chunks::<2>().0.iter().map(|b| f32::from(i16::from_le_bytes(*b)) / 32768.0);
                    sink.write(&Pcm::mono(RATE, samples.collect()))?;
                }
                if let Some(speaker) = self.speaker.take() {
                    if speaker.play(bytes).await {
                        self.speaker = Some(speaker);
                    } else if let Err(e) = speaker.finish().await {
                        eprintln!("note: answers are not played any more: {e:#}");
                    }
                }
            }
            Shown::Interrupted => {
                if let Some(speaker) = &self.speaker {
                    speaker.hush();
                }
            }
            _ => {}
        }
        Ok(())
    }
    /// Closes the session and the files, and says how it was.
    async fn end(self, ended: Result<(), Failure>, stop: &Stop) -> Result<(), Failure> {
        let Self { client, mut screen, turns, mut voices, speaker, sink, .. } = self;
        voices.shutdown().await;
        let session = client.session()["id"].as_str().map(str::to_owned);
        // It ended; how it did is known.
        let closed = client.close();
        tokio::select! {
            _ = closed => {}
            () = stop.asked(2) => {}
        }
        if let Some(speaker) = speaker
            && ended.is_ok()
        {
            tokio::select! {
                () = stop.asked(1) => {}
                played = speaker.finish() => if let Err(e) = played {
                    eprintln!("note: not all was played: {e:#}");
                },
            }
        }
        let written = sink.map_or(Ok(()), Sink::finish);
        screen.sum(turns.answers(), session.as_deref());
        ended?;
        written?;
        match turns.completed() {
            true => Ok(()),
            false => Err(Failure::Run(anyhow!("nothing was answered: no speech was found, or no answer was whole"))),
        }
    }
}
