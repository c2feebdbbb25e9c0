//! Messages to one prompt, by the template of the file or a built-in one.
//!
//! A template in the file (`tokenizer.chat_template`, Jinja as Python's chat templates use it) is run with a bounded
//! amount of work and never reaches files. Built-in templates serve files without one and callers who ask for them.

use minijinja::{Environment, ErrorKind, Value, context, syntax::SyntaxConfig};

use super::{
    error::ChatError,
    message::{Message, Role},
};

/// Instructions a template may execute; ends endless loops.
const FUEL: u64 = 5_000_000;

/// Prompt formats known without a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    /// `<|im_start|>role ... <|im_end|>`.
    Chatml,
    /// Llama 3: headers and `<|eot_id|>`.
    Llama3,
    /// Gemma: turns of `user` and `model`; the system text leads the first user turn.
    Gemma,
    /// Qwen: ChatML with Qwen's default system text and, where the model can think aloud, an empty thought.
    Qwen,
}

/// How prompts are made.
#[derive(Debug)]
pub struct Template {
    source: Source,
    bos: String,
    eos: String,
    thinks: bool,
}

#[derive(Debug)]
enum Source {
    Builtin(Builtin),
    Jinja(Box<Environment<'static>>, String),
}

impl Template {
    /// A built-in format. `bos` is the text of the begin token; `thinks`: the vocabulary has `<think>`.
    pub fn builtin(kind: Builtin, bos: &str, thinks: bool) -> Self {
        Self { source: Source::Builtin(kind), bos: bos.into(), eos: String::new(), thinks }
    }

    /// A Jinja template.
    ///
    /// # Errors
    /// [`ChatError::Template`] if it does not parse.
    pub fn jinja(source: &str, bos: &str, eos: &str) -> Result<Self, ChatError> {
        let mut env = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        env.set_syntax(syntax.build().map_err(fail)?);
        env.set_fuel(Some(FUEL));
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.add_function("raise_exception", |why: String| -> Result<Value, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, why))
        });
        // Templates print the date into the system text; a fixed one keeps prompts equal from run to run.
        env.add_function("strftime_now", |_: String| "26 Jul 2024");
        env.template_from_named_str("chat", source).map_err(fail)?;
        Ok(Self {
            source: Source::Jinja(Box::new(env), source.into()),
            bos: bos.into(),
            eos: eos.into(),
            thinks: false,
        })
    }

    /// The prompt for `messages`, open for the assistant's answer.
    ///
    /// # Errors
    /// [`ChatError::Template`] if the template refuses the messages or does not end.
    pub fn render(&self, messages: &[Message]) -> Result<String, ChatError> {
        match &self.source {
            Source::Builtin(Builtin::Chatml) => Ok(chatml(messages, None, false)),
            Source::Builtin(Builtin::Qwen) => Ok(chatml(messages, Some(QWEN_SYSTEM), self.thinks)),
            Source::Builtin(Builtin::Llama3) => Ok(llama3(messages, &self.bos)),
            Source::Builtin(Builtin::Gemma) => Ok(gemma(messages, &self.bos)),
            Source::Jinja(env, source) => {
                let messages: Vec<Value> = messages
                    .iter()
                    .map(|m| context! { role => m.role.as_str(), content => m.content.as_str() })
                    .collect();
                let template = env.template_from_named_str("chat", source).map_err(fail)?;
                template
                    .render(context! {
                        messages => messages,
                        add_generation_prompt => true,
                        enable_thinking => false,
                        bos_token => self.bos.as_str(),
                        eos_token => self.eos.as_str(),
                    })
                    .map_err(fail)
            }
        }
    }
}

fn fail(e: minijinja::Error) -> ChatError {
    ChatError::Template { why: e.to_string() }
}

const QWEN_SYSTEM: &str = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

fn chatml(messages: &[Message], default_system: Option<&str>, empty_thought: bool) -> String {
    let mut out = String::new();
    let mut turn = |role: &str, text: &str| out.push_str(&format!("<|im_start|>{role}\n{text}<|im_end|>\n"));
    if let (Some(system), true) = (default_system, messages.first().is_none_or(|m| m.role != Role::System))
        && !empty_thought
    {
        turn("system", system);
    }
    for m in messages {
        let text = match m.role {
            Role::Assistant if empty_thought => m.content.rsplit("</think>").next().unwrap_or("").trim_start(),
            _ => &m.content,
        };
        turn(m.role.as_str(), text);
    }
    out.push_str("<|im_start|>assistant\n");
    if empty_thought {
        out.push_str("<think>\n\n</think>\n\n");
    }
    out
}

fn llama3(messages: &[Message], bos: &str) -> String {
    let header = |role: &str| format!("<|start_header_id|>{role}<|end_header_id|>\n\n");
    let mut out = bos.to_string();
    for m in messages {
        out.push_str(&format!("{}{}<|eot_id|>", header(m.role.as_str()), m.content.trim()));
    }
    out + &header("assistant")
}

fn gemma(messages: &[Message], bos: &str) -> String {
    let mut out = bos.to_string();
    let mut lead = String::new();
    for m in messages {
        let role = match m.role {
            Role::System => {
                lead.push_str(m.content.trim());
                lead.push_str("\n\n");
                continue;
            }
            Role::User => "user",
            Role::Assistant => "model",
        };
        let lead = if m.role == Role::User { std::mem::take(&mut lead) } else { String::new() };
        out.push_str(&format!("<start_of_turn>{role}\n{lead}{}<end_of_turn>\n", m.content.trim()));
    }
    out + "<start_of_turn>model\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk() -> Vec<Message> {
        vec![Message::system("Be kind."), Message::user("Hi"), Message::assistant("Hello!"), Message::user(" Bye ")]
    }

    #[test]
    fn chatml_as_expected() {
        let want = "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n\
                    Hello!<|im_end|>\n<|im_start|>user\n Bye <|im_end|>\n<|im_start|>assistant\n";
        assert_eq!(Template::builtin(Builtin::Chatml, "", false).render(&talk()).unwrap(), want);
    }

    #[test]
    fn llama3_as_expected() {
        let want = "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>\
                    <|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>\
                    <|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>\
                    <|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>\
                    <|start_header_id|>assistant<|end_header_id|>\n\n";
        assert_eq!(Template::builtin(Builtin::Llama3, "<|begin_of_text|>", false).render(&talk()).unwrap(), want);
    }

    #[test]
    fn gemma_as_expected() {
        let want = "<bos><start_of_turn>user\nBe kind.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n\
                    <start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n";
        assert_eq!(Template::builtin(Builtin::Gemma, "<bos>", false).render(&talk()).unwrap(), want);
    }

    #[test]
    fn qwen_as_expected() {
        let qwen2 = Template::builtin(Builtin::Qwen, "", false);
        let want = "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n\
                    <|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
        assert_eq!(qwen2.render(&[Message::user("Hi")]).unwrap(), want);
        let qwen3 = Template::builtin(Builtin::Qwen, "", true);
        let want = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>\n<|im_start|>user\nGo<|im_end|>\n\
                    <|im_start|>assistant\n<think>\n\n</think>\n\n";
        let talk = [Message::user("Hi"), Message::assistant("<think>\nhm\n</think>\n\nYes."), Message::user("Go")];
        assert_eq!(qwen3.render(&talk).unwrap(), want);
    }

    #[test]
    fn a_jinja_template_with_python_methods_equals_the_builtin() {
        let source = "{{- bos_token }}{%- for message in messages %}\n  {%- if loop.first and message.role != 'system' %}\
            {{ raise_exception('system first') }}{% endif %}\n{{- '<|start_header_id|>' + message['role'] + \
            '<|end_header_id|>\\n\\n' + message['content'].strip() + '<|eot_id|>' }}{%- endfor %}\n\
            {%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";
        let jinja = Template::jinja(source, "<|begin_of_text|>", "").unwrap();
        let builtin = Template::builtin(Builtin::Llama3, "<|begin_of_text|>", false);
        assert_eq!(jinja.render(&talk()).unwrap(), builtin.render(&talk()).unwrap());
        let refused = jinja.render(&[Message::user("x")]).unwrap_err().to_string();
        assert!(refused.contains("system first"), "{refused}");
    }

    #[test]
    fn bad_templates_are_errors_and_endless_ones_end() {
        assert!(matches!(Template::jinja("{% for %}", "", ""), Err(ChatError::Template { .. })));
        let endless = "{% for a in range(9000) %}{% for b in range(9000) %}{% endfor %}{% endfor %}";
        assert!(matches!(Template::jinja(endless, "", "").unwrap().render(&talk()), Err(ChatError::Template { .. })));
    }
}
