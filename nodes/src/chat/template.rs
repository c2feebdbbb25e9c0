//! Messages to one prompt, by the template of the file or a built-in one.
//!
//! A template in the file (`tokenizer.chat_template`, Jinja as Python's chat templates use it) is run with a bounded
//! amount of work and never reaches files. Built-in templates serve files without one and callers who ask for them.
//! Tools go to a template that has a variable for them; for the others they become text.

use std::io;

use minijinja::{
    Environment, ErrorKind, Value, context,
    syntax::SyntaxConfig,
    value::{Kwargs, Serde},
};
use serde::Serialize as _;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::{
    call::CallFormat,
    error::ChatError,
    hermes,
    message::{Message, Role, ToolCall},
    tool::Tool,
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
        env.add_filter("tojson", to_json);
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
        self.render_with(messages, &[])
    }

    /// The same, for an answer that may call `tools`. Where the template knows no tools, or refuses these messages with
    /// them (some take one call at a time), they are written as text.
    ///
    /// # Errors
    /// As [`Template::render`].
    pub fn render_with(&self, messages: &[Message], tools: &[Tool]) -> Result<String, ChatError> {
        let special = !tools.is_empty() || messages.iter().any(|m| m.role == Role::Tool || !m.tool_calls.is_empty());
        let as_text = || hermes::plain(messages, tools);
        match &self.source {
            Source::Jinja(env, source) if !special => self.run(env, source, messages, &[]),
            Source::Jinja(env, source) if source.contains("tools") => {
                self.run(env, source, messages, tools).or_else(|_| self.run(env, source, &as_text(), &[]))
            }
            Source::Jinja(env, source) => self.run(env, source, &as_text(), &[]),
            Source::Builtin(kind) if special => Ok(self.built_in(*kind, &as_text())),
            Source::Builtin(kind) => Ok(self.built_in(*kind, messages)),
        }
    }

    /// How a model with this template writes its calls.
    pub fn calls(&self) -> CallFormat {
        match &self.source {
            Source::Jinja(_, source)
                if source.contains("tools")
                    && !source.contains("<tool_call>")
                    && (source.contains("<|python_tag|>") || source.contains("<|start_header_id|>")) =>
            {
                CallFormat::Llama3
            }
            _ => CallFormat::Hermes,
        }
    }

    fn built_in(&self, kind: Builtin, messages: &[Message]) -> String {
        match kind {
            Builtin::Chatml => chatml(messages, None, false),
            Builtin::Qwen => chatml(messages, Some(QWEN_SYSTEM), self.thinks),
            Builtin::Llama3 => llama3(messages, &self.bos),
            Builtin::Gemma => gemma(messages, &self.bos),
        }
    }

    fn run(
        &self,
        env: &Environment<'static>,
        source: &str,
        messages: &[Message],
        tools: &[Tool],
    ) -> Result<String, ChatError> {
        let messages: Vec<Value> = messages.iter().map(message).collect();
        let template = env.template_from_named_str("chat", source).map_err(fail)?;
        let mut known = context! {
            messages => messages,
            add_generation_prompt => true,
            enable_thinking => false,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        };
        if !tools.is_empty() {
            known = context! { tools => Value::from(Serde(tools)), ..known };
        }
        template.render(known).map_err(fail)
    }
}

/// A message as templates take it: arguments of calls are objects, and keys that mean nothing are not there.
fn message(m: &Message) -> Value {
    let plain = context! { role => m.role.as_str(), content => m.content.as_str() };
    match (&m.tool_calls[..], &m.tool_call_id) {
        ([], None) => plain,
        ([], Some(id)) => context! { tool_call_id => id.as_str(), ..plain },
        (calls, _) => {
            let calls: Vec<Value> = calls.iter().map(call).collect();
            context! { tool_calls => calls, ..plain }
        }
    }
}

fn call(c: &ToolCall) -> Value {
    let arguments = match serde_json::from_str::<serde_json::Value>(&c.arguments) {
        Ok(v) => Value::from(Serde(v)),
        Err(_) => Value::from(c.arguments.as_str()),
    };
    let function = context! { name => c.name.as_str(), arguments => arguments };
    context! { id => c.id.as_str(), type => "function", function => function }
}

/// The filter `tojson` as chat templates know it: like Python's `json.dumps`, and nothing escaped for HTML.
fn to_json(value: &Value, indent: Option<usize>, options: Kwargs) -> Result<String, minijinja::Error> {
    let indent = match indent {
        Some(n) => Some(n),
        None => options.get::<Option<usize>>("indent")?,
    };
    // Key order and escapes are as they are here; what else Python can be asked for changes nothing of meaning.
    let _ = options.get::<Option<Value>>("ensure_ascii")?;
    let _ = options.get::<Option<Value>>("separators")?;
    let _ = options.get::<Option<Value>>("sort_keys")?;
    options.assert_all_used()?;
    let mut out = Vec::new();
    let written = match indent {
        Some(n) => {
            let space = " ".repeat(n.min(16));
            value.serialize(&mut Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(space.as_bytes())))
        }
        None => value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)),
    };
    let bad = |why: String| minijinja::Error::new(ErrorKind::BadSerialization, why);
    written.map_err(|e| bad(e.to_string()))?;
    String::from_utf8(out).map_err(|e| bad(e.to_string()))
}

/// JSON with a space behind each colon and comma.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }
    fn begin_object_key<W: ?Sized + io::Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
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
            Role::User | Role::Tool => "user",
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

    fn dice() -> (Vec<Message>, Tool) {
        let call = ToolCall { id: "c".into(), name: "dice".into(), arguments: "{\"sides\": 6, \"by\": \"<'\"}".into() };
        let talk = vec![Message::user("Roll."), Message::calls("", vec![call]), Message::tool("c", "4")];
        let parameters = serde_json::json!({ "type": "object" });
        (talk, Tool { name: "dice".into(), description: "It's one.".into(), parameters })
    }

    #[test]
    fn tools_reach_a_template_that_has_a_variable_for_them() {
        let source = "{%- if tools %}{% for t in tools %}[{{ t | tojson }}]{% endfor %}{% endif %}\
            {%- for m in messages %}{{ m.role }}:{{ m.content }}\
            {%- if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.name }}={{ c.function.arguments | tojson }}\
            {%- endfor %}{% endif %};{% endfor %}<tool_call>";
        let template = Template::jinja(source, "", "").unwrap();
        let (talk, tool) = dice();
        let want = "[{\"type\": \"function\", \"function\": {\"name\": \"dice\", \"description\": \"It's one.\", \
            \"parameters\": {\"type\": \"object\"}}}]user:Roll.;assistant:dice={\"by\": \"<'\", \"sides\": 6};tool:4;\
            <tool_call>";
        assert_eq!(template.render_with(&talk, &[tool]).unwrap(), want);
        assert_eq!(template.calls(), CallFormat::Hermes);
        assert!(!template.render(&talk).unwrap().starts_with('['));
        let indented = Template::jinja("{{ messages[0] | tojson(indent=2) }}", "", "").unwrap();
        assert_eq!(indented.render(&talk[..1]).unwrap(), "{\n  \"role\": \"user\",\n  \"content\": \"Roll.\"\n}");
    }

    #[test]
    fn tools_become_text_where_a_template_has_no_place_for_them() {
        let (talk, tool) = dice();
        let tools = [tool];
        let text = hermes::plain(&talk, &tools);
        for kind in [Builtin::Chatml, Builtin::Llama3, Builtin::Gemma, Builtin::Qwen] {
            let template = Template::builtin(kind, "", false);
            let prompt = template.render_with(&talk, &tools).unwrap();
            assert_eq!(prompt, template.render(&text).unwrap());
            assert!(prompt.contains("\"dice\"") && prompt.contains("<tool_response>\n4"), "{prompt}");
        }
        let each = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
        let template = Template::jinja(each, "", "").unwrap();
        assert_eq!(template.render_with(&talk, &tools).unwrap(), template.render(&text).unwrap());
        // One that knows tools and refuses this conversation.
        let strict = format!("{{% if tools %}}{{{{ raise_exception('one at a time') }}}}{{% endif %}}{each}");
        let template = Template::jinja(&strict, "", "").unwrap();
        assert_eq!(template.render_with(&talk, &tools).unwrap(), template.render(&text).unwrap());
        let llama = Template::jinja("{% if tools %}<|python_tag|>{% endif %}", "", "").unwrap();
        assert_eq!(llama.calls(), CallFormat::Llama3);
    }

    #[test]
    fn bad_templates_are_errors_and_endless_ones_end() {
        assert!(matches!(Template::jinja("{% for %}", "", ""), Err(ChatError::Template { .. })));
        let endless = "{% for a in range(9000) %}{% for b in range(9000) %}{% endfor %}{% endfor %}";
        assert!(matches!(Template::jinja(endless, "", "").unwrap().render(&talk()), Err(ChatError::Template { .. })));
    }
}
