//! Tests JSON in both directions with a table of cases and against the reference implementation.

mod differential;
mod lenient;
mod product;
mod reference;
mod table;

use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor};

use crate::json::{
    plan::{MessageId, Plan},
    read::{self, Options, RejectReason},
    write,
};

/// A message type under test, with its descriptors here and in the reference implementation.
struct Subject {
    plan: Plan,
    message: MessageId,
    reference: MessageDescriptor,
}

impl Subject {
    fn kinds() -> Self {
        let set = include_bytes!(concat!(env!("OUT_DIR"), "/kinds.bin"));
        Self::of(set, "kinds.Kinds")
    }

    fn of_product(name: &str) -> Self {
        Self::of(crate::FILE_DESCRIPTOR_SET, name)
    }

    fn of(set: &[u8], name: &str) -> Self {
        let plan = Plan::compile(&[set]).unwrap();
        let pool = DescriptorPool::decode(set).unwrap();
        Self {
            message: plan.by_name[name],
            plan,
            reference: pool.get_message_by_name(name).unwrap(),
        }
    }

    fn read(&self, json: &str) -> Result<Vec<u8>, RejectReason> {
        let read = read::read(
            &self.plan,
            self.message,
            json.as_bytes(),
            Options::default(),
        );
        read.map(|read| read.wire)
    }

    fn write(&self, wire: &[u8]) -> String {
        let mut out = Vec::new();
        write::write(&self.plan, self.message, wire, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn reference_read(&self, json: &str) -> Option<DynamicMessage> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let options = DeserializeOptions::new().deny_unknown_fields(true);
        let message =
            DynamicMessage::deserialize_with_options(self.reference.clone(), &mut reader, &options);
        message.ok().filter(|_| reader.end().is_ok())
    }

    fn reference_decode(&self, wire: &[u8]) -> DynamicMessage {
        DynamicMessage::decode(self.reference.clone(), wire).unwrap()
    }
}

/// Normalizes numbers: `5` and `5.0` are one number in JSON.
fn normalized(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) => number.as_f64().unwrap().into(),
        Value::Array(list) => list.into_iter().map(normalized).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, normalized(value)))
            .collect(),
        other => other,
    }
}
