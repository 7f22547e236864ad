//! URLs with variables in their path and query.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _};

use super::is_template;
use crate::{
    destination::{SettingsChecker, normalized_address},
    domain::{TemplateLanguage, destination::ValueMap},
    limits::URL_CHARACTERS_MAX,
    message::{Facts, cut, sample},
    template::{AnyTemplate, Budget, Escape, Variables},
};

const WHAT: &str = "the webhook's url";
const QUOTED_CHARACTERS_MAX: usize = 200;
const FILLED_BYTES_MAX: usize = 8 * 1024;

/// Returns everything that determines the target of a URL: the URL, and the custom variables that
/// it uses. A template that accesses them other than by name may use any of them.
pub(super) fn target_key(
    url: &str,
    language: TemplateLanguage,
    values: &BTreeMap<String, ValueMap>,
) -> String {
    let mut whole = normalized_address(url);
    if is_template(url) {
        let _infallible = write!(whole, " in {language:?}");
        let by_name = |(at, word): (usize, &str)| url[at + word.len()..].starts_with('.');
        let asks_for_any = !url.match_indices("values").all(by_name);
        for (name, value) in values {
            if asks_for_any || url.contains(name.as_str()) {
                let _infallible = write!(whole, " {name}={value:?}");
            }
        }
    }
    whole
}

/// Checks a URL: the part before its path must be the same for every message.
pub(super) fn check(field: &str, url: &str, checks: &mut SettingsChecker<'_>) {
    if !is_template(url) {
        return checks.check_url(field, url);
    }
    if fixed_host(url).is_none() {
        return checks.add(
            field,
            "has variables before its path; only the path and query may contain them",
        );
    }
    if url.chars().count() > URL_CHARACTERS_MAX {
        return checks.check_url(field, url);
    }
    // Template errors are reported by the check of all templates.
    let Ok(template) = AnyTemplate::parse(checks.language, url) else {
        return;
    };
    let quoted = match field {
        "secretUrl" => String::new(),
        _ => format!(
            " (a sample event for `{}`)",
            cut::truncate_chars(url, QUOTED_CHARACTERS_MAX)
        ),
    };
    if template.has_raw() {
        checks.add(
            field,
            "contains `{{{x}}}` or `{{&x}}`; URLs allow only escaped values",
        );
    }
    let sample = template.render(
        &sample::sample_variables(),
        Escape::Percent,
        &mut Budget::for_message(),
    );
    let found = checks.found.len();
    match sample {
        Ok(filled) => checks.check_url(field, &filled),
        Err(error) => checks.add(field, format!("cannot be rendered: {error}")),
    }
    for violation in &mut checks.found[found..] {
        violation.description.push_str(&quoted);
    }
}

/// Returns host and port of a URL template, if they precede any template syntax: template comments
/// may contain a `/` too.
pub(super) fn fixed_host(url: &str) -> Option<&str> {
    let tags = ["{{", "{%", "{#"].map(|tag| url.find(tag));
    let fixed = &url[..tags.into_iter().flatten().min().unwrap_or(url.len())];
    let scheme = ["https://", "http://"].into_iter().find(|scheme| {
        let start = fixed.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })?;
    // Browsers and this service treat `\` like `/` here.
    let (host, _path) = fixed[scheme.len()..].split_once(['/', '?', '#', '\\'])?;
    (!host.is_empty()).then_some(host)
}

/// Renders the URL for a message; `None` if it is not a template.
pub(super) fn render_url(url: &str, facts: &mut Facts<'_>) -> Option<String> {
    if !is_template(url) {
        return None;
    }
    // Reject URLs stored before this check existed.
    fixed_host(url)?;
    let filled = facts.fill_part(WHAT, url, Escape::Percent);
    if let Some(filled) = filled {
        if filled.len() <= FILLED_BYTES_MAX {
            return Some(filled);
        }
        let bytes = filled.len();
        facts.warn(
            WHAT,
            &format!("is {bytes} bytes without its variables; the limit is {FILLED_BYTES_MAX}"),
        );
    }
    let template = AnyTemplate::parse(facts.language, url).ok();
    let blank = template.as_ref().map(render_without_variables);
    Some(blank.unwrap_or(Cow::Borrowed(url)).into_owned())
}

fn render_without_variables(template: &AnyTemplate) -> Cow<'static, str> {
    let nothing = Variables::default();
    let blank = template.render(&nothing, Escape::Percent, &mut Budget::without_variables());
    blank.unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_host_precedes_any_template_part() {
        let fixed = [
            ("https://a.example/{{event.name}}", "a.example"),
            ("HTTP://a.example:8080?x={{event.name}}", "a.example:8080"),
            ("https://a.example/{# / #}{{event.name}}", "a.example"),
            ("https://a.example#{% if clear %}x{% endif %}", "a.example"),
        ];
        for (url, host) in fixed {
            assert_eq!(fixed_host(url), Some(host), "{url}");
        }
        let open = [
            "http://{# / #}{{event.dimensions.host}}/",
            "http://{% if clear %}/{% endif %}{{event.name}}/",
            "http://{{! / }}{{event.name}}/",
            "http://a{# / #}.{{event.name}}/",
            "http:///{{event.name}}.example/",
            "http://\\{{event.name}}/",
            "http://{{event.name}}",
            "http://a.example{{event.name}}/",
            "https://user{{tenant}}@a.example/",
            "http:/{{event.name}}/",
            "{{event.name}}://a.example/",
            "{# https://a.example/ #}http://{{event.name}}/",
            "ftp://a.example/{{event.name}}",
        ];
        for url in open {
            assert_eq!(fixed_host(url), None, "{url}");
        }
    }
}
