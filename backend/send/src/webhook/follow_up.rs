//! Selects the request for a message: the main one, or the one for later messages of a thread.

use crate::{
    SettingsChecker,
    domain::{
        Content, NO_SNIPPETS,
        destination::{FollowUp, KeptValues, Webhook},
    },
    template::{AnyTemplate, KEPT_VALUES},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Main,
    Update,
    Clear,
}

impl RequestKind {
    pub(super) fn follow_up(self, webhook: &Webhook) -> Option<&FollowUp> {
        match self {
            Self::Main => None,
            Self::Update => webhook.on_update.as_deref(),
            Self::Clear => webhook.on_clear.as_deref(),
        }
    }
}

/// Selects the request for a message. `kept` is `None` for the first message of a thread. In reduced
/// form, a change is sent like the first message if `goneClause` is set.
///
/// # Errors
/// Returns the name of a kept value that `onClear` uses and the thread does not have.
pub(super) fn select<'a>(
    webhook: &'a Webhook,
    content: &Content,
    kept: Option<&KeptValues>,
    is_reduced: bool,
) -> Result<RequestKind, &'a str> {
    let missing = |it: &FollowUp| {
        let mut names = webhook.keep.keys().map(String::as_str);
        names.find(|name| uses_value(it, name) && !kept.is_some_and(|kept| kept.has(name)))
    };
    if let (Some(on_clear), true) = (&webhook.on_clear, content.is_closing()) {
        return missing(on_clear).map_or(Ok(RequestKind::Clear), Err);
    }
    let is_later = kept.is_some() && content.digest.is_none();
    let on_update = webhook.on_update.as_ref().filter(|_| is_later);
    let is_update =
        on_update.is_some_and(|it| missing(it).is_none() && !(is_reduced && it.gone.is_some()));
    Ok(if is_update {
        RequestKind::Update
    } else {
        RequestKind::Main
    })
}

fn uses_value(request: &FollowUp, name: &str) -> bool {
    let texts = [&request.url, &request.payload];
    texts.iter().any(|text| names_value(text, name))
}

/// Whether a template contains `kept.NAME`. A saved template contains each name that it uses; see
/// [`check_names`].
fn names_value(template: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_used = |rest: &str| {
        let after = rest.strip_prefix(name);
        after.is_some_and(|after| !after.starts_with(is_word))
    };
    template.split(KEPT_VALUES).skip(1).any(is_used)
}

/// Checks that each template contains the kept values that it uses, so that a message without them
/// is recognized without rendering.
pub(super) fn check_names(field: &str, request: &FollowUp, checks: &mut SettingsChecker<'_>) {
    for (part, template, snippets) in [
        ("url", &request.url, &NO_SNIPPETS),
        ("payload", &request.payload, checks.snippets),
    ] {
        // Invalid templates are reported with the other templates.
        let parsed = AnyTemplate::parse_with(checks.language, template, snippets).ok();
        let mut used = parsed.iter().flat_map(|it| it.names_under(KEPT_VALUES));
        if let Some(name) = used.find(|name| !names_value(template, name)) {
            let message = format!(
                "uses `kept.{name}` through an included template or in another spelling; it must \
                 contain `kept.{name}`"
            );
            checks.add(&format!("{field}.{part}"), message);
        }
    }
}
