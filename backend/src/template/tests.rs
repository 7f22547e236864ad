//! Templates against the Mustache specification, and against their limits.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Escape, RenderError, Template};
use crate::limits::RENDERED_BYTES_MAX;

fn render(template: &str, data: &Value) -> String {
    let template = Template::parse(template).unwrap_or_else(|fault| panic!("{template}: {fault}"));
    template
        .render(data, Escape::Html, RENDERED_BYTES_MAX)
        .unwrap()
}

#[test]
fn templates_render_as_the_specification_says() {
    let cases = [
        (
            "Hello from {Mustache}!\n",
            json!({}),
            "Hello from {Mustache}!\n",
        ),
        (
            "Hello, {{subject}}!",
            json!({"subject": "world"}),
            "Hello, world!",
        ),
        (
            "{{forbidden}}",
            json!({"forbidden": "& \" < >"}),
            "&amp; &quot; &lt; &gt;",
        ),
        (
            "{{{forbidden}}}",
            json!({"forbidden": "& \" < >"}),
            "& \" < >",
        ),
        (
            "{{&forbidden}}",
            json!({"forbidden": "& \" < >"}),
            "& \" < >",
        ),
        (
            "{{mph}} miles an hour!",
            json!({"mph": 85}),
            "85 miles an hour!",
        ),
        (
            "{{power}} jiggawatts!",
            json!({"power": 1.21}),
            "1.21 jiggawatts!",
        ),
        ("I ({{cannot}}) be seen!", json!({}), "I () be seen!"),
        ("{{person.name}}", json!({"person": {"name": "Joe"}}), "Joe"),
        (
            "{{a.b.c.d.e.name}}",
            json!({"a": {"b": {"c": {"d": {"e": {"name": "Phil"}}}}}}),
            "Phil",
        ),
        (
            "{{#a}}{{b.c}}{{/a}}",
            json!({"a": {"b": {}}, "b": {"c": "ERROR"}}),
            "",
        ),
        (
            "{{#list}}{{.}},{{/list}}",
            json!({"list": [1, 2.5, "x"]}),
            "1,2.5,x,",
        ),
        ("| {{ string }} |", json!({"string": "---"}), "| --- |"),
        (
            "{{#boolean}}This{{/boolean}}",
            json!({"boolean": true}),
            "This",
        ),
        (
            "{{#boolean}}This{{/boolean}}",
            json!({"boolean": false}),
            "",
        ),
        (
            "{{#context}}Hi {{name}}.{{/context}}",
            json!({"context": {"name": "Joe"}}),
            "Hi Joe.",
        ),
        ("{{#list}}Yay{{/list}}", json!({"list": []}), ""),
        ("{{^list}}Yay{{/list}}", json!({"list": []}), "Yay"),
        ("{{^absent}}None{{/absent}}", json!({}), "None"),
        ("{{^text}}empty{{/text}}", json!({"text": ""}), "empty"),
        (
            "* first\n{{#bool}}\n* second\n{{/bool}}\n* third\n",
            json!({"bool": true}),
            "* first\n* second\n* third\n",
        ),
        (
            "|\r\n{{#boolean}}\r\n{{/boolean}}\r\n|",
            json!({"boolean": true}),
            "|\r\n|",
        ),
        (
            "  {{#boolean}}\n#{{/boolean}}\n/",
            json!({"boolean": true}),
            "#\n/",
        ),
        (
            "#{{#boolean}}\n/\n  {{/boolean}}",
            json!({"boolean": true}),
            "#\n/\n",
        ),
        (
            " {{#b}}YES{{/b}}\n {{#b}}GOOD{{/b}}\n",
            json!({"b": true}),
            " YES\n GOOD\n",
        ),
        ("12345{{! Comment Block! }}67890", json!({}), "1234567890"),
        ("Begin.\n{{! alone }}\nEnd.\n", json!({}), "Begin.\nEnd.\n"),
        (
            "{{event.dimensions.a.b/c}}",
            json!({"event": {"dimensions": {"a.b/c": "x"}}}),
            "x",
        ),
    ];
    for (template, data, expected) in cases {
        assert_eq!(
            render(template, &data),
            expected,
            "{template:?} with {data}"
        );
    }
}

#[test]
fn values_are_escaped_for_json_strings() {
    let template = Template::parse(r#"{"text":"{{x}}"}"#).unwrap();
    let data = json!({"x": "a \"quote\"\nand \u{1}"});
    let text = template.render(&data, Escape::Json, 100).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap()["text"],
        data["x"]
    );
}

#[test]
fn what_does_not_parse_is_pointed_at() {
    let cases = [
        ("{{", 1, 1, "not closed"),
        ("a\nb{{#x}}", 2, 2, "section `x` is not closed"),
        ("a{{/x}}", 1, 2, "never began"),
        ("{{#a}}{{/b}}", 1, 7, "but `a` is open"),
        ("\u{e4}\u{f6}{{>part}}", 1, 3, "partials"),
        ("{{=<% %>=}}", 1, 1, "delimiters"),
        ("{{ }}", 1, 1, "names no variable"),
        ("{{a b}}", 1, 1, "no name"),
        ("{{{x}}", 1, 1, "`}}}` is missing"),
    ];
    for (template, line, column, part) in cases {
        let fault = Template::parse(template).unwrap_err();
        assert_eq!(
            (fault.line, fault.column),
            (line, column),
            "{template}: {fault}"
        );
        assert!(fault.message.contains(part), "{template}: {fault}");
    }
    assert!(
        Template::parse(&"{{#x}}".repeat(33))
            .unwrap_err()
            .message
            .contains("deeper")
    );
    assert!(Template::parse(&"x".repeat(65_537)).is_err());
}

#[test]
fn a_template_cannot_run_for_ever_or_fill_the_memory() {
    let nested = format!("{}{}", "{{#l}}".repeat(8), "{{/l}}".repeat(8));
    let data = json!({"l": vec![1; 1000]});
    let steps = Template::parse(&nested)
        .unwrap()
        .render(&data, Escape::None, 100);
    assert_eq!(steps, Err(RenderError::TooManySteps));
    let long = Template::parse("{{#l}}xxxxxxxxxx{{/l}}")
        .unwrap()
        .render(&data, Escape::None, 100);
    assert_eq!(long, Err(RenderError::TooLong(100)));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_or_the_renderer_fail(
        text in "([a-c.{}#^/!&>= \n]|\\{\\{|\\}\\}){0,60}",
    ) {
        if let Ok(template) = Template::parse(&text) {
            let data = json!({"a": [{"b": 1}], "b": "x", "c": {"a": true}});
            prop_assert!(template.render(&data, Escape::Html, 1000).map_or(0, |text| text.len()) <= 1000);
        }
    }
}
