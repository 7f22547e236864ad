//! Templates beyond the Mustache specification: places, limits, faults.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Escape, RenderError, Template};

#[test]
fn keys_may_hold_dots() {
    let data = json!({"event": {"dimensions": {"a.b/c": "whole", "a": "part", "s": ""}}});
    let template = "{{event.dimensions.a.b/c}} {{event.dimensions.a}}{{#event.dimensions.s}}!{{/event.dimensions.s}}";
    let template = Template::parse(template).unwrap();
    let text = template.render(&data, Escape::Html, 100);
    assert_eq!(text.as_deref(), Ok("whole part"));
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
    let long_name = format!("{{{{{}}}}}", "x".repeat(513));
    assert!(Template::parse(&long_name).is_err());
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
