//! Names of stored resources.

use std::{fmt, sync::Arc};

use bellwether_language::text::{
    MARKS_MAX, Visibility, chars_with_visibility, is_hidden, joins_characters,
};
use unicode_normalization::char::is_combining_mark;

pub const NAME_CHARACTERS_MAX: usize = 100;

const PERSON_PREFIX: &str = "oidc:";

/// Prefix of contacts' names where they appear alongside clients.
const CONTACT_PREFIX: &str = "contact:";

/// A name: 1 to 100 letters with their marks, digits, `.`, `_`, `-` and inner spaces. Compared byte
/// by byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(contact) = text.strip_prefix(CONTACT_PREFIX) {
            return match name_error(contact) {
                Some(message) => Err(message),
                None => Ok(Self(text.into())),
            };
        }
        if let Some(person) = text.strip_prefix(PERSON_PREFIX).and_then(Self::for_user) {
            return Ok(person);
        }
        let parts = text.split_once(':');
        let parts = parts.filter(|(mapping, _)| name_error(mapping).is_none());
        if let Some((mapping, user)) = parts
            && let Some(user) = Self::for_receiver(&Self(mapping.into()), user)
        {
            return Ok(user);
        }
        match name_error(text) {
            Some(message) => Err(message),
            None => Ok(Self(text.into())),
        }
    }

    /// Returns the name of a user who signed in: `oidc:` and the provider's name for the user,
    /// which no client can have. `None` if it contains unprintable characters or is too long.
    pub fn for_user(text: &str) -> Option<Self> {
        let length = PERSON_PREFIX.len() + text.chars().count();
        (is_user_name(text) && length <= NAME_CHARACTERS_MAX)
            .then(|| Self(format!("{PERSON_PREFIX}{text}").into()))
    }

    /// Returns the name of a receiver's user for use alongside clients: the name of the mapping,
    /// a colon and the receiver's name for the user, which no client can have. `None` if it
    /// contains unprintable characters or is too long, or if it could be another user or a contact.
    pub fn for_receiver(mapping: &Self, user: &str) -> Option<Self> {
        let is_reserved = |prefix: &str| prefix.strip_suffix(':') == Some(mapping.as_str());
        let is_own = !is_reserved(PERSON_PREFIX) && !is_reserved(CONTACT_PREFIX);
        let is_short = user.chars().count() <= NAME_CHARACTERS_MAX;
        (is_own && is_short && is_user_name(user)).then(|| Self(format!("{mapping}:{user}").into()))
    }

    /// Returns the name of a contact for use alongside clients and users: `contact:` and the name,
    /// which no client or user can have.
    #[must_use]
    pub fn for_contact(contact: &Self) -> Self {
        Self(format!("{CONTACT_PREFIX}{contact}").into())
    }

    /// Parses the name of a new resource, which must not be mistaken for part of a path, or for the
    /// name of a user or contact.
    pub fn parse_new(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.chars().all(|c| matches!(c, '.' | ' ')) {
            return Err("contains only dots and spaces; use another name".into());
        }
        if text.contains(':') {
            return Err("contains ':', which is reserved for users and contacts".into());
        }
        Self::parse(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_user_name(text: &str) -> bool {
    let is_shown = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ';
    let is_seen = || chars_with_visibility(text).all(|(_, seen)| seen == Visibility::Plain);
    !text.is_empty() && text.trim() == text && text.chars().all(is_shown) && is_seen()
}

fn name_error(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("is required: 1 to 100 letters, digits, `.`, `_`, `-` or inner spaces".into());
    }
    let count = text.chars().count();
    if count > NAME_CHARACTERS_MAX {
        return Some(format!(
            "has {count} characters; the limit is {NAME_CHARACTERS_MAX}"
        ));
    }
    if text.starts_with(' ') || text.ends_with(' ') {
        return Some("starts or ends with a space".into());
    }
    character_error(text)
}

fn character_error(text: &str) -> Option<String> {
    let (mut before, mut marks) = (None, 0);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if is_hidden(c) && !joins_characters(before, c, characters.peek().copied()) {
            let number = u32::from(c);
            return Some(format!(
                "contains U+{number:04X}, which is invisible; allowed are letters, digits, `.`, `_`, `-` and \
                 inner spaces"
            ));
        } else if c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ') {
            marks = 0;
        } else if is_combining_mark(c) {
            marks += 1;
            let stands = before.is_some_and(|before: char| {
                before.is_alphabetic() || is_combining_mark(before) || is_joiner(before)
            });
            if !stands {
                return Some(format!(
                    "contains the combining mark {c:?} without a letter before it"
                ));
            }
            if marks > MARKS_MAX {
                return Some(format!(
                    "contains more than {MARKS_MAX} combining marks after a letter"
                ));
            }
        } else if !is_joiner(c) {
            return Some(format!(
                "contains {c:?}; allowed are letters, digits, `.`, `_`, `-` and inner spaces"
            ));
        }
        before = Some(c);
    }
    None
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_name_of_only_dots_is_invalid() {
        let good = [
            "CPU \u{437}\u{430}\u{433}\u{440}\u{443}\u{437}\u{43a}\u{430}",
            "disk-\u{434}\u{438}\u{441}\u{43a}",
            "\u{65e5}\u{672c}\u{8a9e}\u{306e}db",
            "p\u{430}ypal",
            "a.b",
        ];
        for name in good {
            assert!(Name::parse_new(name).is_ok(), "{name}");
        }
        for name in [".", "..", "...", ". ."] {
            assert!(Name::parse_new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn contact_names_never_collide_with_clients_or_users() {
        for text in ["admin", &"a".repeat(NAME_CHARACTERS_MAX)] {
            let contact = Name::for_contact(&Name::parse(text).unwrap());
            assert_eq!(contact.as_str(), format!("contact:{text}"));
            assert_eq!(Name::parse(contact.as_str()).as_ref(), Ok(&contact));
            assert!(Name::parse_new(contact.as_str()).is_err(), "{text}");
        }
        for text in ["contact:", "contact: a", "contact:a/b", "contact:oidc:a"] {
            assert!(Name::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn receiver_user_is_never_a_client_user_or_contact() {
        let name = |text: &str| Name::parse(text).unwrap();
        let ana = Name::for_receiver(&name("jira"), "Ana B. <ana@example.org>").unwrap();
        assert_eq!(ana.as_str(), "jira:Ana B. <ana@example.org>");
        assert_eq!(Name::parse(ana.as_str()).as_ref(), Ok(&ana));
        assert!(Name::parse_new(ana.as_str()).is_err());
        for mapping in ["oidc", "contact"] {
            assert_eq!(Name::for_receiver(&name(mapping), "ana"), None);
        }
        for user in ["", " ana", "a\nb", "a\u{202e}b", &"a".repeat(101)] {
            assert_eq!(Name::for_receiver(&name("jira"), user), None, "{user:?}");
        }
    }

    #[test]
    fn names_allow_every_script_but_no_invisible_characters() {
        let good = [
            "disk-full",
            "a.b_c 1",
            "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "\u{e17}\u{e35}\u{e48}",
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            "e\u{301}te\u{301}",
        ];
        for name in good {
            assert_eq!(Name::parse(name).map(|it| it.to_string()), Ok(name.into()));
        }
        let bad = [
            "",
            " a",
            "a/b",
            "\u{301}a",
            "-\u{301}",
            "a\u{200d}b",
            "a\u{200c}b",
            "a\u{202e}b",
            "a\u{301}\u{301}\u{301}\u{301}\u{301}",
            "a\nb",
            "\u{3164}",
            "a\u{3164}",
            "a\u{115f}b",
            "a\u{ffa0}b",
            "a\u{34f}b",
            "\u{1820}\u{180b}",
            "\u{1780}\u{17b4}",
            "a\u{1bca0}b",
            "a\u{1d173}b",
            "a\u{e0101}b",
        ];
        for name in bad {
            assert!(Name::for_user(name).is_none() || name == "a/b", "{name:?}");
            assert!(Name::parse(name).is_err(), "{name:?}");
        }
        let long = "a".repeat(101);
        let message = Name::parse(&long).unwrap_err();
        assert_eq!(message, "has 101 characters; the limit is 100");
    }
}
