//! Tools that a model may call, and whether it may.
//!
//! Both are read in the shape of OpenAI's chat completions (nested under `function`) and of its Realtime sessions
//! (flat), and written in the former.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WireTool", into = "WireTool")]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// Its arguments, as a JSON schema of an object; `null` if it takes none.
    pub parameters: Value,
}

/// Whether the model calls tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum ToolChoice {
    /// It decides.
    #[default]
    Auto,
    /// It calls none.
    None,
    /// It calls at least one.
    Required,
    /// It calls this one.
    Named(String),
}

impl ToolChoice {
    /// Whether an answer without a call is out of the question.
    pub fn forces(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_))
    }
}

impl TryFrom<Value> for ToolChoice {
    type Error = String;
    fn try_from(v: Value) -> Result<Self, String> {
        let named = v.pointer("/function/name").or_else(|| v.get("name")).and_then(Value::as_str);
        match (v.as_str(), named) {
            (Some("auto"), _) => Ok(Self::Auto),
            (Some("none"), _) => Ok(Self::None),
            (Some("required"), _) => Ok(Self::Required),
            (None, _) if v.is_null() => Ok(Self::Auto),
            (None, Some(name)) => Ok(Self::Named(name.to_owned())),
            _ => Err(format!("`tool_choice` is {v}; it is `auto`, `none`, `required` or names a function")),
        }
    }
}

impl From<ToolChoice> for Value {
    fn from(c: ToolChoice) -> Self {
        match c {
            ToolChoice::Auto => "auto".into(),
            ToolChoice::None => "none".into(),
            ToolChoice::Required => "required".into(),
            ToolChoice::Named(name) => json!({ "type": "function", "function": { "name": name } }),
        }
    }
}

/// A tool as it is written or read.
#[derive(Serialize, Deserialize)]
struct WireTool {
    #[serde(rename = "type", default = "function")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    function: Option<WireFunction>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    flat: Option<WireFunction>,
}

#[derive(Serialize, Deserialize)]
struct WireFunction {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    parameters: Value,
}

fn function() -> String {
    "function".to_owned()
}

impl TryFrom<WireTool> for Tool {
    type Error = String;
    fn try_from(w: WireTool) -> Result<Self, String> {
        if w.kind != "function" {
            return Err(format!("a tool of type `{}`; only functions can be called", w.kind));
        }
        let f = w.function.or(w.flat).ok_or("a tool without a name")?;
        Ok(Self { name: f.name, description: f.description.unwrap_or_default(), parameters: f.parameters })
    }
}

impl From<Tool> for WireTool {
    fn from(t: Tool) -> Self {
        let description = (!t.description.is_empty()).then_some(t.description);
        let f = WireFunction { name: t.name, description, parameters: t.parameters };
        Self { kind: function(), function: Some(f), flat: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_read_flat_and_nested() {
        let schema = json!({ "type": "object", "properties": { "room": { "type": "string" } } });
        let want = Tool { name: "light".into(), description: "Turns it on.".into(), parameters: schema.clone() };
        let nested = json!({ "type": "function",
            "function": { "name": "light", "description": "Turns it on.", "parameters": schema } });
        let flat = json!({ "type": "function", "name": "light", "description": "Turns it on.", "parameters": schema });
        assert_eq!(serde_json::to_value(&want).unwrap(), nested);
        for wire in [nested, flat] {
            assert_eq!(serde_json::from_value::<Tool>(wire).unwrap(), want);
        }
        let bare: Tool = serde_json::from_value(json!({ "name": "stop" })).unwrap();
        assert_eq!(serde_json::to_value(bare).unwrap(), json!({ "type": "function", "function": { "name": "stop" } }));
        for bad in [json!({ "type": "web_search" }), json!({ "type": "function" }), json!(3)] {
            assert!(serde_json::from_value::<Tool>(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn choices_are_read_and_written() {
        let read = |v: Value| serde_json::from_value::<ToolChoice>(v);
        for (wire, want) in [
            (json!("auto"), ToolChoice::Auto),
            (json!("none"), ToolChoice::None),
            (json!("required"), ToolChoice::Required),
            (json!({ "type": "function", "function": { "name": "x" } }), ToolChoice::Named("x".into())),
        ] {
            assert_eq!(read(wire.clone()).unwrap(), want);
            assert_eq!(serde_json::to_value(want).unwrap(), wire);
        }
        assert_eq!(read(json!({ "type": "function", "name": "x" })).unwrap(), ToolChoice::Named("x".into()));
        assert_eq!(read(Value::Null).unwrap(), ToolChoice::Auto);
        assert!(read(json!("sometimes")).unwrap_err().to_string().contains("sometimes"));
        assert!(read(json!({})).is_err());
    }
}
