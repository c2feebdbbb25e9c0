//! Tools for templates that know none: described in the system text, called and answered in tags, as Hermes models learnt.

use serde_json::json;

use super::{
    message::{Message, Role, ToolCall},
    tool::Tool,
};

/// The same conversation in messages of system, user and assistant alone.
pub(super) fn plain(messages: &[Message], tools: &[Tool]) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len() + 1);
    if !tools.is_empty() {
        let lead = messages.first().filter(|m| m.role == Role::System).map(|m| m.content.trim()).unwrap_or_default();
        let gap = if lead.is_empty() { "" } else { "\n\n" };
        out.push(Message::system(format!("{lead}{gap}{}", describe(tools))));
    }
    let skip = usize::from(!tools.is_empty() && messages.first().is_some_and(|m| m.role == Role::System));
    for m in &messages[skip..] {
        match m.role {
            Role::Tool => {
                let result = format!("<tool_response>\n{}\n</tool_response>", m.content);
                match out.last_mut() {
                    // Results of one turn stand together.
                    Some(last) if last.role == Role::User && last.content.ends_with("</tool_response>") => {
                        last.content.push('\n');
                        last.content.push_str(&result);
                    }
                    _ => out.push(Message::user(result)),
                }
            }
            Role::Assistant if !m.tool_calls.is_empty() => {
                let calls = m.tool_calls.iter().map(written);
                let said = Some(m.content.clone()).filter(|c| !c.is_empty());
                out.push(Message::assistant(said.into_iter().chain(calls).collect::<Vec<_>>().join("\n")));
            }
            role => out.push(Message::plain(role, m.content.clone())),
        }
    }
    out
}

fn describe(tools: &[Tool]) -> String {
    let list: Vec<String> = tools.iter().filter_map(|t| serde_json::to_string(t).ok()).collect();
    format!(
        "You can call these functions:\n<tools>\n{}\n</tools>\nTo call one, answer with its name and arguments as JSON \
         between tags and nothing else:\n<tool_call>\n{{\"name\": \"NAME\", \"arguments\": {{}}}}\n</tool_call>\nThe result \
         comes in <tool_response> tags; then answer in words.",
        list.join("\n")
    )
}

fn written(call: &ToolCall) -> String {
    let name = json!(call.name);
    let arguments = if call.arguments.trim().is_empty() { "{}" } else { call.arguments.trim() };
    format!("<tool_call>\n{{\"name\": {name}, \"arguments\": {arguments}}}\n</tool_call>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_calls_and_results_become_text() {
        let call = |id: &str| ToolCall { id: id.into(), name: "dice".into(), arguments: "{\"sides\":6}".into() };
        let talk = [
            Message::system("Be kind."),
            Message::user("Roll two."),
            Message::calls("Rolling.", vec![call("a"), call("b")]),
            Message::tool("a", "3"),
            Message::tool("b", "5"),
            Message::assistant("Eight."),
        ];
        let tool = Tool { name: "dice".into(), description: "Rolls.".into(), parameters: json!({ "type": "object" }) };
        let got = plain(&talk, &[tool]);
        assert!(got[0].content.starts_with("Be kind.\n\nYou can call"), "{}", got[0].content);
        assert!(got[0].content.contains("\"name\":\"dice\""), "{}", got[0].content);
        let tag = "<tool_call>\n{\"name\": \"dice\", \"arguments\": {\"sides\":6}}\n</tool_call>";
        let want = [
            Message::user("Roll two."),
            Message::assistant(format!("Rolling.\n{tag}\n{tag}")),
            Message::user("<tool_response>\n3\n</tool_response>\n<tool_response>\n5\n</tool_response>"),
            Message::assistant("Eight."),
        ];
        assert_eq!(got[1..], want);
        // Without tools nothing is described, and what was called before stays.
        assert_eq!(plain(&talk, &[])[0], talk[0]);
        assert_eq!(plain(&talk[1..], &[]), want);
        assert_eq!(plain(&talk[1..2], &[]), talk[1..2]);
    }
}
