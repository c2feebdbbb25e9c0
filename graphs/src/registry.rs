//! The node types of this program.

use omni_flow::{RegisterError, Registry};
use omni_flow_nodes::{models, speech};

/// All node types of the library.
pub fn registry() -> Result<Registry, RegisterError> {
    let mut r = Registry::base();
    r.add::<models::ModelChat>()?;
    r.add::<models::ModelCode2wav>()?;
    r.add::<models::ModelTalker>()?;
    r.add::<models::ModelWhisper>()?;
    r.add::<speech::SpeechConfirm>()?;
    r.add::<speech::SpeechGuess>()?;
    r.add::<speech::SpeechPlayout>()?;
    r.add::<speech::SpeechTurn>()?;
    r.add::<speech::SpeechVad>()?;
    Ok(r)
}
