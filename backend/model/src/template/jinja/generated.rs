//! Random templates from the grammar. None may crash the process, run for long or write a large
//! output.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use super::{FILTERS, Jinja};
use crate::{
    domain::NO_SNIPPETS,
    limits::RENDERED_BYTES_MAX,
    template::{Budget, Escape, RenderError, Variables},
};

/// Number of templates if [`TEMPLATES`] is not set.
const FEW: u64 = 3_000;
/// The variable that sets the number of templates. If it is set, their time is checked as well.
const TEMPLATES: &str = "BELLWETHER_TEST_TEMPLATES";
/// Maximum CPU time of one template, in milliseconds.
const TIME_MAX_MS: u128 = 100;

const NAMES: [&str; 26] = [
    "a",
    "n",
    "l",
    "o",
    "e",
    "m",
    "t",
    "u",
    "d",
    "w",
    "gone",
    "x0",
    "x1",
    "x2",
    "x0",
    "x1",
    "x2",
    "loop",
    "loop.index",
    "loop.last",
    "event.summary",
    "event.metadata.m",
    "event.metadata",
    "event",
    "o['a.b']",
    "timestamp_ms",
];
const LITERALS: [&str; 24] = [
    "0",
    "1",
    "2",
    "-1",
    "7.5",
    "1000000000",
    "170141183460469231731687303715884105727",
    "9e300",
    "''",
    "'x'",
    "'xx'",
    "' '",
    "'%1000000000s'",
    "'%s %d'",
    "'a.b.c'",
    "'\u{e4}\u{df}\u{3a3}'",
    "'<i>'",
    "none",
    "true",
    "false",
    "'name'",
    "'2026-01-31T07:15:30Z'",
    "'string'",
    "'%c%c%A'",
];
const PATTERNS: [&str; 14] = [
    "'x'",
    "'(x|xx){30}(x|y){20}z'",
    "'.*[^A-Z]|[A-Z]'",
    "'x*y|x'",
    "'(.)(.)'",
    "'\\\\w+'",
    "'\\\\bx'",
    "'(?i)[a-z\u{e4}]+$'",
    "'(x+x+)+y'",
    "'[^ ]* ?'",
    "''",
    "'(('",
    "'(a{50}){50}'",
    "'(?s).*'",
];
const OPERATORS: [&str; 20] = [
    "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in",
    "and", "or", "~", "+",
];
const TESTS: [&str; 12] = [
    "defined",
    "none",
    "string",
    "mapping",
    "iterable",
    "odd",
    "upper",
    "divisibleby(3)",
    "in(m)",
    "eq(x0)",
    "startingwith(t)",
    "lt(n)",
];

struct Chance(u64);

impl Chance {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn number_below(&mut self, most: usize) -> usize {
        usize::try_from(self.number() % most as u64).unwrap()
    }

    fn happens_once_in(&mut self, count: usize) -> bool {
        self.number_below(count) == 0
    }

    fn pick(&mut self, words: &[&str]) -> String {
        words[self.number_below(words.len())].to_owned()
    }

    /// Returns a number of repetitions: usually small, sometimes near or above the limit.
    fn repetitions(&mut self, limit: usize) -> usize {
        match self.number_below(40) {
            0 => limit.saturating_sub(1) + self.number_below(3),
            1 => self.number_below(limit * 20),
            _ => 1 + self.number_below(3),
        }
    }

    fn expressions(&mut self, depth: usize) -> String {
        let count = self.number_below(4);
        if self.happens_once_in(3) {
            // Repeating the same expression grows fastest.
            let one = self.expression(depth);
            return vec![one; count].join(", ");
        }
        let all: Vec<_> = (0..count).map(|_| self.expression(depth)).collect();
        all.join(", ")
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return if self.happens_once_in(3) {
                self.pick(&LITERALS)
            } else {
                self.pick(&NAMES)
            };
        }
        let depth = depth - 1;
        let inner = self.expression(depth);
        match self.number_below(22) {
            0..=2 => inner,
            3 => format!("[{}]", self.expressions(depth)),
            4 => format!("({inner}, {})", self.expression(depth)),
            5 => format!("{{'a': {inner}, {}: {inner}}}", self.expression(depth)),
            6..=8 => {
                let operator = self.pick(&OPERATORS);
                let other = self.expression(depth);
                let times = self.repetitions(100);
                inner + &format!(" {operator} {other}").repeat(times)
            }
            9 => format!(
                "{}{inner}",
                ["not ", "-", "("][self.number_below(2)].repeat(self.repetitions(100))
            ),
            10 => {
                let times = self.repetitions(16);
                let (open, end) = [("[", "]"), ("(", ")"), ("{'a':", "}")][self.number_below(3)];
                format!("{}{inner}{}", open.repeat(times), end.repeat(times))
            }
            11 => format!("({inner} if {} else {inner})", self.expression(depth)),
            12 => format!(
                "{inner}{}",
                self.pick(&[".a", ".k", "['k']", "[0]", "[-1]", ".metadata"])
                    .repeat(self.repetitions(100))
            ),
            13 => format!(
                "{inner}[{}:{}:{}]",
                self.range_bound(),
                self.range_bound(),
                self.range_bound()
            ),
            14 => format!("range({})", self.expressions(depth)),
            15 => format!(
                "{inner}{}",
                self.pick(&[
                    ".items()",
                    ".keys()",
                    ".values()",
                    ".get('k')",
                    ".get(x0, m)"
                ])
            ),
            16 => format!("{inner} is {}", self.pick(&TESTS)),
            17 => self.pick(&[
                "loop.cycle(a, l)",
                "loop.changed(x0, m)",
                "dict(a=x0, b=x0)",
                "namespace(a=1)",
            ]),
            _ => {
                let times = self.repetitions(100);
                let filters: String = (0..times.min(150)).map(|_| self.filter(depth)).collect();
                inner + &filters
            }
        }
    }

    fn range_bound(&mut self) -> String {
        self.pick(&["", "", "1", "-1", "2", "1000", "n"])
    }

    fn filter(&mut self, depth: usize) -> String {
        let name = self.pick(&FILTERS);
        let argument = self.expression(depth.min(1));
        let arguments = match name.as_str() {
            "regex_replace" => format!(
                "{}, {}",
                self.pick(&PATTERNS),
                self.pick(&["'x'", "'$1$1'", "t", "''", "'-'"])
            ),
            "map" | "select" | "reject" if self.happens_once_in(2) => {
                let names = [
                    self.pick(&FILTERS),
                    "odd".into(),
                    "defined".into(),
                    "in".into(),
                ];
                format!("'{}', {argument}", names[self.number_below(4)])
            }
            "map" => "attribute='a.b'".into(),
            "selectattr" | "rejectattr" | "groupby" => {
                self.pick(&["'a'", "'k', 'in', m", "'a.b.0.c'", "attribute='a'"])
            }
            "batch" | "slice" | "indent" | "truncate" | "round" => self.pick(&[
                "2",
                "1000000000",
                "n",
                "3, 'x'",
                "100, true",
                "bytes=9",
                "-5",
            ]),
            "replace" => format!("{}, {argument}", self.pick(&["''", "'x'", "a", "t"])),
            "sort" | "unique" | "min" | "max" | "sum" if self.happens_once_in(2) => self.pick(&[
                "attribute='a'",
                "attribute='a,b'",
                "reverse=true",
                "start=''",
                "start=0",
            ]),
            "date" => self.pick(&["'%c'", "'%Y', 'Europe/Berlin'", "t", "zone='Nowhere'"]),
            _ if self.happens_once_in(3) => argument,
            _ => return format!("|{name}"),
        };
        format!("|{name}({arguments})")
    }

    fn block(&mut self, depth: usize) -> String {
        let count = self.number_below(3) + usize::from(depth > 0);
        (0..count).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.number_below(4) {
                0 => "text \u{e4}\n".into(),
                _ => format!("{{{{ {} }}}}", self.expression(2)),
            };
        }
        let inside = self.block(depth - 1);
        let value = self.expression(2);
        let name = self.pick(&["x0", "x1", "x2", "x0, x1"]);
        match self.number_below(14) {
            0..=3 => format!("{{% for {name} in {value} %}}{inside}{{% endfor %}}"),
            4 => format!(
                "{{% for {name} in {value} if {} %}}{inside}{{% else %}}-{{% endfor %}}",
                self.expression(1)
            ),
            5 => {
                let others = format!("{{% elif {value} %}}{inside}").repeat(self.repetitions(32));
                format!("{{% if {value} %}}{inside}{others}{{% else %}}{inside}{{% endif %}}")
            }
            6 => format!("{{% set x{} = {value} %}}{inside}", self.number_below(3)),
            7 => format!(
                "{{% set x{} %}}{inside}{{% endset %}}",
                self.number_below(3)
            ),
            8 => format!("{{% with x0 = {value}, x1 = x0 %}}{inside}{{% endwith %}}"),
            9 => format!(
                "{{% filter {} %}}{inside}{{% endfilter %}}",
                self.filter(1).trim_start_matches('|')
            ),
            10 => self.nested_loops(&inside),
            11 => {
                let times = self.repetitions(32);
                format!(
                    "{}{inside}{}",
                    "{% if 1 %}".repeat(times),
                    "{% endif %}".repeat(times)
                )
            }
            12 => self.pick(&[
                "{% macro f(x) %}{{ f(x) }}{% endmacro %}",
                "{% for x in o recursive %}{{ loop(x) }}{% endfor %}",
                "{% raw %}{{ {% endraw %}",
                "{# x #}",
                "{% do x %}",
                "{% autoescape false %}{{ a }}{% endautoescape %}",
            ]),
            _ => inside,
        }
    }

    fn nested_loops(&mut self, inside: &str) -> String {
        let times = self.repetitions(32);
        let (list, tail) = match self.number_below(4) {
            0 => ("[[x0, x0]]", ""),
            1 => ("[{'a': x0, 'b': x0}]", ""),
            2 => ("[x0 ~ x0]", ""),
            _ => ("[x0|list + x0|list]", "|batch(2)"),
        };
        let open = format!("{{% for x0 in {list}{tail} %}}").repeat(times);
        let start = self.pick(&["[1]", "[t]", "[m]", "['x']", "[o]"]);
        let end = "{% endfor %}".repeat(times);
        format!("{{% for x0 in {start} %}}{open}{inside}{{{{ x0 == x0 }}}}{end}{{% endfor %}}")
    }
}

fn variables() -> Value {
    let deep = (0..24).fold(json!("x"), |inner, at| match at % 2 {
        0 => json!([inner]),
        _ => json!({"a": inner}),
    });
    let wide: serde_json::Map<_, _> = (0..500).map(|at| (format!("k{at}"), json!(at))).collect();
    let list = vec![1; 20_000];
    json!({
        "a": "<b> \"x\" @all", "n": 97.0, "l": [3, 1, 2], "o": {"k": "v", "a.b": 1, "a": {"b": [1]}}, "e": "",
        "m": list, "t": "x".repeat(60_000), "u": "\u{e4}\u{3a3} y".repeat(5_000), "d": deep, "w": wide,
        "timestamp_ms": 1_770_000_000_000_i64,
        "event": {"summary": "disk full on db-1", "metadata": {"m": [{"a": 1, "k": "v"}, {"a": {"b": 2}}]}},
    })
}

/// Returns the CPU time of this thread in milliseconds, or the elapsed time if the system does not
/// report it.
fn thread_cpu_ms(begun: Instant) -> u128 {
    let scheduled = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = scheduled.and_then(|it| it.split(' ').next()?.parse::<u128>().ok());
    nanoseconds.map_or_else(|| begun.elapsed().as_millis(), |it| it / 1_000_000)
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "an option of a test run, not configuration"
)]
fn generated_templates_stay_within_limits() {
    let wanted = std::env::var(TEMPLATES).ok();
    let count = wanted.as_ref().map_or(FEW, |it| it.parse().unwrap());
    let data = Variables::new(variables());
    let places = [
        Escape::None,
        Escape::Html,
        Escape::Json,
        Escape::Slack,
        Escape::Percent,
    ];
    let begun = Instant::now();
    let (mut parsed, mut rendered, mut exhausted, mut longest) = (0_u64, 0_u64, 0_u64, (0, 0));
    for seed in 0..count {
        let mut chance = Chance(seed);
        let depth = 1 + chance.number_below(4);
        let source = chance.block(depth);
        let place = places[chance.number_below(places.len())];
        let before = thread_cpu_ms(begun);
        if let Ok(template) = Jinja::parse(&source, &NO_SNIPPETS) {
            parsed += 1;
            match template.render(data.jinja(), place, &mut Budget::for_message()) {
                Ok(text) => {
                    rendered += 1;
                    assert!(text.len() <= RENDERED_BYTES_MAX, "seed {seed}");
                }
                Err(RenderError::Failed(_)) => {}
                Err(_limit) => exhausted += 1,
            }
        }
        let took = thread_cpu_ms(begun) - before;
        longest = longest.max((took, seed));
        if wanted.is_some() {
            assert!(took <= TIME_MAX_MS, "seed {seed}: {took} ms: {source}");
        }
    }
    let shown = format!(
        "{count} templates: {parsed} parsed, {rendered} rendered, {exhausted} stopped by a limit; the longest took \
         {} ms (seed {})",
        longest.0, longest.1
    );
    // Most templates are refused or fail; enough of them must render.
    assert!(
        parsed > count / 4 && rendered > count / 20 && exhausted > count / 500,
        "{shown}"
    );
    println!("{shown}");
}
