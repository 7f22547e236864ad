//! Included templates in both languages, and their limits.

use serde_json::json;

use crate::{
    domain::{Snippets, TemplateLanguage},
    limits::{SNIPPET_BYTES_MAX, SNIPPETS_BYTES_MAX, SNIPPETS_MAX, TEMPLATE_BYTES_MAX},
    message::check_snippets,
    template::{AnyTemplate, Budget, Escape, Variables},
};

use TemplateLanguage::{Jinja, Mustache};

fn snippets(pairs: &[(&str, &str)]) -> Snippets {
    let pairs = pairs.iter();
    pairs
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

fn render_with(language: TemplateLanguage, source: &str, snippets: &Snippets) -> String {
    let data = json!({
        "event": {"name": "<disk>"},
        "group": {"events": [{"name": "a"}, {"name": "b"}]},
    });
    let template = AnyTemplate::parse_with(language, source, snippets).unwrap();
    assert_eq!(template.unknown_variables(), [""; 0], "{source}");
    let budget = &mut Budget::for_message();
    let text = template.render(&Variables::new(data), Escape::Html, budget);
    text.unwrap()
}

#[test]
fn included_templates_are_rendered_where_they_are_included() {
    let snippets = snippets(&[
        ("name", "{{event.name}}\n"),
        ("row", "[{{name}}]"),
        ("twice", "{{> name}}/{{> name}}"),
        ("crlf", "x\r\n"),
        (
            "loop",
            "{% for it in group.events %}{{ it.name }}{% if not loop.last %}, {% endif %}{% endfor %}",
        ),
        ("set", "{% set x = 'inner' %}{{ x }}"),
        ("nested", "({% include 'name' %})"),
    ]);
    let cases = [
        (Mustache, "a {{> name}} b", "a &lt;disk&gt; b"),
        (Mustache, "a\n{{>name}}\nb", "a\n&lt;disk&gt;\nb"),
        (
            Mustache,
            "{{#group.events}}{{> row}}{{/group.events}}",
            "[a][b]",
        ),
        (
            Mustache,
            "{{> twice}}{{> crlf}}",
            "&lt;disk&gt;/&lt;disk&gt;x",
        ),
        (Jinja, "a {% include \"name\" %} b", "a &lt;disk&gt; b"),
        (Jinja, "a {%- include 'name' -%} b", "a&lt;disk&gt;b"),
        (Jinja, "{% include 'loop' %}", "a, b"),
        (
            Jinja,
            "{% set x = 'outer' %}{% include 'set' %} {{ x }}",
            "inner outer",
        ),
        (Jinja, "{% include 'nested' %}", "(&lt;disk&gt;)"),
        (
            Jinja,
            "{% for it in group.events %}{% include 'name' %}{{ it.name }}{% endfor %}",
            "&lt;disk&gt;a&lt;disk&gt;b",
        ),
        (
            Jinja,
            "{% raw %}{% include 'name' %}{% endraw %}{# {% include 'x' %} #}{{ '{% include' }}",
            "{% include 'name' %}{% include",
        ),
    ];
    for (language, source, expected) in cases {
        assert_eq!(
            render_with(language, source, &snippets),
            expected,
            "{source}"
        );
    }
}

#[test]
fn included_variables_are_checked_and_reported() {
    let snippets = snippets(&[("own", "{{values.priority}}{{event.sumary}}")]);
    for (language, source) in [(Mustache, "{{> own}}"), (Jinja, "{% include 'own' %}")] {
        let template = AnyTemplate::parse_with(language, source, &snippets).unwrap();
        assert_eq!(template.names_under("values."), ["priority"]);
        assert_eq!(template.unknown_variables(), ["event.sumary"]);
    }
}

#[test]
fn invalid_inclusions_are_rejected_with_their_position() {
    let large = "x".repeat(SNIPPET_BYTES_MAX);
    for language in [Mustache, Jinja] {
        let include = |name: &str| match language {
            Mustache => format!("{{{{> {name}}}}}"),
            Jinja => format!("{{% include '{name}' %}}"),
        };
        let open = match language {
            Mustache => "{{#event}}",
            Jinja => "{% if event %}",
        };
        let snippets = snippets(&[
            ("header", "x"),
            ("loops", &include("loops")),
            ("a", &include("b")),
            ("b", &include("c")),
            ("c", &include("d")),
            ("d", &include("header")),
            ("open", open),
            ("bad", "\n{{}}"),
            ("large", &large),
        ]);
        let cases = [
            (
                include("haeder"),
                "no template `haeder` to include; did you mean `header`?",
            ),
            (
                include("zzzzzzzz"),
                "no template `zzzzzzzz` to include in the setting `templates`",
            ),
            (include("loops"), "the template `loops` includes itself"),
            (include("a"), "more than 4 levels deep"),
            (include("open"), "in the template `open`: line 1"),
            (include("bad"), "in the template `bad`: line 2"),
            (
                include("large").repeat(4),
                "bytes, including the templates that it includes",
            ),
        ];
        for (source, message) in cases {
            let source = format!("a\n b {source}");
            let error = AnyTemplate::parse_with(language, &source, &snippets).unwrap_err();
            assert!(error.message.contains(message), "{source}: {error}");
            assert_eq!(error.line, 2, "{source}: {error}");
        }
        assert!(AnyTemplate::parse_with(language, &include("b"), &snippets).is_ok());
    }
    let snippets = snippets(&[("header", "x")]);
    let jinja = [
        "{% include event.name %}",
        "{% include 'header' ignore missing %}",
        "{% include ['header', 'b'] %}",
    ];
    for source in jinja {
        let error = AnyTemplate::parse_with(Jinja, source, &snippets).unwrap_err();
        assert!(
            error.message.contains("one quoted template name"),
            "{error}"
        );
    }
}

#[test]
fn many_inclusions_of_small_templates_stay_bounded() {
    let many = "{{> e}}".repeat(2_000);
    let snippets = snippets(&[
        ("e", ""),
        ("f", &many),
        ("g", "{{> f}}{{> f}}{{> f}}{{> f}}{{> f}}"),
    ]);
    assert!(AnyTemplate::parse_with(Mustache, "{{> f}}", &snippets).is_ok());
    let error = AnyTemplate::parse_with(Mustache, "{{> g}}", &snippets).unwrap_err();
    let limit = format!("more than {TEMPLATE_BYTES_MAX} bytes");
    assert!(error.message.contains(&limit), "{error}");
}

#[test]
fn snippets_are_checked_by_name_size_and_language() {
    let text = |bytes: usize| "x".repeat(bytes);
    let ok = [
        snippets(&[
            ("a", "{{event.name}}"),
            ("b-2_C", "{{> a}}"),
            ("j", "{% if event %}{{ event.name | upper }}{% endif %}"),
        ]),
        snippets(&[("a", &text(SNIPPET_BYTES_MAX))]),
        snippets(&[(&text(64), "")]),
        (0..SNIPPETS_MAX)
            .map(|at| (format!("s{at}"), text(10)))
            .collect(),
    ];
    for snippets in ok {
        assert_eq!(check_snippets(&snippets), []);
    }
    let rejected = [
        (snippets(&[("a b", "")]), "templates[a b]", "invalid name"),
        (snippets(&[("", "")]), "templates[]", "invalid name"),
        (snippets(&[(&text(65), "")]), "templates[x", "invalid name"),
        (
            snippets(&[("a", &text(SNIPPET_BYTES_MAX + 1))]),
            "templates[a]",
            "at most 16384",
        ),
        (
            (0..=SNIPPETS_MAX)
                .map(|at| (format!("s{at}"), text(1)))
                .collect(),
            "templates",
            "has 51 templates; at most 50",
        ),
        (
            (0..9)
                .map(|at| (format!("s{at}"), text(SNIPPETS_BYTES_MAX / 8)))
                .collect(),
            "templates",
            "at most 131072",
        ),
        (
            snippets(&[("a", "{{#event}}")]),
            "templates[a]",
            "not closed",
        ),
        (snippets(&[("a", "{% if %}")]), "templates[a]", "line 1"),
        (
            snippets(&[("a", "{{> b}}")]),
            "templates[a]",
            "no template `b`",
        ),
        (
            snippets(&[("a", "{{> a}}")]),
            "templates[a]",
            "includes itself",
        ),
    ];
    for (snippets, field, message) in rejected {
        let found = check_snippets(&snippets);
        assert_eq!(found.len(), 1, "{message}: {found:?}");
        assert!(found[0].field.starts_with(field), "{found:?}");
        assert!(found[0].description.contains(message), "{found:?}");
    }
}
