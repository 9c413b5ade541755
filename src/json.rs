// SPDX-License-Identifier: Apache-2.0
//! JSON values that need little memory, for long lines: an object is one slice, and equal strings
//! of a line share one `Text`. Names of topics and fields are most of a line, and each occurs many
//! times.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use serde_core::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
pub use serde_json::Number;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    String(Text),
    Array(Vec<Value>),
    Object(Map),
}

/// The fields of an object, in the line's order. If a name occurs twice, the last one counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Map(Box<[(Text, Value)]>);

/// A string that the line's values may share. It is one pointer; `Arc<str>` would take two words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Text(Arc<String>);

impl Text {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl FromIterator<(Text, Value)> for Map {
    fn from_iter<T: IntoIterator<Item = (Text, Value)>>(fields: T) -> Self {
        Self(fields.into_iter().collect())
    }
}

impl Map {
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().rev().find(|(key, _)| key.as_str() == name);
        found.map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl Value {
    pub fn parse(text: &str, texts: &mut Texts) -> Result<Self, serde_json::Error> {
        let mut parser = serde_json::Deserializer::from_str(text);
        let (values, fields) = (Vec::new(), Vec::new());
        let mut reader = Reader {
            texts,
            values,
            fields,
        };
        let value = Seed(&mut reader).deserialize(&mut parser)?;
        parser.end()?;
        Ok(value)
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name)
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }
}

/// The strings of a line, each stored once. They can outlive its values, which need more memory.
#[derive(Default)]
pub struct Texts(HashSet<Text, FxBuildHasher>);

impl Texts {
    pub fn shared(&mut self, text: &str) -> Text {
        if let Some(found) = self.0.get(text) {
            return found.clone();
        }
        let new = Text(Arc::new(text.into()));
        self.0.insert(new.clone());
        new
    }
}

/// The strings read so far, and the entries of lists and objects that are not yet complete. A list
/// that grew by itself would reserve memory for entries that never come.
struct Reader<'t> {
    texts: &'t mut Texts,
    values: Vec<Value>,
    fields: Vec<(Text, Value)>,
}

struct Seed<'r, 't>(&'r mut Reader<'t>);

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(self.0.texts.shared(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let first = self.0.values.len();
        while let Some(value) = list.next_element_seed(Seed(self.0))? {
            self.0.values.push(value);
        }
        Ok(Value::Array(self.0.values.drain(first..).collect()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let first = self.0.fields.len();
        while let Some(Value::String(name)) = object.next_key_seed(Seed(self.0))? {
            let value = object.next_value_seed(Seed(self.0))?;
            self.0.fields.push((name, value));
        }
        Ok(Value::Object(Map(self.0.fields.drain(first..).collect())))
    }
}
