//! All node types of this crate, by name.

use omni_flow::{RegisterError, Registry};

/// The client's ends of a graph and every node type of this crate.
///
/// # Errors
/// [`RegisterError`] if two types contradict each other: a mistake of this crate, which a test finds.
pub fn registry() -> Result<Registry, RegisterError> {
    let mut r = Registry::base();
    add(&mut r)?;
    Ok(r)
}

/// Adds every node type of this crate to a registry that has types of its own.
///
/// # Errors
/// [`RegisterError::Twice`] if a name is taken already.
pub fn add(r: &mut Registry) -> Result<(), RegisterError> {
    // Audio.
    r.add::<crate::audio::tone::Tone>()?
        .add::<crate::audio::resample::Resample>()?
        .add::<crate::audio::gain::Gain>()?
        .add::<crate::audio::mix::Mix>()?
        .add::<crate::audio::frame::Frames>()?
        .add::<crate::audio::opus_encode::OpusEncode>()?
        .add::<crate::audio::opus_decode::OpusDecode>()?;
    // Text.
    r.add::<crate::text::node::SentencesNode>()?;
    // Utilities.
    r.add::<crate::chunking::node::Chunk>()?
        .add::<crate::util::tee::Tee>()?
        .add::<crate::util::gate::Gate>()?
        .add::<crate::util::delay::Delay>()?
        .add::<crate::util::tap::Tap>()?;
    // Partners for tests of servers and clients.
    r.add::<crate::scripted::ScriptedDuplex>()?;
    // Files and recordings.
    r.add::<crate::files::input::FileIn>()?.add::<crate::files::output::FileOut>()?;
    r.add::<crate::util::record::RecordNode>()?.add::<crate::util::replay::Replay>()?;
    // Speech and models.
    r.add::<crate::speech::SpeechTurn>()?
        .add::<crate::speech::SpeechGuess>()?
        .add::<crate::speech::SpeechAlign>()?
        .add::<crate::speech::SpeechConfirm>()?
        .add::<crate::speech::SpeechPlayout>()?;
    #[cfg(feature = "silero")]
    r.add::<crate::speech::SpeechVad>()?;
    #[cfg(feature = "whisper")]
    r.add::<crate::models::ModelWhisper>()?;
    #[cfg(feature = "chat")]
    r.add::<crate::models::ModelChat>()?.add::<crate::models::ChatTurns>()?;
    #[cfg(feature = "piper")]
    r.add::<crate::models::ModelTalker>()?.add::<crate::models::ModelCode2wav>()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_registers_and_says_what_it_is() {
        let r = registry().unwrap_or_else(|e| panic!("{e}"));
        for (name, schema) in r.iter() {
            assert!(!schema.about.is_empty() && !schema.example.is_empty(), "{name}");
            assert!(schema.options.iter().all(|o| !o.about.is_empty()), "{name}");
        }
    }
}
