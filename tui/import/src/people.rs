//! Import of people: each person becomes a contact with an email destination.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::imported::ImportOutput;

const VARIABLE_CHARACTERS_MAX: usize = 500;

pub(crate) struct Person<'a> {
    pub(crate) path: &'a str,
    /// Keys that other parts of the files use for the person: the id and unique names.
    pub(crate) keys: Vec<String>,
    pub(crate) name: &'a str,
    pub(crate) time_zone: Option<String>,
    pub(crate) mail: Option<String>,
    pub(crate) variables: Map<String, Value>,
}

/// Sets the email address of a person. Only the first one is used.
pub(crate) fn add_mail(
    path: &str,
    address: Option<String>,
    mail: &mut Option<String>,
    imported: &mut ImportOutput,
) {
    match (address, mail) {
        (Some(address), Some(mail)) if address != *mail => {
            let why = "is another email address; add a destination and a method for it";
            imported.record_omission(path, why);
        }
        (address, mail) => *mail = mail.take().or(address),
    }
}

/// Adds a phone number as a variable. Only the first number of a kind is used.
pub(crate) fn add_number(
    path: &str,
    variable: &str,
    number: &str,
    variables: &mut Map<String, Value>,
    imported: &mut ImportOutput,
) {
    if variables.contains_key(variable) {
        let why = format!("the first number becomes the variable `{variable}`");
        imported.record_omission(path, &why);
        return;
    }
    variables.insert(variable.to_owned(), json!(number));
    let what = format!(
        "becomes the variable `{variable}`; add a method with a destination that uses \
         `{{{{contact.{variable}}}}}`"
    );
    imported.add_note(path, &what);
}

#[derive(Default)]
pub(crate) struct ImportedContacts {
    contacts: BTreeMap<String, String>,
}

impl ImportedContacts {
    pub(crate) fn add(&mut self, person: Person<'_>, imported: &mut ImportOutput) {
        let Some(mail) = person.mail.filter(|mail| mail.contains('@')) else {
            let why = "has no email address; a contact needs a method";
            imported.record_omission(person.path, why);
            return;
        };
        let destination = imported.unique_name("destination", &format!("mail {}", person.name));
        imported.add(
            "destination",
            json!({
                "name": destination, "description": person.path, "type": {"email": {"to": mail}},
            }),
        );
        let mut variables = person.variables;
        variables.insert("mail".to_owned(), json!(mail));
        for value in variables.values_mut() {
            let text = value.as_str().unwrap_or_default().chars();
            *value = json!(text.take(VARIABLE_CHARACTERS_MAX).collect::<String>());
        }
        let contact = imported.unique_name("contact", person.name);
        let mut body = json!({
            "name": contact, "description": person.path,
            "methods": [{"destinationName": destination, "variables": variables}],
        });
        if let Some(zone) = person.time_zone.filter(|it| !it.is_empty()) {
            body["timeZone"] = json!(zone);
        }
        imported.add("contact", body);
        for key in person.keys {
            self.contacts.insert(key, contact.clone());
        }
    }

    pub(crate) fn find<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Option<String> {
        keys.into_iter()
            .find_map(|key| self.contacts.get(key).cloned())
    }
}
