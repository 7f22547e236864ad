//! Isolates malformed entries of a list, so that the rest of a body can be parsed.
//!
//! A JSON parser rejects the whole text if it contains a number out of the range of a double, a
//! lone surrogate, or nesting that is too deep. The structure of such a text is still clear.

use std::ops::Range;

use serde_json::Value;

const ENTRIES: usize = super::limits::REFUSED_ENTRIES;

/// Location of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List<'a> {
    /// The body itself is the list.
    Root,
    /// A member of the outermost object.
    Member(&'a str),
    /// All members of that name at any depth.
    Any(&'a str),
}

/// A body in which malformed entries are replaced by `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolatedBody {
    /// The body.
    pub body: Vec<u8>,
    /// The malformed entries in order: index and error.
    pub broken: Vec<(usize, String)>,
}

/// Isolates the malformed entries of a list. Returns `None` if there is no such list, if no entry
/// is malformed, or if the structure of the body is malformed.
pub fn isolate_malformed(body: &[u8], list: List<'_>) -> Option<IsolatedBody> {
    let mut isolated = IsolatedBody {
        body: Vec::with_capacity(body.len()),
        broken: Vec::new(),
    };
    let mut copied = 0;
    for (place, entry) in split_entries(body, list)? {
        let Err(error) = serde_json::from_slice::<Value>(&body[entry.clone()]) else {
            continue;
        };
        if isolated.broken.len() == ENTRIES {
            return None;
        }
        isolated.broken.push((place, error.to_string()));
        isolated.body.extend_from_slice(&body[copied..entry.start]);
        isolated.body.extend_from_slice(b"null");
        copied = entry.end;
    }
    isolated.body.extend_from_slice(&body[copied..]);
    (!isolated.broken.is_empty()).then_some(isolated)
}

type Entry = (usize, Range<usize>);

fn split_entries(body: &[u8], list: List<'_>) -> Option<Vec<Entry>> {
    let mut found = Vec::new();
    let (mut at, mut depth) = (skip_blanks(body, 0), 0_usize);
    let (name, most) = match list {
        List::Root => return list_end(body, at, &mut found).map(|_| found),
        List::Member(name) => (name, 1),
        List::Any(name) => (name, usize::MAX),
    };
    while let Some(byte) = body.get(at) {
        match byte {
            b'{' | b'[' => (at, depth) = (at + 1, depth + 1),
            b'}' | b']' => (at, depth) = (at + 1, depth.checked_sub(1)?),
            b'"' => {
                let end = string_end(body, at)?;
                let is_it = body[at + 1..end - 1] == *name.as_bytes() && depth <= most;
                at = skip_blanks(body, end);
                if is_it && body.get(at) == Some(&b':') {
                    at = skip_blanks(body, at + 1);
                    if body.get(at) == Some(&b'[') {
                        at = list_end(body, at, &mut found)?;
                    }
                }
            }
            _ => at += 1,
        }
    }
    Some(found)
}

/// Collects the elements of the list at `start`. Returns its end.
fn list_end(body: &[u8], start: usize, found: &mut Vec<Entry>) -> Option<usize> {
    if body.get(start) != Some(&b'[') {
        return None;
    }
    let mut at = skip_blanks(body, start + 1);
    if body.get(at) == Some(&b']') {
        return Some(at + 1);
    }
    for place in 0.. {
        let end = value_end(body, at)?;
        found.push((place, at..end));
        match body[end] {
            b',' => at = skip_blanks(body, end + 1),
            b']' => return Some(end + 1),
            _ => return None,
        }
    }
    None
}

/// Returns the end of the value at `start`: an unnested comma or closing bracket.
fn value_end(body: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match body.get(at)? {
            b'"' => at = string_end(body, at)?,
            b',' | b'}' | b']' if depth == 0 => return Some(at),
            b'{' | b'[' => (at, depth) = (at + 1, depth + 1),
            b'}' | b']' => (at, depth) = (at + 1, depth - 1),
            _ => at += 1,
        }
    }
}

fn string_end(body: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match body.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

fn skip_blanks(body: &[u8], start: usize) -> usize {
    let rest = body.get(start..).unwrap_or_default();
    let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
    start + blanks.count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn malformed_entry_is_isolated_from_the_rest() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for broken in ["1e400", r#""\ud800""#, &deep, "tru", r#"{"a" 1}"#, "1 2"] {
            let entry = format!(r#"{{"x": {broken}, "y": ["]", "\""]}}"#);
            let table = [
                (format!("[1, {entry} , {{}}]"), List::Root),
                (
                    format!(r#"{{"a": [], "list": [1, {entry}, {{}}]}}"#),
                    List::Member("list"),
                ),
                (
                    format!(r#"{{"a": [{{"list" : [ 1,{entry},{{}} ]}}, {{"list": []}}]}}"#),
                    List::Any("list"),
                ),
            ];
            for (body, list) in table {
                let isolated =
                    isolate_malformed(body.as_bytes(), list).unwrap_or_else(|| panic!("{body}"));
                let places: Vec<_> = isolated.broken.iter().map(|(place, _)| *place).collect();
                assert_eq!(places, [1], "{body}");
                let read: Value = serde_json::from_slice(&isolated.body).unwrap();
                assert!(read.to_string().contains("[1,null,{}]"), "{read}");
            }
        }
    }

    #[test]
    fn malformed_json_outside_the_list_is_not_repaired() {
        for (body, list) in [
            ("[1, 2]", List::Root),
            ("[1, 1e400", List::Root),
            ("{}", List::Root),
            ("", List::Root),
            (r#"{"a": {"list": [1e400]}}"#, List::Member("list")),
            (r#"{"list": 1e400}"#, List::Member("list")),
            (r#"{"list": [1e400}"#, List::Member("list")),
        ] {
            assert_eq!(isolate_malformed(body.as_bytes(), list), None, "{body}");
        }
    }

    proptest! {
        #[test]
        fn isolate_never_panics(body in "[\\[\\]{}\",:\\\\ a1e]{0,60}") {
            for list in [List::Root, List::Member("a"), List::Any("a")] {
                isolate_malformed(body.as_bytes(), list);
            }
        }
    }
}
