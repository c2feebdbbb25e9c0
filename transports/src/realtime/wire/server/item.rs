//! Items of a conversation as the server shows them.

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// Whoever set the conversation up.
    System,
}

impl Role {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        }
    }
}

/// How far an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemStatus {
    /// Being made.
    InProgress,
    /// Whole.
    Completed,
    /// Cut short.
    Incomplete,
}

impl ItemStatus {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ItemStatus::InProgress => "in_progress",
            ItemStatus::Completed => "completed",
            ItemStatus::Incomplete => "incomplete",
        }
    }
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text of the user.
    InputText(String),
    /// Speech of the user. Its audio is never sent back.
    InputAudio {
        /// What was said, once it is known.
        transcript: Option<String>,
    },
    /// A picture of the user. Left out where it would make the frame too large.
    InputImage {
        /// Its data URL.
        image_url: Option<String>,
    },
    /// Text of the model.
    OutputText(String),
    /// Speech of the model.
    OutputAudio {
        /// What is said.
        transcript: String,
        /// Its length in ms, once it is known.
        audio_duration_ms: Option<u64>,
    },
}

/// What an item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A message.
    Message {
        /// Who says it.
        role: Role,
        /// Its parts, possibly none.
        content: Vec<Content>,
    },
    /// A call of a function.
    FunctionCall {
        /// The call's id.
        call_id: String,
        /// The function.
        name: String,
        /// Its arguments, JSON text.
        arguments: String,
    },
    /// The result of a call.
    FunctionCallOutput {
        /// The call it answers.
        call_id: String,
        /// The result as text.
        output: String,
    },
}

/// One item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// What it is.
    pub kind: ItemKind,
}

impl Item {
    /// A message.
    pub fn message(id: impl Into<String>, role: Role, status: ItemStatus, content: Vec<Content>) -> Self {
        Self { id: id.into(), status, kind: ItemKind::Message { role, content } }
    }
}
