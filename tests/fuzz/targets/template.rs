//! A template is parsed, or refused with a position. It renders within its limit, and its data
//! cannot break out of the context in which it is inserted.
#![no_main]

use std::sync::LazyLock;

use bellwether_backend::{
    domain::TemplateLanguage,
    template::{AnyTemplate, Budget, Escape, Template, Variables},
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const BYTES_MAX: usize = 1 << 14;

/// Texts that would break out of HTML and of a JSON string. They contain `\u{1}`, which no template
/// can produce itself.
static DATA: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "a": "\u{1}<script>\"'&\\\n", "b": true, "c": false, "n": 1.5, "e": "",
        "list": [{"a": "x"}, {"a": "\u{1}</b>"}, {}], "object": {"a": {"b": "\u{1}\""}},
        "event": {"name": "disk", "dimensions": {"host": "\u{1}\"web"}},
    })
});

/// [`DATA`] as variables of Jinja templates.
static VARIABLES: LazyLock<Variables> = LazyLock::new(|| Variables::new(DATA.clone()));

fn budget() -> Budget {
    Budget::new(10_000, 10_000, BYTES_MAX)
}

fuzz_target!(|text: &str| {
    if let Ok(template) = AnyTemplate::parse(TemplateLanguage::Jinja, text) {
        for escape in [Escape::None, Escape::Html, Escape::Json] {
            let out = template.render(&VARIABLES, escape, &mut budget());
            assert!(out.map_or(0, |out| out.len()) <= BYTES_MAX);
        }
    }
    let template = match Template::parse(text) {
        Ok(template) => template,
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
            return;
        }
    };
    for escape in [Escape::None, Escape::Html, Escape::Json] {
        if let Ok(out) = template.render(&DATA, escape, &mut budget()) {
            assert!(out.len() <= BYTES_MAX);
        }
    }
    // Authors may insert raw values. Any other value must not end the text that contains it.
    let raw = text.contains("{{{") || text.contains('&') || text.contains("{{=");
    if !raw && !text.contains('\u{1}') && !text.contains('=') {
        let html = template
            .render(&DATA, Escape::Html, &mut budget())
            .unwrap_or_default();
        assert!(!html.contains("\u{1}<"), "{html}");
        let json = template
            .render(&DATA, Escape::Json, &mut budget())
            .unwrap_or_default();
        assert!(!json.contains('\u{1}'), "{json}");
    }
});
