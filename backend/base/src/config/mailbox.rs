//! Email addresses. The same rules apply to the service's settings, to stored destinations, and
//! when a mail is sent.

use lettre::{Address, message::Mailbox};

use crate::limits::MAIL_NAME_CHARACTERS_MAX;

const SHOWN_CHARACTERS_MAX: usize = 100;

/// Parses comma-separated mailboxes; domains are converted to ASCII.
///
/// # Errors
///
/// Returns a description of the first invalid mailbox, with the expected form.
pub fn parse_mailboxes(text: &str) -> Result<Vec<Mailbox>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    split_mailboxes(text).map(parse_mailbox).collect()
}

/// Parses a mailbox such as `ops@example.com` or `Ops <ops@example.com>`.
pub fn parse_mailbox(text: &str) -> Result<Mailbox, String> {
    let wrong = || {
        let shown: String = text.trim().chars().take(SHOWN_CHARACTERS_MAX).collect();
        let shown = shown.escape_debug();
        format!(
            "`{shown}` is not an email address; expected `ops@example.com` or `Ops <ops@example.com>`, \
             several separated by commas"
        )
    };
    if text.chars().any(char::is_control) {
        return Err(wrong());
    }
    // Only an address without a name may have a domain in brackets.
    let text = text.trim();
    let alone = |_unread| text.parse::<Address>().map(Mailbox::from);
    let read: Mailbox = text.parse().or_else(alone).map_err(|_unread| wrong())?;
    let name = read.name.as_deref().unwrap_or_default();
    let characters = name.chars().count();
    if characters > MAIL_NAME_CHARACTERS_MAX {
        return Err(format!(
            "the name of `{}` has {characters} characters; the limit is {MAIL_NAME_CHARACTERS_MAX}",
            read.email
        ));
    }
    let domain = read.email.domain();
    let ascii = if domain.is_ascii() {
        domain.to_ascii_lowercase()
    } else {
        idna::domain_to_ascii(domain).map_err(|_no_domain| wrong())?
    };
    let email = Address::new(read.email.user(), ascii).map_err(|_no_address| wrong())?;
    Ok(Mailbox::new(read.name, email))
}

fn split_mailboxes(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c| {
        let separates = c == ',' && !is_quoted;
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        separates
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailboxes_parse_display_names_and_idn_domains() {
        let cases: [(&str, &[&str]); 11] = [
            ("", &[]),
            ("ops@example.com", &["ops@example.com"]),
            (
                " a@example.com ,b@example.com",
                &["a@example.com", "b@example.com"],
            ),
            ("Ops <ops@example.com>", &["ops@example.com"]),
            (
                "\"Doe, Jane\" <jane@example.com>, bob@example.com",
                &["jane@example.com", "bob@example.com"],
            ),
            (r#""a \", b" <c@example.com>"#, &["c@example.com"]),
            ("Ops@M\u{dc}LLER.Example", &["Ops@xn--mller-kva.example"]),
            ("Ops@Example.COM", &["Ops@example.com"]),
            ("ops@[192.0.2.1]", &["ops@[192.0.2.1]"]),
            ("J\u{fc}rgen <j@example.com>", &["j@example.com"]),
            ("m\u{fc}ller@example.com", &["m\u{fc}ller@example.com"]),
        ];
        for (text, expected) in cases {
            let read = parse_mailboxes(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let read: Vec<_> = read.iter().map(|it| it.email.to_string()).collect();
            assert_eq!(read, expected, "{text}");
        }
        let named = parse_mailboxes("\"Doe, Jane\" <jane@example.com>").unwrap();
        assert_eq!(named[0].name.as_deref(), Some("Doe, Jane"));
    }

    #[test]
    fn errors_quote_the_invalid_address() {
        for (text, named) in [
            ("ops", "`ops`"),
            ("a@example.com,", "``"),
            (
                "a@example.com b@example.com",
                "`a@example.com b@example.com`",
            ),
            (
                "a@example.com; b@example.com",
                "`a@example.com; b@example.com`",
            ),
            ("a@example.com\r\nRCPT TO:<b@example.com>", "\\r\\nRCPT"),
            ("Ops\n<a@example.com>", "Ops\\n"),
            ("\"open <a@example.com>", "`\\\"open"),
            ("Ops <a@example.com", "`Ops <a@example.com`"),
            ("a@ex ample.com", "`a@ex ample.com`"),
            ("a@example.com>", "`a@example.com>`"),
            ("<a@example.com> b", "`<a@example.com> b`"),
            ("@example.com", "`@example.com`"),
            ("a@-x-.\u{fffd}", "`a@-x-.\u{fffd}`"),
        ] {
            let error = parse_mailboxes(text).expect_err(text);
            assert!(error.contains(named), "{text}: {error}");
            assert!(error.contains("is not an email address"), "{text}: {error}");
        }
        let error = parse_mailboxes(&"x".repeat(10_000)).expect_err("no address");
        assert!(error.len() < 300, "{error}");
    }
}
