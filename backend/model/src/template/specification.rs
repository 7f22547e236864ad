//! The cases of the Mustache specification for the supported features, as tables.

use serde_json::{Value, json};

use super::{Budget, Escape, Template};

fn check(cases: &[(&str, Value, &str)]) {
    for (source, data, expected) in cases {
        let template = Template::parse(source).unwrap();
        let text = template.render(data, Escape::Html, &mut Budget::for_message());
        assert_eq!(text.as_deref(), Ok(*expected), "{source:?} with {data}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn interpolation() {
    let special = "& \" < >";
    let escaped = "&amp; &quot; &lt; &gt;";
    check(&[
        (
            "Hello from {Mustache}!\n",
            json!({}),
            "Hello from {Mustache}!\n",
        ),
        (
            "Hello, {{subject}}!\n",
            json!({"subject": "world"}),
            "Hello, world!\n",
        ),
        ("{{s}}", json!({"s": special}), escaped),
        ("{{{s}}}", json!({"s": special}), special),
        ("{{&s}}", json!({"s": special}), special),
        (
            "\"{{mph}} miles an hour!\"",
            json!({"mph": 85}),
            "\"85 miles an hour!\"",
        ),
        ("{{{mph}}} {{&mph}}", json!({"mph": 85}), "85 85"),
        (
            "\"{{power}} jiggawatts!\"",
            json!({"power": 1.21}),
            "\"1.21 jiggawatts!\"",
        ),
        (
            "I ({{cannot}}) be seen!",
            json!({"cannot": null}),
            "I () be seen!",
        ),
        ("I ({{{cannot}}}) be seen!", json!({}), "I () be seen!"),
        ("I ({{&cannot}}) be seen!", json!({}), "I () be seen!"),
        (
            "{{person.name}} == {{#person}}{{name}}{{/person}}",
            json!({"person": {"name": "Joe"}}),
            "Joe == Joe",
        ),
        (
            "{{a.b.c.d.e.name}}",
            json!({"a": {"b": {"c": {"d": {"e": {"name": "Phil"}}}}}}),
            "Phil",
        ),
        ("{{a.b.c}}", json!({"a": {}}), ""),
        (
            "{{a.b.c.name}}",
            json!({"a": {"b": {}}, "c": {"name": "Jim"}}),
            "",
        ),
        (
            "{{#a}}{{b.c.d.e.name}}{{/a}}",
            json!({"a": {"b": {"c": {"d": {"e": {"name": "Phil"}}}}}, "b": {"c": {"d": {"e": {"name": "Wrong"}}}}}),
            "Phil",
        ),
        (
            "{{#a}}{{b.c}}{{/a}}",
            json!({"a": {"b": {}}, "b": {"c": "ERROR"}}),
            "",
        ),
        ("{{.}}", json!("world"), "world"),
        ("{{.}}", json!(special), escaped),
        ("{{{.}}}{{&.}}", json!(85), "8585"),
        ("| {{string}} |", json!({"string": "---"}), "| --- |"),
        ("  {{string}}\n", json!({"string": "---"}), "  ---\n"),
        ("  {{{string}}}\n", json!({"string": "---"}), "  ---\n"),
        ("  {{&string}}\n", json!({"string": "---"}), "  ---\n"),
        (
            "|{{ string }}|{{{ string }}}|{{& string }}|",
            json!({"string": "-"}),
            "|-|-|-|",
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn sections() {
    check(&[
        ("{{#b}}Shown.{{/b}}", json!({"b": true}), "Shown."),
        ("{{#b}}Not shown.{{/b}}", json!({"b": false}), ""),
        ("{{#b}}Not shown.{{/b}}", json!({"b": null}), ""),
        ("{{#b}}Not shown.{{/b}}", json!({}), ""),
        (
            "{{#c}}Hi {{name}}.{{/c}}",
            json!({"c": {"name": "Joe"}}),
            "Hi Joe.",
        ),
        (
            "{{#sec}}{{a}}, {{b}}, {{c.d}}{{/sec}}",
            json!({"a": "foo", "b": "wrong", "sec": {"b": "bar"}, "c": {"d": "baz"}}),
            "foo, bar, baz",
        ),
        (
            "{{#foo}}{{.}} is {{foo}}{{/foo}}",
            json!({"foo": "bar"}),
            "bar is bar",
        ),
        (
            "{{#t}}{{#items}}{{t.name}}{{.}} {{/items}}{{/t}}",
            json!({"t": {"name": "x", "items": [1, 2]}}),
            "x1 x2 ",
        ),
        (
            "{{#list}}{{item}}{{/list}}",
            json!({"list": [{"item": 1}, {"item": 2}, {"item": 3}]}),
            "123",
        ),
        ("{{#list}}Yay!{{/list}}", json!({"list": []}), ""),
        (
            "{{#b}}\n* first\n{{/b}}\n* {{two}}\n{{#b}}\n* third\n{{/b}}\n",
            json!({"b": true, "two": "second"}),
            "* first\n* second\n* third\n",
        ),
        (
            "| A {{#b}}B {{#b}}C{{/b}} D{{/b}} E |",
            json!({"b": true}),
            "| A B C D E |",
        ),
        (
            "| A {{#b}}B {{#b}}C{{/b}} D{{/b}} E |",
            json!({"b": false}),
            "| A  E |",
        ),
        ("[{{#missing}}Found!{{/missing}}]", json!({}), "[]"),
        (
            "{{#list}}({{.}}){{/list}}",
            json!({"list": ["a", "b"]}),
            "(a)(b)",
        ),
        (
            "{{#list}}({{.}}){{/list}}",
            json!({"list": [1.1, 2.25]}),
            "(1.1)(2.25)",
        ),
        (
            "{{#list}}({{#.}}{{.}}{{/.}}){{/list}}",
            json!({"list": [[1, 2], ["a"]]}),
            "(12)(a)",
        ),
        (
            "{{#list}}({{.}}){{/list}}",
            json!({"list": ["<"]}),
            "(&lt;)",
        ),
        (
            "{{#a.b.c}}Here{{/a.b.c}}",
            json!({"a": {"b": {"c": true}}}),
            "Here",
        ),
        ("{{#a.b.c}}Here{{/a.b.c}}", json!({"a": {}}), ""),
        (
            " | {{#b}}\t|\t{{/b}} | \n",
            json!({"b": true}),
            " | \t|\t | \n",
        ),
        (
            " | {{#b}} {{! x }}\n {{/b}} | \n",
            json!({"b": true}),
            " |  \n  | \n",
        ),
        (
            " {{#b}}YES{{/b}}\n {{#b}}GOOD{{/b}}\n",
            json!({"b": true}),
            " YES\n GOOD\n",
        ),
        (
            "| This Is\n{{#b}}\n|\n{{/b}}\n| A Line\n",
            json!({"b": true}),
            "| This Is\n|\n| A Line\n",
        ),
        (
            "| This Is\n  {{#b}}\n|\n  {{/b}}\n| A Line\n",
            json!({"b": true}),
            "| This Is\n|\n| A Line\n",
        ),
        ("|\r\n{{#b}}\r\n{{/b}}\r\n|", json!({"b": true}), "|\r\n|"),
        ("  {{#b}}\n#{{/b}}\n/", json!({"b": true}), "#\n/"),
        ("#{{#b}}\n/\n  {{/b}}", json!({"b": true}), "#\n/\n"),
        ("|{{# b }}={{/ b }}|", json!({"b": true}), "|=|"),
    ]);
}

#[test]
fn inverted_sections() {
    check(&[
        ("{{^b}}Shown.{{/b}}", json!({"b": false}), "Shown."),
        ("{{^b}}Not shown.{{/b}}", json!({"b": true}), ""),
        ("{{^b}}Shown.{{/b}}", json!({"b": null}), "Shown."),
        (
            "{{^c}}Hi {{name}}.{{/c}}",
            json!({"c": {"name": "Joe"}}),
            "",
        ),
        ("{{^list}}{{n}}{{/list}}", json!({"list": [{"n": 1}]}), ""),
        ("{{^list}}Yay!{{/list}}", json!({"list": []}), "Yay!"),
        (
            "{{^b}}\n* first\n{{/b}}\n* {{two}}\n{{^b}}\n* third\n{{/b}}\n",
            json!({"b": false, "two": "second"}),
            "* first\n* second\n* third\n",
        ),
        (
            "| A {{^b}}B {{^b}}C{{/b}} D{{/b}} E |",
            json!({"b": false}),
            "| A B C D E |",
        ),
        (
            "| A {{^b}}B {{^b}}C{{/b}} D{{/b}} E |",
            json!({"b": true}),
            "| A  E |",
        ),
        (
            "[{{^missing}}Cannot find key!{{/missing}}]",
            json!({}),
            "[Cannot find key!]",
        ),
        (
            "{{^a.b.c}}Not Here{{/a.b.c}}",
            json!({"a": {"b": {"c": true}}}),
            "",
        ),
        ("{{^a.b.c}}Not Here{{/a.b.c}}", json!({"a": {}}), "Not Here"),
        (
            " | {{^b}}\t|\t{{/b}} | \n",
            json!({"b": false}),
            " | \t|\t | \n",
        ),
        (
            "| This Is\n  {{^b}}\n|\n  {{/b}}\n| A Line\n",
            json!({"b": false}),
            "| This Is\n|\n| A Line\n",
        ),
        ("|\r\n{{^b}}\r\n{{/b}}\r\n|", json!({"b": false}), "|\r\n|"),
        ("  {{^b}}\n^{{/b}}\n/", json!({"b": false}), "^\n/"),
        ("^{{^b}}\n/\n  {{/b}}", json!({"b": false}), "^\n/\n"),
        ("|{{^ b }}={{/ b }}|", json!({"b": false}), "|=|"),
    ]);
}

#[test]
fn comments() {
    check(&[
        ("12345{{! Comment Block! }}67890", json!({}), "1234567890"),
        ("12345{{!\n  a\n  b\n}}67890\n", json!({}), "1234567890\n"),
        (
            "Begin.\n{{! Comment Block! }}\nEnd.\n",
            json!({}),
            "Begin.\nEnd.\n",
        ),
        (
            "Begin.\n  {{! Indented }}\nEnd.\n",
            json!({}),
            "Begin.\nEnd.\n",
        ),
        ("|\r\n{{! Standalone }}\r\n|", json!({}), "|\r\n|"),
        ("  {{! still standalone }}\n!", json!({}), "!"),
        ("!\n  {{! still standalone }}", json!({}), "!\n"),
        (
            "Begin.\n{{!\nSomething\n}}\nEnd.\n",
            json!({}),
            "Begin.\nEnd.\n",
        ),
        (
            "Begin.\n  {{!\n    x\n  }}\nEnd.\n",
            json!({}),
            "Begin.\nEnd.\n",
        ),
        ("  12 {{! 34 }}\n", json!({}), "  12 \n"),
        (
            "12345 {{! Comment Block! }} 67890",
            json!({}),
            "12345  67890",
        ),
    ]);
}
