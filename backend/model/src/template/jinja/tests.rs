//! Jinja: what a rendering may cost, what is refused and where, and what an author can say.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    domain::TemplateLanguage,
    limits::TEMPLATE_STEPS_MAX,
    template::{AnyTemplate, Budget, Escape, RenderError, Variables},
};

fn parse(source: &str) -> Result<AnyTemplate, crate::template::TemplateError> {
    AnyTemplate::parse(TemplateLanguage::Jinja, source)
}

fn rendered(source: &str, escape: Escape) -> Result<String, RenderError> {
    let data =
        json!({"a": "<b> \"x\"", "n": 97.0, "l": [3, 1], "o": {"k": "v", "a.b": 1}, "e": ""});
    let budget = &mut Budget::of_message();
    parse(source)
        .unwrap()
        .render(&Variables::new(data), escape, budget)
}

#[test]
fn what_is_no_template_is_refused_with_its_place() {
    let cases = [
        ("{{", 1, 1, "unexpected end"),
        ("a\nb {{ 1 + }}", 2, 10, "unexpected end of variable block"),
        ("{% if x %}", 1, 9, "unexpected end of input"),
        ("{% include 'x' %}", 1, 4, "unknown statement"),
        ("{% import 'x' as y %}", 1, 4, "unknown statement"),
        ("{% extends 'x' %}", 1, 4, "unknown statement"),
        ("x {{ a|nope }}", 1, 8, "no filter `nope`"),
        ("{{ '|nope' ~ a|\n nope }}", 2, 2, "no filter `nope`"),
    ];
    for (source, line, column, message) in cases {
        let fault = parse(source).unwrap_err();
        assert!(fault.message.contains(message), "{source}: {fault}");
        assert_eq!(
            (fault.line, fault.column),
            (line, column),
            "{source}: {fault}"
        );
    }
    let deep = [
        format!("{{{{ 1{} }}}}", "+1".repeat(30_000)),
        format!("{{{{ a{} }}}}", "|upper".repeat(10_000)),
        format!("{{{{ {}1 }}}}", "not ".repeat(15_000)),
        format!("{{{{ {}1{} }}}}", "(".repeat(400), ")".repeat(400)),
        "{% if a %}".repeat(3_000),
        "x".repeat(70_000),
    ];
    for source in deep {
        assert!(parse(&source).is_err(), "{}", &source[..20]);
    }
    assert!(parse("{# it's |nope #}{{ a|upper }} {% raw %}{{ x }}{% endraw %}").is_ok());
}

#[test]
fn what_a_rendering_costs_is_bounded() {
    let long = "n.".repeat(255) + "nn";
    let data = Variables::new(json!({"m": vec![1; 1_000_000], "t": "x".repeat(60_000)}));
    let templates = [
        "{% for a in m %}{% for b in m %}{% endfor %}{% endfor %}",
        "{% for a in m %}{{ t }}{% endfor %}",
        &format!("{{% for a in m %}}{{{{ {long} }}}}{{% endfor %}}"),
        "{{ m|sort|sum }}",
        "{{ m|json }}",
        "{{ m }}",
        "{{ m|map('string')|join(t) }}",
        "{{ t|replace('x', t) }}",
        "{{ 'x' * 1000000000 }}",
        "{{ '%1000000000s'|format('x') }}",
        "{% for a in m %}{{ t|regex_replace('(x|xx){30}(x|y){20}z', '') }}{% endfor %}",
        "{% for a in m %}{{ t|regex_replace('x' ~ loop.index, '') }}{% endfor %}",
        "{% for a in m %}{{ t|markdown|telegram|slack }}{% endfor %}",
        "{% for a in m %}{{ 1700000000000|date('%c', 'Europe/Berlin') }}{% endfor %}",
        "{% set x = namespace(t='x') %}{% for a in m %}{% set x.t = x.t ~ x.t %}{% endfor %}",
    ];
    // Reading a million entries is not the template's doing.
    let all = &mut Budget::of_message();
    parse("{{ m|length }}")
        .unwrap()
        .render(&data, Escape::None, all)
        .unwrap();
    for source in templates {
        let begun = Instant::now();
        let budget = &mut Budget::of_message();
        let fault = parse(source)
            .unwrap()
            .render(&data, Escape::Json, budget)
            .unwrap_err();
        assert_eq!(
            fault,
            RenderError::TooManySteps(TEMPLATE_STEPS_MAX),
            "{source}"
        );
        // Not optimized and beside other tests it takes some ten times as long.
        assert!(begun.elapsed() < Duration::from_secs(2), "{source}");
    }
    for endless in [
        "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
        "{% for x in range(1000000000) %}{% endfor %}",
    ] {
        assert!(rendered(endless, Escape::None).is_err());
    }
}

#[test]
fn values_are_escaped_for_their_place_and_markup_of_the_authors_is_not() {
    let cases = [
        (
            "<i>{{ a }}</i>",
            Escape::Html,
            "<i>&lt;b&gt; &quot;x&quot;</i>",
        ),
        (
            "{{ '<i>'|safe }}{{ a|e }}",
            Escape::Html,
            "<i>&lt;b&gt; &quot;x&quot;",
        ),
        ("{{ a|html }}", Escape::Html, "&lt;b&gt; &quot;x&quot;"),
        (
            "{{ '<i>%s'|safe|format(a) }}",
            Escape::Slack,
            "<i>&lt;b&gt; \"x\"",
        ),
        (
            "{% autoescape false %}{{ a }}{% endautoescape %}",
            Escape::Slack,
            "&lt;b&gt; \"x\"",
        ),
        ("{{ a|slack }}", Escape::Json, "&lt;b&gt; \\\"x\\\""),
        ("{{ a|json }}", Escape::Json, "\"<b> \\\"x\\\"\""),
        (
            "{{ a|json }}",
            Escape::Html,
            "&quot;&lt;b&gt; \\&quot;x\\&quot;&quot;",
        ),
        (
            "/{{ a }}/{{ a|urlencode }}/{{ a|safe }}",
            Escape::Percent,
            "/%3Cb%3E%20%22x%22/%3Cb%3E%20%22x%22/%3Cb%3E%20%22x%22",
        ),
        ("{{ 'a\r\nb'|safe }}", Escape::Header, "a  b"),
        (
            "{{ n }} {{ l }} {{ o }} {{ gone.x }} {{ e|default('-', true) }}",
            Escape::None,
            "97 [3,1] {\"a.b\":1,\"k\":\"v\"}  -",
        ),
        (
            "{% for k, v in o.items() %}{{ k }}{% endfor %}{{ o.get('k') }}{{ o.keys()|join }}{{ o.values()|join }}",
            Escape::None,
            "a.bkva.bk1v",
        ),
        (
            "{% macro m(x) %}<i>{{ x }}</i>{% endmacro %}{{ m(a) }}",
            Escape::Html,
            "<i>&lt;b&gt; &quot;x&quot;</i>",
        ),
    ];
    for (source, escape, expected) in cases {
        assert_eq!(
            rendered(source, escape).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn variables_that_no_event_can_have_are_told() {
    let template = parse(
        "{{ event.summary }}{{ event.sumary }}{{ event.metadata.a.b }}{{ range(3)|length }}{% for it in group.events %}{{ it.name }}{% endfor %}{{ values.p }}",
    );
    let template = template.unwrap();
    assert_eq!(template.unknown_variables(), ["event.sumary"]);
    assert_eq!(template.own_values(), ["p"]);
}
