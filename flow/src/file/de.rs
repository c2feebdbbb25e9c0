//! Reads a [`Tree`] into any serde type, with every error at the place of the value that causes it.
//!
//! The type decides what a scalar is: a text field takes `no`, `1.10` and `012` as exactly that text, a number field
//! takes only numbers, a yes/no field only `true` and `false`. Where the type leaves it open (`serde_json::Value`), a
//! scalar is a number only if it is written as one would print it.

use std::fmt;

use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

use super::code::Code;
use super::diagnostic::{Diagnostic, nearest, ticks};
use super::span::Span;
use super::tree::{Entry, Plain, Scalar, Tree, Value, plain};

/// Reads `tree` as a `T`.
///
/// # Errors
/// One finding, at the place of the value that causes it.
pub(crate) fn from_tree<T: de::DeserializeOwned>(tree: &Tree) -> Result<T, Diagnostic> {
    T::deserialize(De(tree)).map_err(|e| e.into_diagnostic(tree.span))
}

/// Why a value cannot be read.
#[derive(Debug)]
pub(crate) struct DeError {
    code: Code,
    message: String,
    hint: Option<String>,
    span: Option<Span>,
}

impl DeError {
    fn new(code: Code, message: String) -> Self {
        Self { code, message, hint: None, span: None }
    }
    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Sets the place if an inner value has not.
    fn at(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }
    fn into_diagnostic(self, fallback: Span) -> Diagnostic {
        let d = Diagnostic::error(self.code, self.span.unwrap_or(fallback), self.message);
        if let Some(h) = self.hint { d.hint(h) } else { d }
    }
}

impl fmt::Display for DeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for DeError {}

impl de::Error for DeError {
    fn custom<T: fmt::Display>(msg: T) -> Self {
        let message = msg.to_string();
        let code = match &message {
            m if m.contains("has no unit") => Code::Unit,
            m if m.contains("out of range") => Code::OutOfRange,
            _ => Code::WrongType,
        };
        // By custom of this crate and its node types, what follows the semicolon says what to do.
        match message.split_once("; ") {
            Some((cause, hint)) => Self::new(code, cause.to_owned()).hint(hint),
            None => Self::new(code, message),
        }
    }
    fn invalid_type(got: de::Unexpected<'_>, want: &dyn de::Expected) -> Self {
        Self::new(Code::WrongType, format!("found {}, needs {want}", plainly(&got)))
    }
    fn invalid_value(got: de::Unexpected<'_>, want: &dyn de::Expected) -> Self {
        Self::new(Code::OutOfRange, format!("{} cannot be used here, needs {want}", plainly(&got)))
    }
    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        let e = Self::new(Code::WrongType, format!("`{word}` is none of the words allowed here"));
        match nearest(word, known.iter().copied()) {
            Some(n) => e.hint(format!("did you mean `{n}`?")),
            None => e.hint(format!("allowed: {}", ticks(known))),
        }
    }
    fn unknown_field(word: &str, known: &'static [&'static str]) -> Self {
        let e = Self::new(Code::UnknownKey, format!("unknown key `{word}`"));
        match nearest(word, known.iter().copied()) {
            Some(n) => e.hint(format!("did you mean `{n}`?")),
            None => e.hint(format!("known here: {}", ticks(known))),
        }
    }
    fn missing_field(field: &'static str) -> Self {
        Self::new(Code::MissingKey, format!("`{field}` is missing")).hint(format!("add `{field}: ...`"))
    }
    fn duplicate_field(field: &'static str) -> Self {
        Self::new(Code::DuplicateKey, format!("`{field}` is given twice"))
    }
}

fn plainly(u: &de::Unexpected<'_>) -> String {
    match u {
        de::Unexpected::Str(s) => format!("`{s}`"),
        de::Unexpected::Map => "a map".to_owned(),
        de::Unexpected::Seq => "a list".to_owned(),
        de::Unexpected::Unit | de::Unexpected::Option => "nothing".to_owned(),
        de::Unexpected::Signed(n) => n.to_string(),
        de::Unexpected::Unsigned(n) => n.to_string(),
        de::Unexpected::Float(x) => x.to_string(),
        de::Unexpected::Bool(b) => b.to_string(),
        other => other.to_string(),
    }
}

/// A plain scalar as an integer: decimal without leading zeros, `0x`, `0o`.
pub(crate) fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if let Some(h) = digits.strip_prefix("0x") {
        return i128::from_str_radix(h, 16).ok().filter(|_| h.starts_with(|c: char| c.is_ascii_hexdigit()));
    }
    if let Some(o) = digits.strip_prefix("0o") {
        return i128::from_str_radix(o, 8).ok().filter(|_| o.starts_with(|c: char| c.is_ascii_digit()));
    }
    let ok = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'));
    ok.then(|| digits.parse::<i128>().ok().map(|n| sign * n)).flatten()
}

/// A plain scalar as a number of the core schema, finite.
pub(crate) fn number(text: &str) -> Option<f64> {
    let ok = text.bytes().any(|b| b.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    if ok { text.parse::<f64>().ok().filter(|x| x.is_finite()) } else { None }
}

/// A plain scalar as a yes/no.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

struct De<'a>(&'a Tree);

impl<'a> De<'a> {
    fn scalar(&self, want: &str) -> Result<&'a Scalar, DeError> {
        match &self.0.value {
            Value::Scalar(s) if !self.0.is_null() => Ok(s),
            _ => Err(DeError::new(Code::WrongType, format!("found {}, needs {want}", self.0.shape())).at(self.0.span)),
        }
    }
    fn plain(&self, want: &str) -> Result<&'a str, DeError> {
        let s = self.scalar(want)?;
        if s.plain {
            return Ok(&s.text);
        }
        let e = DeError::new(Code::WrongType, format!("found the text \"{}\" in quotes, needs {want}", s.text));
        Err(e.hint("take the quotes away").at(self.0.span))
    }
    fn int(&self) -> Result<i128, DeError> {
        let t = self.plain("a whole number")?;
        integer(t).ok_or_else(|| {
            let e = DeError::new(Code::WrongType, format!("`{t}` is not a whole number")).at(self.0.span);
            let zeros = t.trim_start_matches('0');
            match integer(zeros) {
                Some(n) if zeros != t => e.hint(format!("write `{n}`, or `0o{zeros}` for base 8")),
                _ => e.hint("write digits only"),
            }
        })
    }
    fn float(&self) -> Result<f64, DeError> {
        let t = self.plain("a number")?;
        number(t).ok_or_else(|| {
            let nan = matches!(t.to_ascii_lowercase().trim_start_matches(['-', '+', '.']), "nan" | "inf");
            let code = if nan { Code::OutOfRange } else { Code::WrongType };
            DeError::new(code, format!("`{t}` is not a finite number")).hint("write for instance `0.5`").at(self.0.span)
        })
    }
}

macro_rules! ints {
    ($($f:ident $v:ident $t:ty),*) => {$(
        fn $f<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
            let n = self.int()?;
            match <$t>::try_from(n) {
                Ok(x) => v.$v(x).map_err(|e: DeError| e.at(self.0.span)),
                Err(_) => Err(DeError::new(Code::OutOfRange, format!("{n} is out of range"))
                    .hint(format!("from {} to {}", <$t>::MIN, <$t>::MAX)).at(self.0.span)),
            }
        }
    )*};
}

impl<'de> de::Deserializer<'de> for De<'_> {
    type Error = DeError;

    fn deserialize_any<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        let span = self.0.span;
        match &self.0.value {
            _ if self.0.is_null() => v.visit_unit(),
            Value::Scalar(s) if !s.plain => v.visit_str(&s.text),
            Value::Scalar(s) => match plain(&s.text) {
                Plain::Bool(b) => v.visit_bool(b),
                Plain::Int(i) if i >= 0 => v.visit_u64(i as u64),
                Plain::Int(i) => v.visit_i64(i),
                Plain::Float(x) => v.visit_f64(x),
                Plain::Text => v.visit_str(&s.text),
            },
            Value::Seq(items) => v.visit_seq(Seq(items.iter())),
            Value::Map(entries) => v.visit_map(Map { entries: entries.iter(), value: None }),
        }
        .map_err(|e: DeError| e.at(span))
    }
    fn deserialize_bool<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        let t = self.plain("`true` or `false`")?;
        match boolean(t) {
            Some(b) => v.visit_bool(b).map_err(|e: DeError| e.at(self.0.span)),
            None => {
                let e = DeError::new(Code::WrongType, format!("`{t}` is text, needs `true` or `false`"));
                let hint = match t.to_ascii_lowercase().as_str() {
                    "yes" | "on" | "y" => "write `true`",
                    "no" | "off" | "n" => "write `false`",
                    _ => "write `true` or `false`",
                };
                Err(e.hint(hint).at(self.0.span))
            }
        }
    }
    ints!(deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_i128 visit_i128 i128, deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64,
        deserialize_u128 visit_u128 u128);
    fn deserialize_f32<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        v.visit_f64(self.float()?).map_err(|e: DeError| e.at(self.0.span))
    }
    fn deserialize_f64<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        self.deserialize_f32(v)
    }
    fn deserialize_str<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        let s = self.scalar("text")?;
        v.visit_str(&s.text).map_err(|e: DeError| e.at(self.0.span))
    }
    fn deserialize_string<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        self.deserialize_str(v)
    }
    fn deserialize_char<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        self.deserialize_str(v)
    }
    fn deserialize_identifier<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        self.deserialize_str(v)
    }
    fn deserialize_option<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        if self.0.is_null() { v.visit_none() } else { v.visit_some(self) }
    }
    fn deserialize_unit<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        if self.0.is_null() {
            return v.visit_unit();
        }
        Err(DeError::new(Code::WrongType, format!("found {}, needs nothing", self.0.shape())).at(self.0.span))
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, v: V) -> Result<V::Value, DeError> {
        self.deserialize_unit(v)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, v: V) -> Result<V::Value, DeError> {
        let span = self.0.span;
        v.visit_newtype_struct(self).map_err(|e| e.at(span))
    }
    fn deserialize_seq<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        let Value::Seq(items) = &self.0.value else {
            let e = DeError::new(Code::WrongType, format!("found {}, needs a list", self.0.shape()));
            return Err(e.hint("write `[a, b]`").at(self.0.span));
        };
        v.visit_seq(Seq(items.iter())).map_err(|e| e.at(self.0.span))
    }
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, v: V) -> Result<V::Value, DeError> {
        self.deserialize_seq(v)
    }
    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, _: usize, v: V) -> Result<V::Value, DeError> {
        self.deserialize_seq(v)
    }
    fn deserialize_map<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        let Value::Map(entries) = &self.0.value else {
            let e = DeError::new(Code::WrongType, format!("found {}, needs a map", self.0.shape()));
            return Err(e.hint("write `{ key: value }`").at(self.0.span));
        };
        v.visit_map(Map { entries: entries.iter(), value: None }).map_err(|e| e.at(self.0.span))
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        v: V,
    ) -> Result<V::Value, DeError> {
        self.deserialize_map(v)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        v: V,
    ) -> Result<V::Value, DeError> {
        let span = self.0.span;
        match &self.0.value {
            Value::Scalar(s) if !self.0.is_null() => {
                v.visit_enum(s.text.as_str().into_deserializer()).map_err(|e: DeError| e.at(span))
            }
            Value::Map(m) if m.len() == 1 => v.visit_enum(Enum(&m[0])).map_err(|e| e.at(span)),
            _ => Err(DeError::new(Code::WrongType, format!("found {}, needs one word", self.0.shape())).at(span)),
        }
    }
    fn deserialize_bytes<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        self.deserialize_str(v)
    }
    fn deserialize_byte_buf<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        self.deserialize_str(v)
    }
    fn deserialize_ignored_any<V: Visitor<'de>>(self, v: V) -> Result<V::Value, DeError> {
        v.visit_unit()
    }
}

struct Seq<'a>(std::slice::Iter<'a, Tree>);

impl<'de> de::SeqAccess<'de> for Seq<'_> {
    type Error = DeError;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DeError> {
        self.0.next().map(|t| seed.deserialize(De(t)).map_err(|e| e.at(t.span))).transpose()
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Map<'a> {
    entries: std::slice::Iter<'a, Entry>,
    value: Option<&'a Tree>,
}

impl<'de> de::MapAccess<'de> for Map<'_> {
    type Error = DeError;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DeError> {
        let Some(e) = self.entries.next() else { return Ok(None) };
        self.value = Some(&e.value);
        let key = Tree::scalar(e.key.clone(), false, e.key_span);
        // A key may be a number where the type says so, as in a map from speaker to name.
        let key = if plain_key(&e.key) { Tree::scalar(e.key.clone(), true, e.key_span) } else { key };
        seed.deserialize(De(&key)).map(Some).map_err(|x| x.at(e.key_span))
    }
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, DeError> {
        let Some(t) = self.value.take() else {
            return Err(DeError::new(Code::WrongType, "a value was asked for before its key".to_owned()));
        };
        seed.deserialize(De(t)).map_err(|e| e.at(t.span))
    }
}

fn plain_key(key: &str) -> bool {
    integer(key).is_some()
}

struct Enum<'a>(&'a Entry);

impl<'de> de::EnumAccess<'de> for Enum<'_> {
    type Error = DeError;
    type Variant = Self;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), DeError> {
        let key: de::value::StrDeserializer<'_, DeError> = self.0.key.as_str().into_deserializer();
        let v = seed.deserialize(key).map_err(|e| e.at(self.0.key_span))?;
        Ok((v, self))
    }
}

impl<'de> de::VariantAccess<'de> for Enum<'_> {
    type Error = DeError;
    fn unit_variant(self) -> Result<(), DeError> {
        if self.0.value.is_null() {
            return Ok(());
        }
        let e = DeError::new(Code::WrongType, format!("`{}` takes no value", self.0.key));
        Err(e.hint(format!("write `{}` alone", self.0.key)).at(self.0.value.span))
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DeError> {
        seed.deserialize(De(&self.0.value)).map_err(|e| e.at(self.0.value.span))
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, v: V) -> Result<V::Value, DeError> {
        de::Deserializer::deserialize_seq(De(&self.0.value), v)
    }
    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], v: V) -> Result<V::Value, DeError> {
        de::Deserializer::deserialize_map(De(&self.0.value), v)
    }
}
