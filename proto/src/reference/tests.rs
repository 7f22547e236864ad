//! Tests that the topics can be parsed and agree with the descriptors.

use std::collections::BTreeMap;

use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorSet};

use super::*;

#[test]
fn links_resolve_and_code_fences_are_closed() {
    for topic in TOPICS {
        assert!(topic.markdown.starts_with("# "), "{}", topic.name);
        assert_eq!(
            topic.markdown.matches("\n```").count() % 2,
            0,
            "{}",
            topic.name
        );
        for block in topic.blocks() {
            let texts = match block {
                Block::Paragraph(text) | Block::Item(_, text) => vec![text],
                Block::Table(rows) => {
                    let columns = rows[0].len();
                    assert!(rows.iter().all(|row| row.len() == columns), "{rows:?}");
                    rows.into_iter().flatten().collect()
                }
                Block::Heading(_) | Block::Code(..) => continue,
            };
            for text in &texts {
                for piece in parse_pieces(text) {
                    if let Piece::Link { topic: to, .. } = piece {
                        assert!(Topic::find(to).is_some(), "{}: {to}", topic.name);
                    }
                }
            }
        }
    }
}

#[test]
fn inline_markdown_is_split_without_loss() {
    let text = "a `b [c](d.md)` [e](f.md) [g] `h";
    let expected = [
        Piece::Text("a "),
        Piece::Code("b [c](d.md)"),
        Piece::Text(" "),
        Piece::Link {
            text: "e",
            topic: "f",
        },
        Piece::Text(" "),
        Piece::Text("[g] "),
        Piece::Text("`h"),
    ];
    assert_eq!(parse_pieces(text), expected);
}

#[test]
fn lines_are_parsed_into_blocks() {
    let read = parse_blocks(
        "a\nb\n\n- c\n  d\n2. e\n\n| f | g |\n|---|---|\n| h | |\n\n```json x\n# i\n```\n## j\n",
    );
    let text = |text: &str| text.to_owned();
    let expected = [
        Block::Paragraph(text("a b")),
        Block::Item(None, text("c d")),
        Block::Item(Some(text("2")), text("e")),
        Block::Table(vec![vec![text("f"), text("g")], vec![text("h"), text("")]]),
        Block::Code(text("json x"), vec![text("# i")]),
        Block::Heading(text("j")),
    ];
    assert_eq!(read, expected);
}

fn descriptors() -> FileDescriptorSet {
    FileDescriptorSet::decode(crate::FILE_DESCRIPTOR_SET).unwrap()
}

/// Returns a message type of the product, and the comments of its fields by JSON name.
fn message(name: &str) -> (DescriptorProto, BTreeMap<String, String>) {
    for file in descriptors().file {
        if file.package() != "bellwether.v1" {
            continue;
        }
        let found = file.message_type.iter().position(|it| it.name() == name);
        let Some(at) = found else { continue };
        let message = file.message_type[at].clone();
        let locations = file.source_code_info.unwrap().location;
        let comment = |field: usize| {
            let path = [
                4,
                i32::try_from(at).unwrap(),
                2,
                i32::try_from(field).unwrap(),
            ];
            let place = locations.iter().find(|it| it.path == path).unwrap();
            let words = place.leading_comments().split_whitespace();
            words.collect::<Vec<_>>().join(" ")
        };
        let fields = message.field.iter().enumerate();
        let comments = fields.map(|(at, field)| (field.json_name().to_owned(), comment(at)));
        let comments = comments.collect();
        return (message, comments);
    }
    panic!("there is no message {name}");
}

/// Returns the tables of a topic by heading, without their header rows.
fn tables(topic: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut tables = BTreeMap::new();
    let mut under = String::new();
    for block in Topic::find(topic).unwrap().blocks() {
        match block {
            Block::Heading(title) => under = title,
            Block::Table(rows) => {
                tables.insert(under.clone(), rows[1..].to_vec());
            }
            _ => {}
        }
    }
    tables
}

/// Returns the first column of a table, without backticks.
fn firsts(rows: &[Vec<String>]) -> Vec<String> {
    rows.iter()
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect()
}

#[test]
fn destination_tables_match_the_proto_comments() {
    let tables = tables("destinations");
    let (types, _) = message("DestinationType");
    let mut kinds: Vec<(String, String)> = types
        .field
        .iter()
        .map(|field| {
            let of = field.type_name().rsplit('.').next().unwrap();
            (field.name().to_owned(), of.to_owned())
        })
        .collect();
    kinds.push(("delivery".to_owned(), "DeliverySettings".to_owned()));
    assert_eq!(tables.len(), kinds.len());
    for (kind, of) in kinds {
        let (_, comments) = message(&of);
        let rows = &tables[&kind];
        let mut reported = firsts(rows);
        reported.sort();
        assert_eq!(
            reported,
            comments.keys().cloned().collect::<Vec<_>>(),
            "{kind}"
        );
        for row in rows {
            let field = row[0].trim_matches('`');
            let comment = &comments[field];
            let yes = |word: &str| if comment.contains(word) { "yes" } else { "no" };
            let required = if comment.contains("Required in place of") {
                "one"
            } else {
                yes("Required.")
            };
            assert_eq!(row[1], required, "{kind}.{field}");
            if row[2] != "some" {
                assert_eq!(row[2], yes("Secret: "), "{kind}.{field}");
            }
        }
    }
}

#[test]
fn query_clauses_are_documented_with_their_fields() {
    let rows = &tables("queries")["Clauses"];
    let (clause, _) = message("Clause");
    let known: Vec<_> = clause
        .field
        .iter()
        .map(|field| field.json_name().to_owned())
        .collect();
    assert_eq!(firsts(rows), known);
    for (row, field) in rows.iter().zip(&clause.field) {
        let (parts, _) = message(field.type_name().rsplit('.').next().unwrap());
        for part in parts.field {
            let name = format!("`{}`", part.json_name());
            assert!(row[1].contains(&name), "{}: {name}", field.json_name());
        }
    }
}
