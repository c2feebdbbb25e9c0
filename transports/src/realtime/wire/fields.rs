//! Reading fields of a JSON object, each once and by its type.
//!
//! A field that is `null` counts as absent. A field of another type is refused with its path, so a client learns which.
//! `true` is not a number and `1` is not a bool.

use serde_json::{Map, Value};

use super::code::Refusal;

/// The largest number of milliseconds, and of anything counted, that is read: what JSON clients hold exactly.
pub const MOST: f64 = 9_007_199_254_740_991.0;

/// Bytes of an id at most. Ids come back in replies, which must stay small whatever a client sends.
pub const MOST_ID: usize = 1024;

/// The fields of one object that have not been taken yet, and where it stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields {
    map: Map<String, Value>,
    path: String,
}

impl Fields {
    /// The fields of the message itself.
    pub fn top(map: Map<String, Value>) -> Self {
        Self { map, path: String::new() }
    }
    /// The fields of the object at `path`.
    pub fn at(path: impl Into<String>, map: Map<String, Value>) -> Self {
        Self { map, path: path.into() }
    }
    /// The full path of the field `name`.
    pub fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
    /// What has not been taken.
    pub fn rest(self) -> Map<String, Value> {
        self.map
    }
    /// True if the field stands there, `null` included.
    pub fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }
    /// The field as it stands, `null` included.
    pub fn raw(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name)
    }
    /// The field unless it is absent or `null`.
    pub fn value(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|v| !v.is_null())
    }
    fn typed<T>(
        &mut self,
        name: &str,
        what: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => {
                let path = self.path(name);
                let message = format!("`{path}` must be {what}");
                Err(Refusal::bad(path, message))
            }
        }
    }
    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, Refusal> {
        value.ok_or_else(|| {
            let path = self.path(name);
            let message = format!("`{path}` is required");
            Refusal::bad(path, message)
        })
    }
    /// A string.
    ///
    /// # Errors
    /// Another type.
    pub fn string(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        self.typed(name, "a string", |v| match v {
            Value::String(s) => Some(s),
            _ => None,
        })
    }
    /// A string that must be there.
    ///
    /// # Errors
    /// Absent, or another type.
    pub fn need_string(&mut self, name: &str) -> Result<String, Refusal> {
        let value = self.string(name)?;
        self.required(name, value)
    }
    /// An id: a string of at most [`MOST_ID`] bytes.
    ///
    /// # Errors
    /// Another type, or longer.
    pub fn id(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        self.typed(name, "a string of at most 1024 bytes", |v| match v {
            Value::String(s) if s.len() <= MOST_ID => Some(s),
            _ => None,
        })
    }
    /// A bool.
    ///
    /// # Errors
    /// Another type.
    pub fn boolean(&mut self, name: &str) -> Result<Option<bool>, Refusal> {
        self.typed(name, "true or false", |v| v.as_bool())
    }
    /// A finite number of either sign, within what JSON clients hold exactly.
    ///
    /// # Errors
    /// Another type, or a number beyond that.
    pub fn number(&mut self, name: &str) -> Result<Option<f64>, Refusal> {
        let what = "a number not beyond 2^53";
        self.typed(name, what, |v| v.as_f64().filter(|x| x.is_finite() && x.abs() <= MOST))
    }
    /// A number that must be there.
    ///
    /// # Errors
    /// Absent, another type, or beyond 2^53.
    pub fn need_number(&mut self, name: &str) -> Result<f64, Refusal> {
        let value = self.number(name)?;
        self.required(name, value)
    }
    /// A number of at least 0.
    ///
    /// # Errors
    /// Another type, negative, or beyond 2^53.
    pub fn length(&mut self, name: &str) -> Result<Option<f64>, Refusal> {
        let what = "a number from 0 to 2^53";
        self.typed(name, what, |v| v.as_f64().filter(|x| (0.0..=MOST).contains(x)))
    }
    /// An integer of at least 0. A whole number written with a fraction (`3.0`) is none.
    ///
    /// # Errors
    /// Another type, or negative.
    pub fn integer(&mut self, name: &str) -> Result<Option<u64>, Refusal> {
        self.typed(name, "an integer of at least 0", |v| v.as_u64())
    }
    /// An object, with its path for what is wrong inside.
    ///
    /// # Errors
    /// Another type.
    pub fn object(&mut self, name: &str) -> Result<Option<Fields>, Refusal> {
        let path = self.path(name);
        let map = self.typed(name, "an object", |v| match v {
            Value::Object(map) => Some(map),
            _ => None,
        })?;
        Ok(map.map(|map| Fields { map, path }))
    }
    /// An object that must be there.
    ///
    /// # Errors
    /// Absent, or another type.
    pub fn need_object(&mut self, name: &str) -> Result<Fields, Refusal> {
        let value = self.object(name)?;
        self.required(name, value)
    }
    /// A list.
    ///
    /// # Errors
    /// Another type.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Refusal> {
        self.typed(name, "a list", |v| match v {
            Value::Array(list) => Some(list),
            _ => None,
        })
    }
    /// The first of two spellings that is there.
    ///
    /// # Errors
    /// What `read` refuses.
    pub fn either<T>(
        &mut self,
        names: [&str; 2],
        read: impl Fn(&mut Self, &str) -> Result<Option<T>, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        match read(self, names[0])? {
            Some(found) => Ok(Some(found)),
            None => read(self, names[1]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::wire::code::Code;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        match value {
            Value::Object(map) => Fields::at("a", map),
            _ => panic!("not an object"),
        }
    }

    #[test]
    fn null_is_absent_and_another_type_is_refused_with_its_path() {
        let mut f = fields(json!({"s": null, "t": 1, "b": 1, "n": true, "i": 1.0, "neg": -1, "o": [], "big": 1e300}));
        assert_eq!(f.string("s"), Ok(None));
        for refused in [
            f.string("t").map(|_| ()),
            f.boolean("b").map(|_| ()),
            f.number("n").map(|_| ()),
            f.integer("i").map(|_| ()),
            f.length("neg").map(|_| ()),
            f.object("o").map(|_| ()),
            f.number("big").map(|_| ()),
        ] {
            let refusal = refused.unwrap_err();
            assert_eq!(refusal.code, Code::BadEvent);
            assert!(refusal.param.is_some_and(|p| p.starts_with("a.")));
        }
        assert_eq!(f.need_string("gone").unwrap_err().param.as_deref(), Some("a.gone"));
    }

    #[test]
    fn of_two_spellings_the_first_wins() {
        let mut f = fields(json!({"x": true, "y": false, "z": null, "w": false}));
        assert_eq!(f.either(["x", "y"], Fields::boolean), Ok(Some(true)));
        assert_eq!(f.either(["z", "w"], Fields::boolean), Ok(Some(false)));
    }
}
