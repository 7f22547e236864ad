//! Checks common to the settings of all types.

use url::Url;

use super::{DestinationType, egress::EgressGuard};
use crate::{
    domain::{DestinationKind, NO_SNIPPETS, Secret, Snippets, TemplateLanguage},
    error::Violation,
    limits::{SETTING_BYTES_MAX, URL_CHARACTERS_MAX},
    template::{AnyTemplate, KEPT_VALUES},
};

#[derive(Debug)]
pub(crate) struct SettingsChecker<'a> {
    kind: &'static str,
    pub(super) language: TemplateLanguage,
    guard: Option<&'a EgressGuard>,
    pub(super) snippets: &'a Snippets,
    pub(super) found: Vec<Violation>,
}

impl<'a> SettingsChecker<'a> {
    pub(super) fn new(
        kind: &DestinationKind,
        language: TemplateLanguage,
        (guard, snippets): (Option<&'a EgressGuard>, &'a Snippets),
    ) -> Self {
        Self {
            kind: kind.as_str(),
            language,
            guard,
            snippets,
            found: Vec::new(),
        }
    }

    fn path(&self, field: &str) -> String {
        format!("type.{}.{field}", self.kind)
    }

    pub(super) fn add(&mut self, field: &str, description: impl Into<String>) {
        self.found
            .push(Violation::new(self.path(field), description));
    }

    pub(super) fn check_templates(&mut self, settings: &impl DestinationType) {
        for (field, source) in settings.templates() {
            // A secret is sent only to the address that it was entered for.
            let is_fixed = field.starts_with("headers[")
                || ["url", "secretUrl", "onClear.url", "onUpdate.url"].contains(&&*field);
            let snippets = if is_fixed {
                &NO_SNIPPETS
            } else {
                self.snippets
            };
            let template = match AnyTemplate::parse_with(self.language, source, snippets) {
                Ok(template) => template,
                Err(error) => {
                    self.add(&field, error.to_string());
                    continue;
                }
            };
            if let Err(error) = template.check_patterns() {
                self.add(&field, error.to_string());
            }
            let mut kept = template.names_under(KEPT_VALUES).into_iter();
            if let Some(unknown) = kept.find(|name| !settings.keeps(name)) {
                self.add(
                    &field,
                    format!("uses `kept.{unknown}`, which no entry of `keep` defines"),
                );
            }
        }
    }

    pub(super) fn check_required(&mut self, field: &str, text: &str) {
        if text.trim().is_empty() {
            self.add(field, "is required");
        }
    }

    pub(super) fn check_setting(&mut self, field: &str, text: &str) {
        self.check_required(field, text);
        self.check_one_line(field, text);
    }

    /// Checks a required secret, which is sent in a header, a form or a JSON text.
    pub(super) fn check_secret(&mut self, field: &str, secret: &Secret) {
        self.check_setting(field, secret.reveal());
    }

    pub(super) fn check_one_line(&mut self, field: &str, text: &str) {
        if text.len() > SETTING_BYTES_MAX {
            let bytes = text.len();
            self.add(
                field,
                format!("is {bytes} bytes; the limit is {SETTING_BYTES_MAX}"),
            );
        } else if text.chars().any(char::is_control) {
            self.add(field, "contains control characters or line breaks");
        }
    }

    /// Checks a target URL. Violations do not repeat the URL, because it may be secret.
    pub(super) fn check_url(&mut self, field: &str, text: &str) {
        if text.is_empty() {
            return self.add(field, "is required: an `http` or `https` address");
        }
        let characters = text.chars().count();
        if characters > URL_CHARACTERS_MAX {
            return self.add(
                field,
                format!("has {characters} characters; the limit is {URL_CHARACTERS_MAX}"),
            );
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return self.add(field, "contains white space or control characters");
        }
        let url = match Url::parse(text) {
            Ok(url) => url,
            Err(error) => return self.add(field, format!("is not a valid URL: {error}")),
        };
        if !matches!(url.scheme(), "http" | "https") {
            self.add(field, "does not start with `http://` or `https://`");
        } else if url.host_str().is_none_or(str::is_empty) {
            self.add(field, "names no host");
        } else if !url.username().is_empty() || url.password().is_some() {
            self.add(
                field,
                "contains a user name or password; send credentials in a header",
            );
        } else if let Some(Err(refusal)) = self.guard.map(|guard| guard.check_url(text)) {
            self.add(field, format!("is blocked: {refusal}"));
        }
    }
}
