//! A whole prompt: all messages of a conversation, the tools, and what is asked of this one answer.
//!
//! Whoever owns the conversation sends one for each answer, as JSON in a signal named [`Prompt::NAME`]. Its fields are
//! those of OpenAI's chat completions; what is left out is as the model's own options say.

use serde::{Deserialize, Serialize};

use super::{
    message::{Message, Role, ToolCall, joined},
    sampling::Sampling,
    tool::{Tool, ToolChoice},
};

/// What a model answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// What was said so far, oldest first.
    #[serde(default)]
    pub messages: Vec<Message>,
    /// What the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether it calls.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// 0 = always the likeliest token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Only the likeliest tokens that make up this probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    /// Longest answer, tokens.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "max_completion_tokens")]
    pub max_tokens: Option<usize>,
    /// Texts that end the answer and are not part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Seed of the draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A prompt that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// The text is not a prompt.
    #[error("the prompt cannot be read: {why}")]
    Unreadable {
        /// What is wrong, and where.
        why: String,
    },
    /// There is nothing to answer.
    #[error("the prompt has no messages")]
    Empty,
    /// A tool cannot be called.
    #[error("tool `{name}`: {why}")]
    Tool {
        /// Its name.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A call is asked for that cannot be.
    #[error("`tool_choice` asks for {what}; add it to `tools`")]
    Choice {
        /// Which.
        what: String,
    },
    /// A number is outside its range.
    #[error("`{field}` is {value}; use {range}")]
    Range {
        /// Which.
        field: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        range: &'static str,
    },
}

impl Prompt {
    /// The name of the signal that a prompt travels as.
    pub const NAME: &'static str = "chat.prompt";

    /// A prompt of messages alone.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Reads and checks the data of a signal.
    ///
    /// # Errors
    /// [`PromptError`].
    pub fn parse(json: &str) -> Result<Self, PromptError> {
        let prompt: Self = serde_json::from_str(json).map_err(|e| PromptError::Unreadable { why: e.to_string() })?;
        prompt.check()?;
        Ok(prompt)
    }

    /// As the data of a signal.
    pub fn to_json(&self) -> String {
        // Nothing in it can fail to be written: keys are text, and a number that JSON lacks becomes `null`.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn check(&self) -> Result<(), PromptError> {
        if self.messages.is_empty() {
            return Err(PromptError::Empty);
        }
        for (i, tool) in self.tools.iter().enumerate() {
            let wrong = |why| Err(PromptError::Tool { name: tool.name.clone(), why });
            if tool.name.trim().is_empty() {
                return wrong("it has no name");
            }
            if self.tools[..i].iter().any(|t| t.name == tool.name) {
                return wrong("it is given twice");
            }
            if !(tool.parameters.is_object() || tool.parameters.is_null()) {
                return wrong("its `parameters` are not a JSON schema");
            }
        }
        match &self.tool_choice {
            ToolChoice::Named(name) if !self.tools.iter().any(|t| t.name == *name) => {
                return Err(PromptError::Choice { what: format!("`{name}`, which is no tool of the prompt") });
            }
            ToolChoice::Required if self.tools.is_empty() => {
                return Err(PromptError::Choice { what: "a call, and there is no tool".to_owned() });
            }
            _ => {}
        }
        let range = |field, value: String, range| Err(PromptError::Range { field, value, range });
        match (self.temperature, self.top_p, self.max_tokens) {
            (Some(t), _, _) if !(0.0..=10.0).contains(&t) => range("temperature", t.to_string(), "0 to 10"),
            (_, Some(p), _) if !(p > 0.0 && p <= 1.0) => range("top_p", p.to_string(), "a number above 0 up to 1"),
            (_, _, Some(0)) => range("max_tokens", "0".to_owned(), "1 or more"),
            _ => Ok(()),
        }
    }

    /// The options of this answer: `own` with what the prompt says.
    pub fn sampling(&self, own: &Sampling) -> Sampling {
        Sampling {
            temperature: self.temperature.unwrap_or(own.temperature),
            top_p: self.top_p.unwrap_or(own.top_p),
            max_tokens: self.max_tokens.unwrap_or(own.max_tokens),
            stop: self.stop.clone().unwrap_or_else(|| own.stop.clone()),
            seed: self.seed.unwrap_or(own.seed),
            ..own.clone()
        }
    }

    /// The messages as the fixed beginning and what was said after it. The beginning is the leading system messages of
    /// the prompt, or `own` (a system text and examples) if it has none. Neighbours are joined ([`joined`]).
    pub fn conversation(&self, own: &[Message]) -> (Vec<Message>, Vec<Message>) {
        let lead = self.messages.iter().take_while(|m| m.role == Role::System).count();
        let (fixed, said) = self.messages.split_at(lead);
        (if lead > 0 { fixed } else { own }.to_vec(), joined(said.to_vec()))
    }

    /// All calls in it.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.messages.iter().flat_map(|m| &m.tool_calls)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> Tool {
        Tool { name: name.into(), description: String::new(), parameters: json!({ "type": "object" }) }
    }

    #[test]
    fn a_prompt_reads_back_as_written() {
        let prompt = Prompt {
            messages: vec![Message::user("Hi"), Message::tool("call_1", "4")],
            tools: vec![tool("dice")],
            tool_choice: ToolChoice::Named("dice".into()),
            temperature: Some(0.5),
            max_tokens: Some(9),
            ..Prompt::default()
        };
        assert_eq!(Prompt::parse(&prompt.to_json()).unwrap(), prompt);
        let short = r#"{"messages":[{"role":"user","content":"Hi"}],"max_completion_tokens":3,"unknown":1}"#;
        assert_eq!(
            Prompt::parse(short).unwrap(),
            Prompt { max_tokens: Some(3), ..Prompt::new(vec![Message::user("Hi")]) }
        );
    }

    #[test]
    fn what_cannot_be_answered_is_told() {
        let say = |more: &str| {
            let json = format!(r#"{{"messages":[{{"role":"user","content":"Hi"}}]{more}}}"#);
            Prompt::parse(&json).unwrap_err()
        };
        assert_eq!(Prompt::parse("{}"), Err(PromptError::Empty));
        assert!(matches!(Prompt::parse("{\"messages\":3}"), Err(PromptError::Unreadable { .. })));
        assert!(matches!(say(r#","tools":[{"name":""}]"#), PromptError::Tool { .. }));
        assert!(matches!(say(r#","tools":[{"name":"a"},{"name":"a"}]"#), PromptError::Tool { .. }));
        assert!(matches!(say(r#","tools":[{"name":"a","parameters":[]}]"#), PromptError::Tool { .. }));
        assert!(matches!(say(r#","tool_choice":"required""#), PromptError::Choice { .. }));
        let named = say(r#","tools":[{"name":"a"}],"tool_choice":{"type":"function","name":"b"}"#);
        assert!(matches!(named, PromptError::Choice { .. }) && named.to_string().contains("`b`"), "{named}");
        for more in [r#","temperature":-1"#, r#","top_p":0"#, r#","max_tokens":0"#] {
            assert!(matches!(say(more), PromptError::Range { .. }), "{more}");
        }
    }

    #[test]
    fn the_own_beginning_gives_way_to_a_system_message() {
        let own = [Message::system("Own."), Message::user("a"), Message::assistant("b")];
        let said = vec![Message::user("Hi"), Message::user("there")];
        assert_eq!(Prompt::new(said.clone()).conversation(&own), (own.to_vec(), vec![Message::user("Hi\nthere")]));
        let led = [vec![Message::system("Theirs.")], said].concat();
        let (fixed, said) = Prompt::new(led).conversation(&own);
        assert_eq!((fixed, said), (vec![Message::system("Theirs.")], vec![Message::user("Hi\nthere")]));
        let late = vec![Message::user("Hi"), Message::system("Whisper.")];
        assert_eq!(Prompt::new(late.clone()).conversation(&own), (own.to_vec(), late));
    }

    #[test]
    fn what_a_prompt_says_goes_before_the_options() {
        let own = Sampling { temperature: 0.7, max_tokens: 40, top_k: 3, ..Sampling::default() };
        let prompt = Prompt { max_tokens: Some(5), stop: Some(vec!["x".into()]), ..Prompt::default() };
        let want = Sampling { max_tokens: 5, stop: vec!["x".into()], ..own.clone() };
        assert_eq!(prompt.sampling(&own), want);
    }
}
