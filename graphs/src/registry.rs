//! The node types of this program.

use omni_flow::{Make, RegisterError, Registry};
use omni_flow_nodes::{models, speech};

/// All node types of the library.
pub fn registry() -> Result<Registry, RegisterError> {
    let mut r = omni_flow_nodes::registry::registry()?;
    add::<models::ModelChat>(&mut r)?;
    add::<models::ModelCode2wav>(&mut r)?;
    add::<models::ModelTalker>(&mut r)?;
    add::<models::ModelWhisper>(&mut r)?;
    add::<speech::SpeechConfirm>(&mut r)?;
    add::<speech::SpeechGuess>(&mut r)?;
    add::<speech::SpeechPlayout>(&mut r)?;
    add::<speech::SpeechTurn>(&mut r)?;
    add::<speech::SpeechVad>(&mut r)?;
    Ok(r)
}

/// Adds a type that the library's own list may have already.
fn add<M: Make>(r: &mut Registry) -> Result<(), RegisterError> {
    if r.get(M::NAME).is_none() {
        r.add::<M>()?;
    }
    Ok(())
}
