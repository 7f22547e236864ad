//! The reference topics as HTML pages.

use std::fmt::Write as _;

use bellwether_proto::reference::{Block, Piece, TOPICS, Topic, pieces};

use super::{INFALLIBLE, STYLE, escaped};

/// What topics look like beside the style of all pages.
const TOPIC_STYLE: &str = "pre{overflow-x:auto;padding:.8rem;background:#f3f4f6;line-height:1.35}\
    th{text-align:left;padding-right:.8rem}nav a{margin-right:1rem}\
    @media(prefers-color-scheme:dark){pre{background:#23262b}}";

/// One page a topic; it needs no other resource.
pub(crate) fn page(topic: &Topic) -> String {
    let mut page = String::new();
    write_page(topic, &mut page).expect(INFALLIBLE);
    page
}

/// A list of links to all topics.
pub(super) fn links() -> String {
    let link = |topic: &Topic| {
        let (name, title) = (topic.name, escaped(topic.title()));
        format!("<li><a href=\"/docs/{name}\">{title}</a></li>")
    };
    let links: String = TOPICS.iter().map(link).collect();
    format!("<ul>{links}</ul>")
}

fn write_page(topic: &Topic, out: &mut String) -> std::fmt::Result {
    let title = escaped(topic.title());
    write!(
        out,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{STYLE}{TOPIC_STYLE}</style>\
         </head><body><nav><a href=\"/docs\">Interface</a>"
    )?;
    for other in TOPICS {
        let (name, title) = (other.name, escaped(other.title()));
        if name == topic.name {
            write!(out, "<b>{title}</b> ")?;
        } else {
            write!(out, "<a href=\"/docs/{name}\">{title}</a>")?;
        }
    }
    write!(out, "</nav><h1>{title}</h1>")?;
    let mut list = None;
    for block in topic.blocks() {
        let wanted = match &block {
            Block::Item(None, _) => Some("ul"),
            Block::Item(Some(_), _) => Some("ol"),
            _ => None,
        };
        if list != wanted {
            close(list, out)?;
            open(&block, wanted, out)?;
            list = wanted;
        }
        write_block(&block, out)?;
    }
    close(list, out)?;
    out.push_str("</body></html>");
    Ok(())
}

fn open(block: &Block, list: Option<&str>, out: &mut String) -> std::fmt::Result {
    match (list, block) {
        // A list that was interrupted goes on counting.
        (Some("ol"), Block::Item(Some(number), _)) => write!(out, "<ol start=\"{number}\">"),
        (Some(list), _) => write!(out, "<{list}>"),
        (None, _) => Ok(()),
    }
}

fn close(list: Option<&str>, out: &mut String) -> std::fmt::Result {
    match list {
        Some(list) => write!(out, "</{list}>"),
        None => Ok(()),
    }
}

fn write_block(block: &Block, out: &mut String) -> std::fmt::Result {
    match block {
        Block::Heading(title) => {
            let id = title.to_lowercase().replace(' ', "-");
            write!(out, "<h2 id=\"{}\">{}</h2>", escaped(&id), prose(title))
        }
        Block::Paragraph(text) => write!(out, "<p>{}</p>", prose(text)),
        Block::Item(_, text) => write!(out, "<li>{}</li>", prose(text)),
        Block::Code(_, lines) => {
            write!(
                out,
                "<pre><code>{}</code></pre>",
                escaped(&lines.join("\n"))
            )
        }
        Block::Table(rows) => {
            out.push_str("<table>");
            for (at, row) in rows.iter().enumerate() {
                let cell = if at == 0 { "th" } else { "td" };
                out.push_str("<tr>");
                for text in row {
                    write!(out, "<{cell}>{}</{cell}>", prose(text))?;
                }
                out.push_str("</tr>");
            }
            out.push_str("</table>");
            Ok(())
        }
    }
}

fn prose(text: &str) -> String {
    let html = pieces(text).into_iter().map(|piece| match piece {
        Piece::Text(text) => escaped(text),
        Piece::Code(code) => format!("<code>{}</code>", escaped(code)),
        Piece::Link { text, topic } => {
            format!("<a href=\"/docs/{}\">{}</a>", escaped(topic), escaped(text))
        }
    });
    html.collect()
}
