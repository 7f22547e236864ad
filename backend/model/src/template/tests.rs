//! Templates beyond the Mustache specification: escaping, limits, errors.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Budget, Escape, RenderError, Template};
use crate::limits::{MESSAGE_STEPS_MAX, TEMPLATE_STEPS_MAX};

/// Returns a budget with `max` bytes of output, and the default number of steps.
fn bytes(max: usize) -> Budget {
    Budget::new(MESSAGE_STEPS_MAX, TEMPLATE_STEPS_MAX, max)
}

#[test]
fn keys_may_contain_dots() {
    let data = json!({"event": {"dimensions": {"a.b/c": "whole", "a": "part", "s": ""}}});
    let template = "{{event.dimensions.a.b/c}} {{event.dimensions.a}}{{#event.dimensions.s}}!{{/event.dimensions.s}}";
    let template = Template::parse(template).unwrap();
    let text = template.render(&data, Escape::Html, &mut bytes(100));
    assert_eq!(text.as_deref(), Ok("whole part"));
}

#[test]
fn number_in_a_name_selects_a_list_entry() {
    let data = json!({
        "list": [{"text": "first", "tags": ["a", "b"]}, {"text": "second"}],
        "0": "key",
        "grid": [[1, 2], [3, 4]],
        "object": {"0": "member"},
    });
    for (source, expected) in [
        ("{{list.0.text}} {{list.1.text}}", "first second"),
        ("{{list.0.tags.1}}", "b"),
        ("{{grid.1.0}}{{#grid}}<{{1}}>{{/grid}}", "3<2><4>"),
        (
            "{{#list.0}}{{text}}{{/list.0}}{{^list.2}}none{{/list.2}}",
            "firstnone",
        ),
        ("{{0}} {{object.0}}", "key member"),
        (
            "{{list.2.text}}{{list.-1.text}}{{list.+1.text}}{{list.00.text}}",
            "",
        ),
        (
            "{{list.x}}{{list.99999999999999999999}}{{list.0.text.0}}",
            "",
        ),
        ("{{#list}}{{0}}{{/list}}", "keykey"),
    ] {
        let text = Template::parse(source)
            .unwrap()
            .render(&data, Escape::None, &mut bytes(100));
        assert_eq!(text.as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn values_are_escaped_for_json_strings() {
    let template = Template::parse(r#"{"text":"{{x}}"}"#).unwrap();
    let data = json!({"x": "a \"quote\"\nand \u{1}"});
    let text = template
        .render(&data, Escape::Json, &mut bytes(100))
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap()["text"],
        data["x"]
    );
}

#[test]
fn parse_errors_report_line_and_column() {
    let cases = [
        ("{{", 1, 1, "not closed"),
        ("a\nb{{#x}}", 2, 2, "section `x` is not closed"),
        ("a{{/x}}", 1, 2, "was never opened"),
        ("{{#a}}{{/b}}", 1, 7, "but `a` is open"),
        (
            "\u{e4}\u{f6}{{>part}}",
            1,
            3,
            "no template `part` to include",
        ),
        ("{{=<% %>=}}", 1, 1, "delimiters"),
        ("{{ }}", 1, 1, "has no variable name"),
        ("{{a b}}", 1, 1, "not a valid variable name"),
        ("{{{x}}", 1, 1, "`}}}` is missing"),
    ];
    for (template, line, column, part) in cases {
        let error = Template::parse(template).unwrap_err();
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{template}: {error}"
        );
        assert!(error.message.contains(part), "{template}: {error}");
    }
    assert!(
        Template::parse(&"{{#x}}".repeat(33))
            .unwrap_err()
            .message
            .contains("nested more than")
    );
    assert!(Template::parse(&"x".repeat(65_537)).is_err());
    let long_name = format!("{{{{{}}}}}", "x".repeat(513));
    assert!(Template::parse(&long_name).is_err());
}

#[test]
fn template_steps_and_output_are_limited() {
    let nested = format!("{}{}", "{{#l}}".repeat(8), "{{/l}}".repeat(8));
    let data = json!({"l": vec![1; 1000]});
    let steps = Template::parse(&nested)
        .unwrap()
        .render(&data, Escape::None, &mut bytes(100));
    assert_eq!(steps, Err(RenderError::TooManySteps(TEMPLATE_STEPS_MAX)));
    let long = Template::parse("{{#l}}xxxxxxxxxx{{/l}}").unwrap().render(
        &data,
        Escape::None,
        &mut bytes(100),
    );
    assert_eq!(long, Err(RenderError::TooLong(100)));
}

/// Returns small templates that would be very expensive.
fn costly() -> Vec<(&'static str, String, Value)> {
    let list = |entries: usize| json!({"m": vec![1; entries]});
    let within = |open: &str, times: usize, inside: &str| {
        let name = open.trim_start_matches("{{#").trim_end_matches("}}");
        let end = format!("{{{{/{name}}}}}");
        format!("{}{inside}{}", open.repeat(times), end.repeat(times))
    };
    let long = "n.".repeat(255) + "nn";
    let deep = (0..30).fold(json!("x"), |inner, _| json!({"n": inner, "m": [1, 2]}));
    vec![
        ("empty sections", within("{{#m}}", 2, ""), list(1_000_000)),
        ("three of them", within("{{#m}}", 3, ""), list(1_000_000)),
        ("as deep as they go", within("{{#m}}", 32, "x"), list(3)),
        ("entries put", within("{{#m}}", 2, "{{.}}"), list(30_000)),
        (
            "names of 512 bytes",
            within("{{#m}}", 2, &format!("{{{{{long}}}}}")),
            list(30_000),
        ),
        (
            "sections of such names",
            within("{{#m}}", 1, &within(&format!("{{{{#{long}}}}}"), 31, "")),
            json!({"m": vec![deep; 3_000]}),
        ),
        (
            "a list as JSON",
            within("{{#m}}", 1, "{{m}}"),
            list(1_000_000),
        ),
        (
            "long texts",
            within("{{#m}}", 1, "{{t}}{{t}}"),
            json!({"m": vec![1; 30_000], "t": "x".repeat(60_000)}),
        ),
    ]
}

#[test]
fn costly_templates_fail_quickly() {
    for (what, template, data) in costly() {
        let template = Template::parse(&template).unwrap();
        let mut budget = Budget::for_message();
        let begun = Instant::now();
        let rendered = template.render(&data, Escape::Html, &mut budget);
        assert!(rendered.is_err(), "{what} was rendered");
        // An unoptimized build that runs next to other tests takes about ten times as long.
        assert!(begun.elapsed() < Duration::from_secs(1), "{what}");
    }
}

#[test]
fn templates_of_one_message_share_a_step_budget() {
    let template = Template::parse("{{#m}}x{{/m}}").unwrap();
    let data = json!({"m": vec![1; 40_000]});
    let mut budget = Budget::for_message();
    let rendered = (0..10).map(|_| template.render(&data, Escape::None, &mut budget));
    let whole = rendered.take_while(Result::is_ok).count();
    assert_eq!(whole, 2, "80,002 steps each of 200,000");
    let next = Template::parse("x").unwrap();
    let error = next.render(&data, Escape::None, &mut budget);
    assert_eq!(error, Err(RenderError::TooManySteps(MESSAGE_STEPS_MAX)));
}

#[test]
fn longest_event_list_is_rendered_whole() {
    let data = json!({"m": vec![1; 30_000]});
    for template in ["{{#m}}{{.}},{{/m}}", "{{{m}}}"] {
        let template = Template::parse(template).unwrap();
        let rendered = template.render(&data, Escape::None, &mut Budget::for_message());
        assert!(rendered.is_ok_and(|text| text.len() > 60_000 - 2));
    }
}

proptest! {
    #[test]
    fn parser_and_renderer_never_panic_on_arbitrary_text(
        text in "([a-c.{}#^/!&>= \n]|\\{\\{|\\}\\}){0,60}",
    ) {
        if let Ok(template) = Template::parse(&text) {
            let data = json!({"a": [{"b": 1}], "b": "x", "c": {"a": true}});
            prop_assert!(template.render(&data, Escape::Html, &mut bytes(1000)).map_or(0, |text| text.len()) <= 1000);
        }
    }
}
