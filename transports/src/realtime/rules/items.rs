//! The conversation: its items in order, and what of them the model may see (Realtime protocol, items and history).
//!
//! Ids are the client's or made by the caller; the item of an answer is `item_` and the response's id. What the model
//! sees is made from the same items that a client may retrieve: what was not heard is in neither. Calls and their outputs
//! are kept by call id and never undone by an interruption. The conversation is bounded: when an item would exceed the
//! bound the oldest ones leave, but for an answer that is running.

use super::{
    answer::{Answer, Outcome},
    ledger::Ack,
};
use crate::realtime::wire::server::item::Role;

/// Bounds of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Items.
    pub items: usize,
    /// Bytes of all texts and images.
    pub bytes: usize,
}

impl Default for Limits {
    /// 4096 items and 32 MiB.
    fn default() -> Self {
        Self { items: 4096, bytes: 32 << 20 }
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// Speech, by its transcript if there is one. Samples are not kept.
    Audio(Option<String>),
    /// An image as a data URL.
    Image(String),
}

/// What an item is.
#[derive(Debug, Clone)]
pub enum Body {
    /// A message as given.
    Message {
        /// Who speaks.
        role: Role,
        /// What is said.
        parts: Vec<Part>,
    },
    /// An answer of this session.
    Answer(Box<Answer>),
    /// A call of a function.
    Call {
        /// Names the call; unique.
        call_id: String,
        /// The function.
        name: String,
        /// JSON text.
        arguments: String,
        /// Whether its one output has been given.
        answered: bool,
    },
    /// The output of a call.
    Output {
        /// The call.
        call_id: String,
        /// What it gave.
        output: String,
    },
}

/// An item of the conversation.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// What it is.
    pub body: Body,
}

impl Item {
    /// The item of an answer, under the id that follows from its response.
    pub fn answer(answer: Answer) -> Self {
        Self { id: answer_id(answer.response()), body: Body::Answer(Box::new(answer)) }
    }

    fn bytes(&self) -> usize {
        let body = match &self.body {
            Body::Message { parts, .. } => parts.iter().map(part_bytes).sum(),
            Body::Answer(answer) => answer.text().len(),
            Body::Call { call_id, name, arguments, .. } => call_id.len() + name.len() + arguments.len(),
            Body::Output { call_id, output } => call_id.len() + output.len(),
        };
        self.id.len() + body
    }

    fn is_running(&self) -> bool {
        matches!(&self.body, Body::Answer(a) if a.outcome() == Outcome::Running)
    }
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text(text) | Part::Image(text) => text.len(),
        Part::Audio(transcript) => transcript.as_ref().map_or(0, String::len),
    }
}

/// The item id of a response's answer.
pub fn answer_id(response: &str) -> String {
    format!("item_{response}")
}

/// Where an item goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// Behind all others.
    End,
    /// In front of all others.
    First,
    /// Behind this one.
    After(&'a str),
}

/// Why an item is refused; the conversation is as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// `item_create_duplicate_item_id`
    #[error("an item with the id `{0}` exists already; leave the id out or choose another")]
    Duplicate(String),
    /// `item_not_found`
    #[error("there is no item `{0}` in this conversation")]
    NotFound(String),
    /// The call was announced before.
    #[error("the call `{0}` exists already")]
    DuplicateCall(String),
    /// `invalid_function_call_output`, `item.call_id`
    #[error("there is no call `{0}` in this conversation")]
    UnknownCall(String),
    /// `invalid_function_call_output`, `item.call_id`
    #[error("the call `{0}` has its output already")]
    AnsweredCall(String),
    /// The item alone is larger than a conversation may be.
    #[error("an item of {bytes} bytes is larger than a whole conversation may be ({limit})")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The most that all items may have.
        limit: usize,
    },
}

/// Why an acknowledgement or a cut is refused; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaybackError {
    /// `playback_item_mismatch`
    #[error("the item of response `{response}` is `item_{response}`, not `{item}`")]
    Mismatch {
        /// The item given.
        item: String,
        /// The response given.
        response: String,
    },
    /// `playback_item_not_found`, or `item_not_found` for a cut
    #[error("there is no answer {0} in this conversation")]
    NotFound(String),
    /// `playback_ack_too_late`
    #[error("a later user input was committed; what was heard of `{0}` is settled")]
    TooLate(String),
    /// `bad_event`: not an answer, no audio part of that index, or a negative time.
    #[error("{0}")]
    BadCut(&'static str),
}

/// What the model sees of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<'a> {
    /// A message as given.
    Message {
        /// Who speaks.
        role: Role,
        /// What is said.
        parts: &'a [Part],
    },
    /// An answer, as far as it was heard.
    Answer(&'a str),
    /// A call with its one output.
    Call {
        /// Names the call.
        call_id: &'a str,
        /// The function.
        name: &'a str,
        /// JSON text.
        arguments: &'a str,
        /// What it gave; `None` stands for a call whose output has not come (a placeholder says that it was cancelled).
        output: Option<&'a str>,
    },
}

/// What an insertion did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inserted {
    /// The item in front of the new one.
    pub previous: Option<String>,
    /// How many of the oldest items left for it.
    pub evicted: usize,
}

/// The items of one session.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    limits: Limits,
    items: Vec<Item>,
}

impl Conversation {
    /// An empty one.
    pub fn new(limits: Limits) -> Self {
        Self { limits, items: Vec::new() }
    }

    /// All items, in order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// An item by its id.
    pub fn get(&self, id: &str) -> Option<&Item> {
        self.position(id).map(|at| &self.items[at])
    }

    /// The id of the item in front of another.
    pub fn previous(&self, id: &str) -> Option<&str> {
        let at = self.position(id)?.checked_sub(1)?;
        Some(&self.items[at].id)
    }

    /// The answer of a response.
    pub fn answer(&self, response: &str) -> Option<&Answer> {
        match &self.get(&answer_id(response))?.body {
            Body::Answer(answer) => Some(answer),
            _ => None,
        }
    }

    /// The answer of a response.
    pub fn answer_mut(&mut self, response: &str) -> Option<&mut Answer> {
        let at = self.position(&answer_id(response))?;
        match &mut self.items[at].body {
            Body::Answer(answer) => Some(answer),
            _ => None,
        }
    }

    /// Adds an item.
    ///
    /// # Errors
    /// [`ItemError`]: the id exists, the place does not, a call is announced twice, an output has no call or is its
    /// second, or the item is too large.
    pub fn insert(&mut self, item: Item, place: Place<'_>) -> Result<Inserted, ItemError> {
        if self.position(&item.id).is_some() {
            return Err(ItemError::Duplicate(item.id));
        }
        let bytes = item.bytes();
        if bytes > self.limits.bytes {
            return Err(ItemError::TooLarge { bytes, limit: self.limits.bytes });
        }
        let at = match place {
            Place::End => self.items.len(),
            Place::First => 0,
            Place::After(id) => 1 + self.position(id).ok_or_else(|| ItemError::NotFound(id.to_owned()))?,
        };
        match &item.body {
            Body::Call { call_id, .. } if self.call(call_id).is_some() => {
                return Err(ItemError::DuplicateCall(call_id.clone()));
            }
            Body::Output { call_id, .. } => match self.call(call_id) {
                None => return Err(ItemError::UnknownCall(call_id.clone())),
                Some(answered) if *answered => return Err(ItemError::AnsweredCall(call_id.clone())),
                Some(answered) => *answered = true,
            },
            _ => {}
        }
        let previous = at.checked_sub(1).map(|p| self.items[p].id.clone());
        let id = item.id.clone();
        self.items.insert(at, item);
        Ok(Inserted { previous, evicted: self.evict(&id) })
    }

    /// What was said in a message of the user: the transcript of its first part that is speech.
    pub fn transcribe(&mut self, id: &str, text: &str) {
        let Some(at) = self.position(id) else { return };
        if let Body::Message { parts, .. } = &mut self.items[at].body
            && let Some(Part::Audio(transcript)) = parts.iter_mut().find(|p| matches!(p, Part::Audio(_)))
        {
            *transcript = Some(text.to_owned());
        }
    }

    /// Takes an item out.
    ///
    /// # Errors
    /// [`ItemError::NotFound`]
    pub fn delete(&mut self, id: &str) -> Result<Item, ItemError> {
        let at = self.position(id).ok_or_else(|| ItemError::NotFound(id.to_owned()))?;
        Ok(self.items.remove(at))
    }

    /// A later user input is committed: of every answer that has ended, what counts now counts for ever. A turn that was
    /// put off until an answer ends is committed in this sense when it runs.
    pub fn freeze(&mut self) {
        for item in &mut self.items {
            if let Body::Answer(answer) = &mut item.body
                && answer.outcome() != Outcome::Running
            {
                answer.freeze();
            }
        }
    }

    /// The answer that an acknowledgement is about: that of the response, else of the item, else the one answer that is
    /// not settled yet, else the active one.
    ///
    /// # Errors
    /// [`PlaybackError`]
    pub fn playing(
        &mut self,
        response: Option<&str>,
        item: Option<&str>,
        active: Option<&str>,
    ) -> Result<&mut Answer, PlaybackError> {
        let found = match (response, item) {
            (Some(response), Some(item)) if item != answer_id(response) => {
                return Err(PlaybackError::Mismatch { item: item.to_owned(), response: response.to_owned() });
            }
            (Some(response), _) => response.to_owned(),
            (None, Some(item)) => match item.strip_prefix("item_") {
                Some(response) => response.to_owned(),
                None => return Err(PlaybackError::NotFound(format!("`{item}`"))),
            },
            (None, None) => match self.one_unsettled().or(active) {
                Some(response) => response.to_owned(),
                None => return Err(PlaybackError::NotFound("that plays".to_owned())),
            },
        };
        match self.answer_mut(&found) {
            None => Err(PlaybackError::NotFound(format!("of response `{found}`"))),
            Some(answer) if answer.is_frozen() => Err(PlaybackError::TooLate(found)),
            Some(answer) => Ok(answer),
        }
    }

    /// Cuts an answer for good (`conversation.item.truncate`). A time beyond its end is its end and cuts nothing: clients
    /// have clocks of their own. Gives the time at which it was cut, in ms.
    ///
    /// # Errors
    /// [`PlaybackError`]
    pub fn truncate(&mut self, item: &str, content_index: i64, audio_end_ms: i64) -> Result<u64, PlaybackError> {
        let at = self.position(item).ok_or_else(|| PlaybackError::NotFound(format!("`{item}`")))?;
        let Body::Answer(answer) = &mut self.items[at].body else {
            return Err(PlaybackError::BadCut("only answers of the assistant can be cut"));
        };
        if content_index != 0 || !answer.is_spoken() {
            return Err(PlaybackError::BadCut("the answer has no audio part of that index; its audio is part 0"));
        }
        let end = u64::try_from(audio_end_ms).map_err(|_| PlaybackError::BadCut("`audio_end_ms` is negative"))?;
        let total = answer.ledger().total_ms();
        let ms = end.min(total);
        if answer.ack(Ack { played_ms: ms, committed_ms: ms, truncate: end <= total }) {
            Ok(ms)
        } else {
            Err(PlaybackError::TooLate(item.to_owned()))
        }
    }

    /// What the model may see, in order. Answers that run, failed or were not heard are not in it; a call stands with its
    /// one output, wherever that was given.
    pub fn history(&self) -> impl Iterator<Item = Seen<'_>> {
        self.items.iter().filter_map(|item| match &item.body {
            Body::Message { role, parts } => Some(Seen::Message { role: *role, parts }),
            Body::Answer(answer) => {
                let heard = answer.heard();
                (answer.outcome() != Outcome::Running && !heard.trim().is_empty()).then_some(Seen::Answer(heard))
            }
            Body::Call { call_id, name, arguments, .. } => {
                Some(Seen::Call { call_id, name, arguments, output: self.output(call_id) })
            }
            Body::Output { .. } => None,
        })
    }

    fn position(&self, id: &str) -> Option<usize> {
        // The newest are asked for most.
        self.items.iter().rposition(|item| item.id == id)
    }

    /// Whether a call has its output.
    fn call(&mut self, id: &str) -> Option<&mut bool> {
        self.items.iter_mut().find_map(|item| match &mut item.body {
            Body::Call { call_id, answered, .. } if call_id == id => Some(answered),
            _ => None,
        })
    }

    fn output(&self, id: &str) -> Option<&str> {
        self.items.iter().find_map(|item| match &item.body {
            Body::Output { call_id, output } if call_id == id => Some(output.as_str()),
            _ => None,
        })
    }

    fn one_unsettled(&self) -> Option<&str> {
        let mut all = self.items.iter().filter_map(|item| match &item.body {
            Body::Answer(a) if !a.is_frozen() && a.is_spoken() && a.outcome() != Outcome::Failed => {
                (!a.ledger().is_settled()).then_some(a.response())
            }
            _ => None,
        });
        all.next().filter(|_| all.next().is_none())
    }

    /// Lets the oldest items go until the bounds hold, but for `new` and for answers that run.
    fn evict(&mut self, new: &str) -> usize {
        let mut bytes: usize = self.items.iter().map(Item::bytes).sum();
        let mut count = self.items.len();
        let (items, limits) = (&mut self.items, self.limits);
        let before = count;
        items.retain(|item| {
            let over = count > limits.items || bytes > limits.bytes;
            if !over || item.id == new || item.is_running() {
                return true;
            }
            count -= 1;
            bytes -= item.bytes();
            false
        });
        before - count
    }
}

#[cfg(test)]
mod tests;
