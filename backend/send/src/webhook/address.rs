//! URLs with variables in their path and query.

use std::{borrow::Cow, fmt::Write as _};

use url::{Position, Url};

use super::is_template;
use crate::{
    SettingsChecker,
    domain::{TemplateLanguage, destination::Webhook},
    limits::URL_CHARACTERS_MAX,
    message::{Facts, cut, sample},
    normalized_address,
    template::{AnyTemplate, Budget, Escape, Variables},
};

const WHAT: &str = "the webhook's url";
const QUOTED_CHARACTERS_MAX: usize = 200;
const FILLED_BYTES_MAX: usize = 8 * 1024;

/// Returns everything that determines the target of a URL: the URL, and the custom variables that
/// it uses. A template that accesses them other than by name may use any of them.
pub(super) fn target_key(url: &str, language: TemplateLanguage, webhook: &Webhook) -> String {
    let mut whole = normalized_address(url);
    if is_template(url) {
        let _infallible = write!(whole, " in {language:?}");
        let by_name = |(at, word): (usize, &str)| url[at + word.len()..].starts_with('.');
        let asks_for_any = !url.match_indices("values").all(by_name);
        if url.contains("kept") {
            let _infallible = write!(whole, " keeping {:?}", webhook.keep);
        }
        for (name, value) in &webhook.values {
            if asks_for_any || url.contains(name.as_str()) {
                let _infallible = write!(whole, " {name}={value:?}");
            }
        }
    }
    whole
}

/// Returns the URL of a request for later messages: its own one, which may be relative to the
/// webhook's address, or else that address.
pub(super) fn resolve<'a>(address: &'a str, own: &'a str) -> Cow<'a, str> {
    match own {
        "" => address.into(),
        _ if is_relative(own) => join(address, own).into(),
        _ => own.into(),
    }
}

pub(super) fn is_relative(url: &str) -> bool {
    url.starts_with("./") || url.starts_with("../")
}

/// Appends a relative URL to the path of an address. The query stays, unless the relative URL has
/// one.
fn join(address: &str, relative: &str) -> String {
    let address = address.split('#').next().unwrap_or_default();
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let (mut base, mut rest) = (path.trim_end_matches('/'), relative);
    let host_bytes = origin(address).len();
    loop {
        if let Some(below) = rest.strip_prefix("./") {
            rest = below;
        } else if let Some(above) = rest.strip_prefix("../") {
            let parent = base.rfind('/').filter(|end| *end >= host_bytes);
            base = parent.map_or(base, |end| &base[..end]);
            rest = above;
        } else {
            break;
        }
    }
    if query.is_empty() || rest.contains('?') {
        return format!("{base}/{rest}");
    }
    format!("{base}/{rest}?{query}")
}

/// Checks a URL: the part before its path must be the same for every message. `quoted` is the text
/// to repeat in violations; empty if it is secret.
pub(super) fn check(field: &str, url: &str, quoted: &str, checks: &mut SettingsChecker<'_>) {
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
    let quoted = match quoted {
        "" => String::new(),
        text => format!(
            " (a sample event for `{}`)",
            cut::truncate_chars(text, QUOTED_CHARACTERS_MAX)
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

/// Returns scheme, host and port of a URL or a URL template; empty if there are none.
pub(super) fn origin(url: &str) -> String {
    let fixed = url.split(['{', '?', '#']).next().unwrap_or_default();
    let url = Url::parse(fixed).ok();
    url.map_or_else(String::new, |url| url[..Position::BeforePath].to_owned())
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
    fn relative_urls_extend_the_path_of_the_address() {
        let cases = [
            (
                "https://a.example/api/1",
                "./x/{{kept.id}}",
                "https://a.example/api/1/x/{{kept.id}}",
            ),
            (
                "https://a.example/api/1/",
                "./x",
                "https://a.example/api/1/x",
            ),
            (
                "https://a.example/bot1/send?k=1#f",
                "../edit",
                "https://a.example/bot1/edit?k=1",
            ),
            (
                "https://a.example/send?k=1",
                "../edit?v=2",
                "https://a.example/edit?v=2",
            ),
            (
                "https://a.example:8443",
                "../../x",
                "https://a.example:8443/x",
            ),
            ("https://a.example/x", "../../../y", "https://a.example/y"),
            (
                "https://a.example/x",
                "https://b.example/y",
                "https://b.example/y",
            ),
            ("https://a.example/x", "", "https://a.example/x"),
        ];
        for (address, own, expected) in cases {
            assert_eq!(resolve(address, own), expected, "{address} {own}");
        }
    }

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
