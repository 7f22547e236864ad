//! The reference topics, in a subset of Markdown, and the parser of that subset.

/// A reference topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The name in URLs and links, such as `templates`.
    pub name: &'static str,
    /// The whole topic as Markdown; the first line is the title.
    pub markdown: &'static str,
}

macro_rules! topics {
    ($($name:literal),+ $(,)?) => {
        /// All topics, in reading order.
        pub const TOPICS: &[Topic] = &[$(Topic {
            name: $name,
            markdown: include_str!(concat!("../reference/", $name, ".md")),
        }),+];
    };
}

topics!(
    "templates",
    "messages",
    "queries",
    "filters",
    "notifications",
    "silences",
    "calendars",
    "inhibitions",
    "heartbeats",
    "on-call",
    "destinations",
    "card",
    "webhook",
    "chat",
    "senders",
    "alertmanager",
    "mappings",
    "enrichment",
    "own-events",
    "metrics",
);

impl Topic {
    /// Returns the topic of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        TOPICS.iter().find(|topic| topic.name == name)
    }

    /// Returns the title.
    pub fn title(&self) -> &'static str {
        let first = self.markdown.lines().next().unwrap_or_default();
        first.trim_start_matches('#').trim()
    }

    /// Returns the blocks after the title, in order.
    pub fn blocks(&self) -> Vec<Block> {
        let rest = self.markdown.split_once('\n').map_or("", |(_, rest)| rest);
        parse_blocks(rest)
    }
}

/// Returns the template variables, in the order of their table; one with an arbitrary key ends with
/// `KEY`.
pub fn template_variables() -> Vec<&'static str> {
    names_of_templates("\n## Variables\n")
}

/// Returns the Jinja template filters, in the order of their table.
pub fn template_filters() -> Vec<&'static str> {
    let examples = names_of_templates("\n## Filters\n").into_iter();
    let name = |example: &'static str| example.split('(').next();
    examples.filter_map(name).collect()
}

fn names_of_templates(heading: &str) -> Vec<&'static str> {
    let templates = Topic::find("templates").map_or("", |topic| topic.markdown);
    let table = templates.split(heading).nth(1).unwrap_or_default();
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).collect()
}

/// A block of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// Text; parse it with [`parse_pieces`].
    Paragraph(String),
    /// A list item, with its number if it has one.
    Item(Option<String>, String),
    /// Rows of cells, with the header first; each cell is text.
    Table(Vec<Vec<String>>),
    /// A code block, with the word after the fence, such as `json`.
    Code(String, Vec<String>),
}

/// A span of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Plain text.
    Text(&'a str),
    /// Code.
    Code(&'a str),
    /// A link to the file of a topic, such as `templates.md`.
    Link {
        /// The link text.
        text: &'a str,
        /// Name of the topic.
        topic: &'a str,
    },
}

fn parse_blocks(markdown: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    // Whether the next line can continue the last block.
    let mut open = false;
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let code = lines.by_ref().take_while(|line| *line != "```");
            blocks.push(Block::Code(
                info.to_owned(),
                code.map(str::to_owned).collect(),
            ));
            open = false;
        } else if line.trim().is_empty() {
            open = false;
        } else if line.starts_with('#') {
            let title = line.trim_start_matches('#').trim();
            blocks.push(Block::Heading(title.to_owned()));
            open = false;
        } else if line.starts_with('|') {
            add_row(&mut blocks, line, open);
            open = true;
        } else if let Some((number, text)) = parse_item(line) {
            blocks.push(Block::Item(number, text.to_owned()));
            open = true;
        } else {
            match blocks.last_mut().filter(|_| open) {
                Some(Block::Paragraph(text) | Block::Item(_, text)) => {
                    text.push(' ');
                    text.push_str(line.trim());
                }
                _ => blocks.push(Block::Paragraph(line.trim().to_owned())),
            }
            open = true;
        }
    }
    blocks
}

fn add_row(blocks: &mut Vec<Block>, line: &str, open: bool) {
    let inner = line.trim().trim_matches('|');
    let cells: Vec<String> = inner
        .split('|')
        .map(|cell| cell.trim().to_owned())
        .collect();
    if cells.iter().all(|cell| cell.starts_with("---")) {
        return;
    }
    match blocks.last_mut().filter(|_| open) {
        Some(Block::Table(rows)) => rows.push(cells),
        _ => blocks.push(Block::Table(vec![cells])),
    }
}

fn parse_item(line: &str) -> Option<(Option<String>, &str)> {
    if let Some(text) = line.strip_prefix("- ") {
        return Some((None, text));
    }
    let (number, text) = line.split_once(". ")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (Some(number.to_owned()), text))
}

/// Splits text into spans.
pub fn parse_pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let code = rest.starts_with('`').then(|| rest[1..].split_once('`'));
        let link = rest.starts_with('[').then(|| parse_link(rest));
        if let Some(Some((inner, after))) = code {
            pieces.push(Piece::Code(inner));
            rest = after;
        } else if let Some(Some((text, topic, after))) = link {
            pieces.push(Piece::Link { text, topic });
            rest = after;
        } else {
            let mut starts = rest.char_indices().skip(1);
            let next = starts.find(|(_, char)| matches!(char, '`' | '['));
            let next = next.map_or(rest.len(), |(at, _)| at);
            pieces.push(Piece::Text(&rest[..next]));
            rest = &rest[next..];
        }
    }
    pieces
}

fn parse_link(text: &str) -> Option<(&str, &str, &str)> {
    let (shown, rest) = text[1..].split_once("](")?;
    let (file, rest) = rest.split_once(')')?;
    let topic = file.strip_suffix(".md")?;
    let plain = !shown.contains('[') && !topic.contains(char::is_whitespace);
    plain.then_some((shown, topic, rest))
}

#[cfg(test)]
mod tests;
