//! Limits, refused constructs with their positions, and supported features of Jinja templates.

use std::time::{Duration, Instant};

use serde_json::json;

use super::filters::TESTS;
use crate::{
    domain::{NO_SNIPPETS, TemplateLanguage},
    limits::TEMPLATE_STEPS_MAX,
    template::{AnyTemplate, Budget, Escape, RenderError, Variables},
};

fn parse(source: &str) -> Result<AnyTemplate, crate::template::TemplateError> {
    AnyTemplate::parse(TemplateLanguage::Jinja, source)
}

fn render_jinja(source: &str, escape: Escape) -> Result<String, RenderError> {
    let data =
        json!({"a": "<b> \"x\"", "n": 97.0, "l": [3, 1], "o": {"k": "v", "a.b": 1}, "e": ""});
    let budget = &mut Budget::for_message();
    parse(source)
        .unwrap()
        .render(&Variables::new(data), escape, budget)
}

#[test]
fn syntax_errors_report_line_and_column() {
    let cases = [
        ("{{", 1, 1, "unexpected end"),
        ("a\nb {{ 1 + }}", 2, 10, "unexpected end of variable block"),
        ("{% if x %}", 1, 9, "unexpected end of input"),
        ("a{% include 'x' %}", 1, 5, "no template `x`"),
        ("{% import 'x' as y %}", 1, 4, "unknown statement"),
        ("{% extends 'x' %}", 1, 4, "unknown statement"),
        ("x {{ a|nope }}", 1, 8, "unknown filter `nope`"),
        ("{{ '|nope' ~ a|\n nope }}", 2, 2, "unknown filter `nope`"),
        ("x {{ a is nope }}", 1, 11, "unknown test `nope`"),
        (
            "{% if a is not nope %}{% endif %}",
            1,
            16,
            "unknown test `nope`",
        ),
        ("{{ a|select('nope') }}", 1, 6, "unknown test `nope`"),
        (
            "{{ a|rejectattr('b', 'nope') }}",
            1,
            6,
            "unknown test `nope`",
        ),
        ("{{ a|map('nope') }}", 1, 6, "unknown filter `nope`"),
    ];
    for (source, line, column, message) in cases {
        let error = parse(source).unwrap_err();
        assert!(error.message.contains(message), "{source}: {error}");
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{source}: {error}"
        );
    }
    assert!(parse("{# it's |nope #}{{ a|upper }} {% raw %}{{ x }}{% endraw %}").is_ok());
}

#[test]
fn every_listed_test_exists() {
    for name in TESTS {
        let source = format!("{{{{ '{name}' is test }}}}");
        let text = render_jinja(&source, Escape::None);
        assert_eq!(text.as_deref(), Ok("true"), "{name}");
    }
}

#[test]
fn unbounded_constructs_are_refused_with_line_and_alternative() {
    let cases = [
        (
            "\n{% macro f(x) %}{{ x }}{% endmacro %}",
            2,
            "`macro` is not supported; write",
        ),
        (
            "{% call f() %}{% endcall %}",
            1,
            "`call` is not supported; write",
        ),
        (
            "{% set x = namespace(n=0) %}",
            1,
            "`namespace` is not supported; to count",
        ),
        ("{% set x.n = 1 %}", 1, "use filters such as `length`"),
        (
            "\n\n{% set x = [1, 2] %}",
            3,
            "not to a list or object; use the list where",
        ),
        ("{% set x = a if b else {} %}", 1, "not to a list or object"),
        ("{% set x = l|sort %}", 1, "not to a list or object"),
        (
            "{% with x = (1, 2) %}{% endwith %}",
            1,
            "not to a list or object",
        ),
        ("{% set a, b = 1, 2 %}", 1, "only a variable can be set"),
        (
            "{% for x in l recursive %}{{ loop(x) }}{% endfor %}",
            1,
            "use a nested loop",
        ),
        (
            "{% for x in range(101) %}{% endfor %}",
            1,
            "`range` has more than 100 numbers",
        ),
        ("{% do l.append(1) %}", 1, "`do` is not supported"),
        ("{{ lipsum(5) }}", 1, "unknown function `lipsum`"),
        ("{{ dict(*l) }}", 1, "arguments are not supported"),
        (
            "{% filter nope %}{% endfilter %}",
            1,
            "unknown filter `nope`",
        ),
    ];
    for (source, line, message) in cases {
        let error = parse(source).unwrap_err();
        assert!(error.message.contains(message), "{source}: {error}");
        assert_eq!(error.line, line, "{source}: {error}");
    }
}

/// A kind of nesting, its maximum depth, and its source at a depth.
type Nested = (&'static str, usize, fn(usize) -> String);

/// Returns deeply nested expressions and tags.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn nested() -> Vec<Nested> {
    vec![
        ("blocks", 32, |n| {
            format!("{}{}", "{% if a %}".repeat(n), "{% endif %}".repeat(n))
        }),
        ("kinds of blocks", 32, |n| {
            let open = [
                "{% for x in l %}",
                "{% filter upper %}",
                "{% set y %}",
                "{% with z = 1 %}",
            ];
            let end = [
                "{% endfor %}",
                "{% endfilter %}",
                "{% endset %}",
                "{% endwith %}",
            ];
            let open: String = (0..n).map(|at| open[at % 4]).collect();
            let end: String = (0..n).rev().map(|at| end[at % 4]).collect();
            open + &end
        }),
        ("alternatives", 32, |n| {
            format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(n - 1))
        }),
        ("alternatives in blocks", 32, |n| {
            let alternatives = "{% elif a %}".repeat(n / 2);
            let blocks = n - n / 2 - 1;
            format!(
                "{}{{% if a %}}{alternatives}{{% endif %}}{}",
                "{% if a %}".repeat(blocks),
                "{% endif %}".repeat(blocks)
            )
        }),
        ("lists", 16, |n| {
            format!("{{{{ {}{} }}}}", "[".repeat(n), "]".repeat(n))
        }),
        ("maps", 16, |n| {
            format!("{{{{ {}1{} }}}}", "{'a':".repeat(n), "}".repeat(n))
        }),
        ("parentheses", 16, |n| {
            format!("{{{{ {}1{} }}}}", "(".repeat(n), ")".repeat(n))
        }),
        ("subscripts inside", 16, |n| {
            format!("{{{{ {}1{} }}}}", "l[".repeat(n), "]".repeat(n))
        }),
        ("brackets of a tag", 16, |n| {
            format!(
                "{{% if {}1{} %}}{{% endif %}}",
                "(".repeat(n),
                ")".repeat(n)
            )
        }),
        ("members", 100, |n| format!("{{{{ a{} }}}}", ".b".repeat(n))),
        ("subscripts", 100, |n| {
            format!("{{{{ a{} }}}}", "[0]".repeat(n))
        }),
        ("sums", 100, |n| format!("{{{{ 1{} }}}}", "+1".repeat(n))),
        ("texts", 100, |n| format!("{{{{ 1{} }}}}", "~1".repeat(n))),
        ("powers", 100, |n| format!("{{{{ 1{} }}}}", "**1".repeat(n))),
        ("filters", 100, |n| {
            format!("{{{{ a{} }}}}", "|upper".repeat(n))
        }),
        ("negations", 100, |n| {
            format!("{{{{ {}1 }}}}", "not ".repeat(n))
        }),
        ("signs", 100, |n| format!("{{{{ {}1 }}}}", "-".repeat(n))),
        ("comparisons", 100, |n| {
            format!("{{{{ 1{} }}}}", "<1".repeat(n))
        }),
        ("tests", 100, |n| {
            format!("{{{{ 1{} }}}}", " is defined".repeat(n))
        }),
        ("conditions", 100, |n| {
            format!("{{{{ 1{} }}}}", " if a else 1".repeat(n / 2))
        }),
        ("disjunctions", 100, |n| {
            format!("{{{{ 1{} }}}}", " or 1".repeat(n))
        }),
        ("chains in brackets", 100, |n| {
            let half = "+1".repeat((n - 2) / 2);
            format!("{{{{ 1{half}+(1{half}{}) }}}}", "+1".repeat(n % 2))
        }),
    ]
}

#[test]
fn excessive_nesting_is_refused_before_parsing() {
    for (what, most, template) in nested() {
        let accepted = template(most);
        assert!(
            parse(&accepted).is_ok(),
            "{what}: {accepted}: {:?}",
            parse(&accepted)
        );
        let _ = render_jinja(&accepted, Escape::Html);
        for count in [most + 2, most * 20, 3_000] {
            let refused = template(count);
            if refused.len() > crate::limits::TEMPLATE_BYTES_MAX {
                continue;
            }
            let error = parse(&refused).unwrap_err();
            let is_named = ["levels deep", "deeper than", "chains more than"]
                .map(|it| error.message.contains(it));
            assert!(is_named.contains(&true), "{what} {count}: {error}");
        }
    }
    for source in [
        "{% if a %}".repeat(6_000),
        "{{ [".repeat(15_000),
        "x".repeat(70_000),
    ] {
        assert!(parse(&source).is_err(), "{}", &source[..10]);
    }
    // A long list is not deeply nested.
    let long = format!("{{{{ [{}1]|length }}}}", "a.b ~ 1, ".repeat(3_000));
    assert_eq!(render_jinja(&long, Escape::None).as_deref(), Ok("3001"));
    let calls = format!("{{{{ a{} }}}}", "|replace('x','y')".repeat(50));
    assert!(render_jinja(&calls, Escape::None).is_ok());
}

#[test]
fn exponentially_nested_lists_are_refused() {
    let doubled = |times: usize, last: &str| {
        let open: Vec<_> = (1..=times)
            .map(|n| format!("{{% for x{n} in [[x{}, x{}]] %}}", n - 1, n - 1))
            .collect();
        let open = open.concat();
        let end = "{% endfor %}".repeat(times);
        format!(
            "{{% for x0 in [[1]] %}}{open}{}{end}{{% endfor %}}",
            last.replace('X', &format!("x{times}"))
        )
    };
    for last in [
        "{{ X }}",
        "{{ X == X }}",
        "{{ X < X }}",
        "{{ X in [X] }}",
        "{{ X|json }}",
        "{{ X ~ '' }}",
        "{{ X|string }}",
        "{{ [X, X]|sort }}",
        "{{ [X, X]|unique }}",
        "{{ {'a': X} }}",
        "{{ X is eq(X) }}",
        "{{ X|length }}",
        "{{ loop.changed(X) }}",
        "{{ X + X }}",
        "",
    ] {
        let few = render_jinja(&doubled(2, last), Escape::None);
        assert!(few.is_ok(), "{last}: {few:?}");
        for times in [14, 30] {
            let error = render_jinja(&doubled(times, last), Escape::None).unwrap_err();
            assert!(
                matches!(error, RenderError::TooManySteps(_) | RenderError::Failed(_)),
                "{last}: {error}"
            );
        }
    }
    let deeper: Vec<_> = (1..=20)
        .map(|n| format!("{{% for x{n} in [[x{}]] %}}", n - 1))
        .collect();
    let deeper = deeper.concat();
    let source = format!("{{% for x0 in [1] %}}{deeper}{}", "{% endfor %}".repeat(21));
    let error = render_jinja(&source, Escape::None).unwrap_err();
    assert!(error.to_string().contains("nested too deeply"), "{error}");
}

#[test]
fn hundreds_of_events_can_be_sorted_and_grouped() {
    let event = |at: usize| {
        let dimensions: serde_json::Map<_, _> = (0..10)
            .map(|n| (format!("d{n}"), json!(n + at % 7)))
            .collect();
        json!({"severity": "error", "summary": "x".repeat(120), "status": "open", "name": "disk",
            "dimensions": dimensions, "count": at % 13, "team": format!("team {}", at % 5)})
    };
    let events: Vec<_> = (0..700).map(event).collect();
    let data = Variables::new(json!({"events": events}));
    for (source, expected) in [
        ("{{ (events|sort(attribute='team')|last).team }}", "team 4"),
        (
            "{{ (events|sort(attribute='count,dimensions.d1', reverse=true)|first).count }}",
            "12",
        ),
        ("{{ events|unique(attribute='team')|length }}", "5"),
        ("{{ (events|max(attribute='count')).count }}", "12"),
        (
            "{{ (events|min(attribute='dimensions.d3')).dimensions.d3 }}",
            "3",
        ),
        ("{{ events|groupby('team')|length }}", "5"),
        (
            "{{ events|groupby(attribute='dimensions.d9')|length }}",
            "7",
        ),
        (
            "{% for team, all in events|groupby('team') %}{{ team }}: {{ all|length }} {% endfor %}",
            "team 0: 140 team 1: 140 team 2: 140 team 3: 140 team 4: 140 ",
        ),
    ] {
        let text = parse(source)
            .unwrap()
            .render(&data, Escape::None, &mut Budget::for_message());
        assert_eq!(text.as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn rendering_cost_is_bounded() {
    let long = "n.".repeat(50) + "nn";
    let data = Variables::new(json!({"m": vec![1; 1_000_000], "t": "x".repeat(60_000)}));
    let templates = [
        "{% for a in m %}{% for b in m %}{% endfor %}{% endfor %}",
        "{% for a in m %}{{ t }}{% endfor %}",
        &format!("{{% for a in m %}}{{{{ {long} }}}}{{% endfor %}}"),
        "{{ m|sort|sum }}",
        "{{ m|sort(attribute='a') }}",
        "{{ m|groupby('a') }}",
        "{{ m|json }}",
        "{{ m }}",
        "{{ m|map('string')|join(t) }}",
        "{{ t|replace('x', t) }}",
        "{{ 'x' * 1000000000 }}",
        "{{ '%1000000000s'|format('x') }}",
        "{{ 'x'|indent(1000000000, true) }}",
        "{{ m|batch(1000000000, 1) }}",
        "{{ [1]|slice(1000000000, 1) }}",
        "{{ t|trim('y' ~ t) }}",
        "{{ t|list }}{{ t|list }}",
        "{{ t|split('') }}{{ t|split('x') }}",
        "{% for a in m[:30000] %}{{ m[:30000] == m[:30000] }}{% endfor %}",
        "{% for a in t|list %}{{ a in t }}{% endfor %}",
        "{{ m|map('string')|sum(start='') }}",
        "{% set s = t %}{% for a in range(100) %}{% set s = s ~ s %}{% endfor %}",
        "{{ t * 1000000 }}",
        "{% for a in m %}{{ t|regex_replace('(x|xx){30}(x|y){20}z', '') }}{% endfor %}",
        "{% for a in m %}{{ t|regex_replace('x' ~ loop.index, '') }}{% endfor %}",
        "{% for a in m %}{{ t|markdown|telegram|slack }}{% endfor %}",
        "{% for a in m %}{{ 1700000000000|date('%c', 'Europe/Berlin') }}{% endfor %}",
        "{% for a in m %}{{ t|regex_replace('.*[^A-Z]|[A-Z]', '') }}{% endfor %}",
        "{{ t|regex_replace('x*y|x', '') }}",
    ];
    // Reading variables with a million entries does not use up the budget of a template.
    let all = &mut Budget::for_message();
    parse("{{ m|length }}")
        .unwrap()
        .render(&data, Escape::None, all)
        .unwrap();
    for source in templates {
        let begun = Instant::now();
        let budget = &mut Budget::for_message();
        let error = parse(source)
            .unwrap()
            .render(&data, Escape::Json, budget)
            .unwrap_err();
        let is_expected = match &error {
            RenderError::TooManySteps(most) => *most == TEMPLATE_STEPS_MAX,
            RenderError::TooLong(_) => true,
            RenderError::Failed(error) => error.message.contains("sum: `start` must be a number"),
            RenderError::TooSlow => false,
        };
        assert!(is_expected, "{source}: {error}");
        // An unoptimized build that runs next to other tests takes about ten times as long.
        assert!(begun.elapsed() < Duration::from_secs(2), "{source}");
    }
}

#[test]
fn values_are_escaped_but_template_markup_is_not() {
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
            "{% for name, value in [('n', n), ('a', a)] %}<i>{{ name }} {{ value }}</i>{% endfor %}",
            Escape::Html,
            "<i>n 97</i><i>a &lt;b&gt; &quot;x&quot;</i>",
        ),
        (
            "{% set x %}<i>{{ a }}</i>{% endset %}{{ x }}{% set y = a %}{{ y }}",
            Escape::Html,
            "<i>&lt;b&gt; &quot;x&quot;</i>&lt;b&gt; &quot;x&quot;",
        ),
        (
            "{{ '<i>'|safe ~ a }}{{ '<' ~ 'i' }}",
            Escape::Html,
            "<i>&lt;b&gt; &quot;x&quot;&lt;i",
        ),
    ];
    for (source, escape, expected) in cases {
        assert_eq!(
            render_jinja(source, escape).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn unknown_variables_are_reported() {
    let template = parse(
        "{{ event.summary }}{{ event.sumary }}{{ event.metadata.a.b }}{{ range(3)|length }}{% for it in group.events %}{{ it.name }}{% endfor %}{{ values.p }}",
    );
    let template = template.unwrap();
    assert_eq!(template.unknown_variables(), ["event.sumary"]);
    assert_eq!(template.names_under("values."), ["p"]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn expressions_evaluate_as_in_jinja() {
    let cases = [
        (
            "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }}",
            "3 -4 1 2 3.5 1024",
        ),
        (
            "{{ 1 + 2.5 }} {{ n - 7 }} {{ 'a' + 'b' }} {{ [1] + [2] }} {{ 'ab' * 2 }}",
            "3.5 90 ab [1,2] abab",
        ),
        ("{{ 'x' ~ 1 ~ none ~ gone ~ true ~ [1] }}", "x1true[1]"),
        (
            "{{ l[0] }} {{ l[-1] }} {{ 'abc'[1] }} {{ o['a.b'] }} {{ l[5] }}{{ o.k.x.y }}",
            "3 1 b 1 ",
        ),
        (
            "{{ 'abcdef'[1:3] }} {{ 'abc'[::-1] }} {{ [1,2,3,4][-2:] }} {{ [1,2,3,4][::2] }} {{ [1,2,3][5:] }}",
            "bc cba [3,4] [1,3] []",
        ),
        (
            "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'b' in 'abc' }} {{ 3 in l }} {{ 'k' in o }} {{ 2 not in l }}",
            "true false true true true true",
        ),
        (
            "{{ 'a' if gone }}{{ 1 if 0 else 2 }} {{ 0 or 'x' }} {{ 1 and 'y' }} {{ not 0 }}",
            "2 x y true",
        ),
        (
            "{{ 3 is odd }} {{ gone is defined }} {{ 'A' is upper }} {{ 4 is divisibleby(2) }}",
            "true false true true",
        ),
        (
            "{% for x in l %}{{ loop.index }}/{{ loop.length }}{{ loop.first }}{{ loop.last }}{{ loop.cycle('a', 'b') }} {% endfor %}",
            "1/2truefalsea 2/2falsetrueb ",
        ),
        (
            "{% for x in [1, 1, 2] %}{{ 'c' if loop.changed(x) else '-' }}{% endfor %}",
            "c-c",
        ),
        (
            "{% for x in [] %}x{% else %}none{% endfor %}{% for k in o %}{{ k }},{% endfor %}",
            "nonea.b,k,",
        ),
        (
            "{% for x in [1,2,3] if x != 2 %}{{ x }}{{ loop.length }}{% endfor %}",
            "1232",
        ),
        (
            "{% for x in [1,2] %}{% for y in [3] %}{{ loop.depth }}{{ x }}{{ y }} {% endfor %}{% endfor %}",
            "213 223 ",
        ),
        (
            "{{ range(3)|list }} {{ range(1, 7, 2)|join(',') }} {{ range(3, 0, -1)|list }} {{ range(0)|list }}",
            "[0,1,2] 1,3,5 [3,2,1] []",
        ),
        (
            "{{ dict(a=1) }} {{ dict(a=1).get('a') }} {{ {'a': {'b': 2}}.a.b }}",
            "{\"a\":1} 1 2",
        ),
        (
            "{% with x = 1, y = 2 %}{{ x + y }}{% endwith %}{{ x }}{% if true %}{% set z = 3 %}{% endif %}{{ z }}",
            "33",
        ),
        (
            "{% filter upper|replace('A', 'b') %}a{{ n }}c{% endfilter %}",
            "b97C",
        ),
        (
            "{{ l|map('string')|join('-') }} {{ [{'a': 1}, {'a': 2}]|map(attribute='a')|sum }} {{ [{}]|map(attribute='a', default='d')|first }}",
            "3-1 3 d",
        ),
        (
            "{{ [1,2,3,4]|select('odd')|list }} {{ [1,2,3]|reject('eq', 2)|list }} {{ [{'a': 1}, {'a': 0}]|selectattr('a')|length }}{{ [{'a': 1}, {'a': 5}]|rejectattr('a', 'gt', 3)|length }}",
            "[1,3] [1,3] 11",
        ),
        (
            "{{ [3,1,2]|sort }} {{ [3,1]|min }} {{ [1,1]|unique|list }} {{ [1,2,3]|batch(2)|list }} {{ [1]|zip([2])|list }} {{ [1]|chain([2])|list }}",
            "[1,2,3] 1 [1] [[1,2],[3]] [[1,2]] [1,2]",
        ),
        (
            "{% for g in [{'a': 1}, {'a': 2}, {'a': 1}]|groupby('a') %}{{ g.grouper }}:{{ g.list|length }} {% endfor %}",
            "1:2 2:1 ",
        ),
        (
            "{% for g, all in [{'a': 1}, {'a': 1}]|groupby('a') %}{{ g }}:{{ all|length }}{% endfor %}",
            "1:2",
        ),
        (
            "{{ 'a1b22c'|regex_replace('[0-9]+', '-') }} {{ 'host.example.com'|regex_replace('\\..*$', '') }} {{ 'ab'|regex_replace('(a)(b)', '$2$1') }}",
            "a-b-c host ba",
        ),
        (
            "{{ 'abc'|regex_replace('', '-') }} {{ 'aab'|regex_replace('a*', 'x') }} {{ 'ä b'|regex_replace('\\\\bb', 'c') }} {{ 'x'|regex_replace('y', 'z') }}",
            "-a-b-c- xbx ä c x",
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(
            render_jinja(source, Escape::None).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
    for (source, message) in [
        ("{% set x = l %}", "not to a sequence"),
        ("a\n {{ 1 // 0 }}", "line 2"),
        ("{{ 'a' - 1 }}", "requires numbers"),
        ("{{ 10 ** 1000 }}", "too large"),
        ("{{ 1 in 5 }}", "`in` requires"),
        ("{{ range(n) }}{{ range(0, 1000) }}", "more than 100"),
        ("{{ ['x']|map('map', 'upper') }}", "map"),
        (
            "{{ a|regex_replace('(', '') }}",
            "`(` is not a valid regular expression: unclosed group",
        ),
        ("{{ a|regex_replace('(a{100}){100}', '') }}", "is too large"),
    ] {
        let error = render_jinja(source, Escape::None).unwrap_err().to_string();
        assert!(error.contains(message), "{source}: {error}");
    }
}

#[test]
fn matching_searches_texts_for_a_regular_expression() {
    let cases = [
        ("{{ 'disk full' is matching('^disk') }}", "true"),
        ("{{ 'a disk' is matching('^disk') }}", "false"),
        ("{{ 'a disk full' is matching('disk') }}", "true"),
        ("{{ 'a disk' is not matching('disk$') }}", "false"),
        ("{{ 'DISK' is matching('(?i)disk') }}", "true"),
        ("{{ n is matching('^97$') }}", "true"),
        (
            "{{ gone is matching('x') }}{{ e is matching('^$') }}",
            "falsetrue",
        ),
        ("{{ 'äö 7' is matching('^.. \\\\d$') }}", "true"),
        (
            "{{ ['a1', 'b2']|select('matching', '^b')|join }}{{ [{'h': 'db-1'}, {'h': 'web'}]|selectattr('h', 'matching', '^db')|length }}",
            "b21",
        ),
        (
            "{% if a is matching('^<b>') %}yes{% else %}no{% endif %}",
            "yes",
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(
            render_jinja(source, Escape::None).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn invalid_regular_expression_fails_and_is_quoted_in_the_error() {
    let (longest, too_long_message) = ("a".repeat(1_000), "a".repeat(1_001));
    assert_eq!(
        render_jinja(
            &format!("{{{{ a is matching('{longest}') }}}}"),
            Escape::None
        )
        .as_deref(),
        Ok("false")
    );
    let cases = [
        (
            "(disk",
            "`(disk` is not a valid regular expression: unclosed group",
        ),
        ("(a{100}){100}", "`(a{100}){100}` is too large"),
        (&too_long_message, "is 1001 bytes; the limit is 1000"),
    ];
    for (pattern, message) in cases {
        let error = render_jinja(
            &format!("{{{{ a is matching('{pattern}') }}}}"),
            Escape::None,
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let error = render_jinja("{{ ('x' * 65537) is matching('y') }}", Escape::None);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("is 65537 bytes; at most 65536"), "{error}");
}

#[test]
fn literal_patterns_are_checked_when_a_template_is_saved() {
    let invalid = [
        ("{% if a is matching('(') %}x{% endif %}", 1, 21),
        ("a\n{{ l|select('matching', '[')|list }}", 2, 25),
        ("{{ l|selectattr('a', \"matching\", \"*\")|list }}", 1, 34),
        ("{{ a|regex_replace('(', '') }}", 1, 20),
    ];
    for (source, line, column) in invalid {
        let error = AnyTemplate::check(TemplateLanguage::Jinja, source, &NO_SNIPPETS).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{source}");
        assert!(error.message.contains("is not a valid regular expression"));
    }
    let check_valid = [
        "{{ a is matching('^disk') }}",
        "{{ a is matching('(' ~ a ~ ')') }}",
        "{{ a is matching(e) }}{{ '(' }} matching('(')",
    ];
    for source in check_valid {
        assert_eq!(
            AnyTemplate::check(TemplateLanguage::Jinja, source, &NO_SNIPPETS),
            Ok(()),
            "{source}"
        );
    }
    let many = "{{ a is matching('[a-z]{9}') }}".repeat(2_000);
    let start = Instant::now();
    AnyTemplate::check(TemplateLanguage::Jinja, &many, &NO_SNIPPETS).unwrap();
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn regular_expression_matching_is_charged_to_the_budget() {
    let source = "{% for x in range(100) %}{% for y in range(100) %}{{ (text ~ x) is matching('b$') }}{% endfor %}{% endfor %}";
    let data = Variables::new(json!({"text": "a".repeat(60_000)}));
    let mut budget = Budget::for_message();
    let error = parse(source)
        .unwrap()
        .render(&data, Escape::None, &mut budget);
    assert_eq!(error, Err(RenderError::TooManySteps(TEMPLATE_STEPS_MAX)));
}
