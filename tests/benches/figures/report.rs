//! The table of figures: printed, written to a file, and compared with an earlier one.

use std::{fmt::Write as _, path::PathBuf};

use serde_json::{Value, json};

/// The goal of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    Least(f64),
    Most(f64),
    /// None, as for a reference.
    Nothing,
}

impl Goal {
    fn text(self) -> String {
        match self {
            Self::Least(bound) => format!(">= {}", number(bound)),
            Self::Most(bound) => format!("<= {}", number(bound)),
            Self::Nothing => String::new(),
        }
    }

    fn verdict(self, value: f64) -> &'static str {
        let is_reached = match self {
            Self::Least(bound) => value >= bound,
            Self::Most(bound) => value <= bound,
            Self::Nothing => return "",
        };
        if is_reached { "reached" } else { "missed" }
    }
}

#[derive(Debug)]
pub(crate) struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    goal: Goal,
    reference: Option<(String, f64)>,
}

impl Figure {
    /// Creates a figure with its unit.
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            name: name.into(),
            value,
            unit,
            goal: Goal::Nothing,
            reference: None,
        }
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goal = goal;
        self
    }

    /// Sets the reference value, measured in the same run and in the same unit.
    pub(crate) fn beside(mut self, name: impl Into<String>, value: Option<f64>) -> Self {
        self.reference = value.map(|value| (name.into(), value));
        self
    }

    fn line(&self, earlier: Option<&Value>) -> String {
        let value = format!("{} {}", number(self.value), self.unit);
        let goal = format!(
            "{:<12}{:<9}",
            self.goal.text(),
            self.goal.verdict(self.value)
        );
        let mut line = format!("{:<46}{value:>16}  {goal}", self.name);
        if let Some((name, reference)) = &self.reference {
            let ratio = self.value / reference;
            let _ = write!(line, "  {ratio:.2} x {name} ({})", number(*reference));
        }
        let then = earlier.and_then(|rows| rows[&self.name]["value"].as_f64());
        if let Some(then) = then {
            let change = (self.value / then - 1.0) * 100.0;
            let _ = write!(line, "  {change:+.0} % since {}", number(then));
        }
        line.trim_end().to_owned()
    }
}

/// The requested rows and their results.
#[derive(Debug)]
pub(crate) struct Report {
    words: Vec<String>,
    out: Option<PathBuf>,
    earlier: Option<Value>,
    figures: Vec<Figure>,
}

impl Report {
    pub(crate) fn new(arguments: &[String]) -> Self {
        let after = |flag: &str| {
            let place = arguments.iter().position(|argument| argument == flag)?;
            arguments.get(place + 1).map(PathBuf::from)
        };
        let (out, against) = (after("--out"), after("--against"));
        let files: Vec<_> = [&out, &against].into_iter().flatten().cloned().collect();
        let is_word = |argument: &&String| {
            !argument.starts_with('-')
                && !files
                    .iter()
                    .any(|file| file.as_os_str() == argument.as_str())
        };
        let earlier = against.map(|file| {
            let text = std::fs::read_to_string(&file).expect("the file of an earlier run");
            serde_json::from_str(&text).expect("a file that --out wrote")
        });
        Self {
            words: arguments.iter().filter(is_word).cloned().collect(),
            out,
            earlier,
            figures: Vec::new(),
        }
    }

    /// Returns whether a row is requested.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| row.contains(word.as_str()))
    }

    /// Adds a figure, and prints it immediately.
    pub(crate) fn add(&mut self, figure: Figure) {
        let line = figure.line(self.earlier.as_ref());
        self.figures.push(figure);
        say(&line);
    }

    /// Writes the file, and returns the text left to print.
    pub(crate) fn finish(self) -> String {
        let rows: serde_json::Map<String, Value> = self.figures.iter().map(row).collect();
        let Some(out) = self.out else {
            return String::new();
        };
        let text = format!("{:#}\n", Value::Object(rows));
        std::fs::write(&out, text).expect("the file for --out");
        format!("written to {}\n", out.display())
    }
}

fn row(figure: &Figure) -> (String, Value) {
    let reference = figure.reference.as_ref();
    let row = json!({
        "value": figure.value,
        "unit": figure.unit,
        "goal": figure.goal.text(),
        "reference": reference.map(|(name, value)| json!({"name": name, "value": value})),
    });
    (figure.name.clone(), row)
}

pub(crate) fn say(line: &str) {
    use std::io::Write as _;
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").expect("standard output");
    output.flush().expect("standard output");
}

/// Formats a value with three significant digits, which are enough to compare.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
