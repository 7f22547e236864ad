//! The reference topics as HTML pages.

use std::fmt::Write as _;

use bellwether_proto::reference::{Block, Piece, TOPICS, Topic, parse_pieces};

use super::{INFALLIBLE, escape_html, html_document, operation_anchor};

/// Renders a topic as a page, which loads no other resource except the icon.
pub(crate) fn render_topic(topic: &Topic) -> String {
    let title = escape_html(topic.title());
    let mut main = format!("<h1>{title}</h1>");
    write_blocks(topic, &mut main).expect(INFALLIBLE);
    let contents = format!(
        "<nav class=\"contents\" aria-label=\"Contents\"><h2>Reference</h2>{}</nav>",
        topic_links(Some(topic))
    );
    html_document(&title, &contents, &main, "")
}

/// Lists the topics as Markdown, in the format of `llms.txt`.
pub(crate) fn list_for_models() -> String {
    let mut list =
        "# Bellwether\n\n> A notification and event service: it ingests events, applies \
                    rules that decide who is notified, and sends messages.\n\n## Reference\n\n"
            .to_owned();
    for topic in TOPICS {
        let (name, title) = (topic.name, topic.title());
        writeln!(list, "- [{title}](/docs/{name}.md)").expect(INFALLIBLE);
    }
    list.push_str("\n## Interface\n\n- [OpenAPI](/openapi.json): every REST operation\n");
    list
}

pub(super) fn topic_links(shown: Option<&Topic>) -> String {
    let link = |topic: &Topic| {
        let (name, title) = (topic.name, escape_html(topic.title()));
        let current = if shown.is_some_and(|shown| shown.name == name) {
            " aria-current=\"page\""
        } else {
            ""
        };
        format!("<li><a href=\"/docs/{name}\"{current}>{title}</a></li>")
    };
    let links: String = TOPICS.iter().map(link).collect();
    format!("<ul>{links}</ul>")
}

fn write_blocks(topic: &Topic, out: &mut String) -> std::fmt::Result {
    let mut list = None;
    for block in topic.blocks() {
        let wanted = match &block {
            Block::Item(None, _) => Some("ul"),
            Block::Item(Some(_), _) => Some("ol"),
            _ => None,
        };
        if list != wanted {
            close_list(list, out)?;
            open_list(&block, wanted, out)?;
            list = wanted;
        }
        write_block(&block, out)?;
    }
    close_list(list, out)
}

fn open_list(block: &Block, list: Option<&str>, out: &mut String) -> std::fmt::Result {
    match (list, block) {
        // Continues the numbering of a list that was interrupted.
        (Some("ol"), Block::Item(Some(number), _)) => write!(out, "<ol start=\"{number}\">"),
        (Some(list), _) => write!(out, "<{list}>"),
        (None, _) => Ok(()),
    }
}

fn close_list(list: Option<&str>, out: &mut String) -> std::fmt::Result {
    match list {
        Some(list) => write!(out, "</{list}>"),
        None => Ok(()),
    }
}

fn write_block(block: &Block, out: &mut String) -> std::fmt::Result {
    match block {
        Block::Heading(title) => {
            let id = escape_html(&operation_anchor(title));
            write!(out, "<h2 id=\"{id}\">{}</h2>", render_prose(title))
        }
        Block::Paragraph(text) => write!(out, "<p>{}</p>", render_prose(text)),
        Block::Item(_, text) => write!(out, "<li>{}</li>", render_prose(text)),
        Block::Code(_, lines) => {
            write!(
                out,
                "<pre tabindex=\"0\"><code>{}</code></pre>",
                escape_html(&lines.join("\n"))
            )
        }
        Block::Table(rows) => {
            out.push_str("<div class=\"scroll\"><table>");
            for (at, row) in rows.iter().enumerate() {
                let cell = if at == 0 { "th" } else { "td" };
                out.push_str("<tr>");
                for text in row {
                    write!(out, "<{cell}>{}</{cell}>", render_prose(text))?;
                }
                out.push_str("</tr>");
            }
            out.push_str("</table></div>");
            Ok(())
        }
    }
}

fn render_prose(text: &str) -> String {
    let html = parse_pieces(text).into_iter().map(|piece| match piece {
        Piece::Text(text) => escape_html(text),
        Piece::Code(code) => format!("<code>{}</code>", escape_html(code)),
        Piece::Link { text, topic } => {
            format!(
                "<a href=\"/docs/{}\">{}</a>",
                escape_html(topic),
                escape_html(text)
            )
        }
    });
    html.collect()
}
