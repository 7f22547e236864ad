//! A condition as rows: each comparison, and before those that belong together what joins them.

use bellwether_proto::filter::{self, Clause, Fault};

use crate::model::field::TextField;

/// A comparison, or what joins the rows below it that stand further in.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The depth of its indentation; only the first row is at 0.
    pub(crate) depth: usize,
    pub(crate) negated: bool,
    pub(crate) node: Node,
}

/// What is in a row.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// One of the rows in it is enough, or all have to hold.
    Group { any: bool },
    /// A condition as a filter.
    Part(TextField),
}

impl Row {
    fn part(depth: usize, text: impl Into<String>) -> Self {
        Self {
            depth,
            negated: false,
            node: Node::Part(TextField::new(text)),
        }
    }
}

/// The rows of a condition.
pub(super) fn rows_of(clause: &Clause) -> Vec<Row> {
    let mut rows = Vec::new();
    put(clause, 0, false, &mut rows);
    rows
}

fn put(clause: &Clause, depth: usize, negated: bool, rows: &mut Vec<Row>) {
    let (any, inside) = match clause {
        Clause::Not(inner) => return put(inner, depth, !negated, rows),
        Clause::And(clauses) if !filter::is_search(clause) => (false, clauses),
        Clause::Or(clauses) if !filter::is_search(clause) => (true, clauses),
        part => {
            let mut row = Row::part(depth, filter::print(part));
            row.negated = negated;
            return rows.push(row);
        }
    };
    rows.push(Row {
        depth,
        negated,
        node: Node::Group { any },
    });
    for clause in inside {
        put(clause, depth + 1, false, rows);
    }
}

/// The condition that rows are; none when nothing is in them.
///
/// # Errors
/// What is wrong with a row.
pub(super) fn clause_of(rows: &[Row]) -> Result<Option<Clause>, Fault> {
    if rows.is_empty() {
        return Ok(None);
    }
    read(rows, 0)
}

fn read(rows: &[Row], at: usize) -> Result<Option<Clause>, Fault> {
    let row = &rows[at];
    let clause = match &row.node {
        Node::Part(field) if field.text().trim().is_empty() => None,
        Node::Part(field) => Some(filter::parse(field.text(), None)?.clause),
        Node::Group { any } => {
            let mut inside = Vec::new();
            for child in children(rows, at) {
                inside.extend(read(rows, child)?);
            }
            match inside.len() {
                0 => None,
                1 => inside.pop(),
                _ if *any => Some(Clause::Or(inside)),
                _ => Some(Clause::And(inside)),
            }
        }
    };
    let negated = |clause: Clause| {
        if row.negated {
            Clause::Not(Box::new(clause))
        } else {
            clause
        }
    };
    Ok(clause.map(negated))
}

/// Where what belongs to a row ends.
fn end_of(rows: &[Row], at: usize) -> usize {
    let behind = rows.iter().skip(at + 1);
    at + 1 + behind.take_while(|row| row.depth > rows[at].depth).count()
}

fn children(rows: &[Row], at: usize) -> impl Iterator<Item = usize> {
    let depth = rows[at].depth + 1;
    (at + 1..end_of(rows, at)).filter(move |child| rows[*child].depth == depth)
}

fn parent_of(rows: &[Row], at: usize) -> Option<usize> {
    let depth = rows[at].depth;
    rows[..at].iter().rposition(|row| row.depth < depth)
}

/// The row that stands before one in the same group.
fn before(rows: &[Row], at: usize) -> Option<usize> {
    let depth = rows[at].depth;
    let found = rows[..at].iter().rposition(|row| row.depth <= depth)?;
    (rows[found].depth == depth).then_some(found)
}

/// Whether a row, or the one around it at a depth, is followed by another one there.
pub(crate) fn goes_on(rows: &[Row], at: usize, depth: usize) -> bool {
    let mut behind = rows.iter().skip(at + 1);
    let next = behind.find(|row| row.depth <= depth);
    next.is_some_and(|row| row.depth == depth)
}

/// Adds an empty row after one, first in it when that is a group, at the end where there is none;
/// says where it is.
pub(super) fn add(rows: &mut Vec<Row>, after: Option<usize>) -> usize {
    if rows.is_empty() {
        rows.push(Row::part(0, ""));
        return 0;
    }
    if let Node::Part(_) = rows[0].node {
        rows[0].depth = 1;
        let group = Node::Group { any: false };
        rows.insert(
            0,
            Row {
                depth: 0,
                negated: false,
                node: group,
            },
        );
        rows.push(Row::part(1, ""));
        return 2;
    }
    let (at, depth) = match after.filter(|at| *at < rows.len()) {
        None => (rows.len(), 1),
        Some(at) if matches!(rows[at].node, Node::Group { .. }) => (at + 1, rows[at].depth + 1),
        Some(at) => (at + 1, rows[at].depth),
    };
    rows.insert(at, Row::part(depth, ""));
    at
}

/// Removes a row with what is in it, and groups that are left empty; says where one is then.
pub(super) fn remove(rows: &mut Vec<Row>, at: usize) -> usize {
    let mut at = at;
    loop {
        let parent = parent_of(rows, at);
        rows.drain(at..end_of(rows, at));
        match parent {
            Some(parent) if children(rows, parent).next().is_none() => at = parent,
            _ => break,
        }
    }
    // What is alone needs nothing around it.
    if let [root, only] = &mut rows[..]
        && matches!(only.node, Node::Part(_))
    {
        only.depth = 0;
        only.negated ^= root.negated;
        rows.remove(0);
        return 0;
    }
    at.min(rows.len().saturating_sub(1))
}

/// Puts a row into the group before it, or into a new one with the row before it; says where it is.
///
/// # Errors
/// There is none before it; a sentence for people.
pub(super) fn nest(rows: &mut Vec<Row>, at: usize) -> Result<usize, String> {
    let Some(first) = before(rows, at) else {
        return Err("there is nothing before it that it could be joined with".to_owned());
    };
    let depth = rows[at].depth;
    let end = end_of(rows, at);
    if matches!(rows[first].node, Node::Group { .. }) {
        for row in &mut rows[at..end] {
            row.depth += 1;
        }
        return Ok(at);
    }
    let parent = parent_of(rows, at).map(|parent| &rows[parent].node);
    let any = !matches!(parent, Some(Node::Group { any: true }));
    for row in &mut rows[first..end] {
        row.depth += 1;
    }
    let group = Row {
        depth,
        negated: false,
        node: Node::Group { any },
    };
    rows.insert(first, group);
    Ok(at + 1)
}

/// Takes a row out of its group, behind it; says where it is.
///
/// # Errors
/// It is in none; a sentence for people.
pub(super) fn unnest(rows: &mut Vec<Row>, at: usize) -> Result<usize, String> {
    let group = parent_of(rows, at).filter(|parent| rows[*parent].depth > 0);
    let Some(group) = group else {
        return Err("it is in no group".to_owned());
    };
    let end = end_of(rows, group);
    let own = end_of(rows, at) - at;
    for row in &mut rows[at..at + own] {
        row.depth -= 1;
    }
    rows[at..end].rotate_left(own);
    let at = end - own;
    if children(rows, group).next().is_none() {
        rows.remove(group);
        return Ok(at - 1);
    }
    Ok(at)
}
