//! Routes a method and a raw (still encoded) path to an operation.

use std::collections::BTreeMap;

use http::Method;
use percent_encoding::percent_decode_str;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) text: Box<str>,
    /// Segments; `None` is a capture.
    pub(crate) segments: Vec<Option<Box<str>>>,
    pub(crate) captures: Vec<Box<str>>,
    pub(crate) verb: Option<Box<str>>,
}

impl Template {
    /// Parses a path such as `/v1/events/{id}:explain`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let path = text.strip_prefix('/').ok_or("a path must start with `/`")?;
        let verb_at = path
            .rfind(':')
            .filter(|at| !path[*at..].contains(['/', '}']));
        let (path, verb) = match verb_at {
            Some(at) => (&path[..at], Some(Box::from(&path[at + 1..]))),
            None => (path, None),
        };
        let mut template = Self {
            text: text.into(),
            segments: Vec::new(),
            captures: Vec::new(),
            verb,
        };
        for segment in path.split('/') {
            let inner = segment
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'));
            match inner {
                Some(field) => {
                    let field = field.strip_suffix("=*").unwrap_or(field);
                    if field.is_empty() || field.contains(['=', '*', '{', '}']) {
                        return Err(format!("`{segment}` captures more than one segment"));
                    }
                    template.captures.push(field.into());
                    template.segments.push(None);
                }
                None if segment.is_empty() || segment.contains(['*', '{', '}', ':']) => {
                    return Err(format!("`{segment}` is not a plain segment"));
                }
                None => template.segments.push(Some(segment.into())),
            }
        }
        Ok(template)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RouteMatch<'p> {
    /// The index of an operation, and the captured segments, still encoded.
    Operation(usize, Vec<&'p str>),
    /// The path exists, but not with this method; contains the allowed methods in order.
    WrongMethod(Vec<Method>),
    Nothing,
}

#[derive(Debug, Default)]
pub(crate) struct Router {
    root: RouteNode,
}

#[derive(Debug, Default)]
struct RouteNode {
    literals: BTreeMap<Box<str>, RouteNode>,
    capture: Option<Box<RouteNode>>,
    plain: Methods,
    verbs: BTreeMap<Box<str>, Methods>,
}

type Methods = BTreeMap<MethodName, usize>;
type MethodName = Box<str>;

impl Router {
    pub(crate) fn add(
        &mut self,
        method: &Method,
        template: &Template,
        operation: usize,
    ) -> Result<(), String> {
        let mut node = &mut self.root;
        for segment in &template.segments {
            node = match segment {
                Some(literal) => node.literals.entry(literal.clone()).or_default(),
                None => node.capture.get_or_insert_default(),
            };
        }
        let methods = match &template.verb {
            Some(verb) => node.verbs.entry(verb.clone()).or_default(),
            None => &mut node.plain,
        };
        match methods.insert(method.as_str().into(), operation) {
            None => Ok(()),
            Some(_) => Err(format!("two operations use {method} {}", template.text)),
        }
    }

    /// Finds the operation for a method and a raw path. Literal segments take precedence over
    /// captures. The text after the last colon is a verb if any method has that verb on the path;
    /// otherwise it is part of the segment. `%3A` never starts a verb. HEAD is treated as GET.
    pub(crate) fn find<'p>(&self, method: &Method, path: &'p str) -> RouteMatch<'p> {
        let wanted = if *method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let mut search = RouteSearch {
            method: wanted.as_str(),
            captures: Vec::new(),
            allowed: Vec::new(),
        };
        let Some(path) = path.strip_prefix('/') else {
            return RouteMatch::Nothing;
        };
        match search.match_node(&self.root, path) {
            Some(operation) => RouteMatch::Operation(operation, search.captures),
            None if search.allowed.is_empty() => RouteMatch::Nothing,
            None => RouteMatch::WrongMethod(search.allowed),
        }
    }
}

struct RouteSearch<'p, 'm> {
    method: &'m str,
    captures: Vec<&'p str>,
    allowed: Vec<Method>,
}

impl<'p> RouteSearch<'p, '_> {
    fn match_node(&mut self, node: &RouteNode, path: &'p str) -> Option<usize> {
        let (segment, rest) = match path.split_once('/') {
            Some((segment, rest)) => (segment, Some(rest)),
            None => (path, None),
        };
        if segment.is_empty() {
            return None;
        }
        let Some(rest) = rest else {
            let verb = segment.rsplit_once(':');
            return verb
                .and_then(|(value, verb)| self.find_end(node, value, Some(verb)))
                .or_else(|| self.find_end(node, segment, None));
        };
        let literal = node.literals.get(segment);
        literal
            .and_then(|next| self.match_node(next, rest))
            .or_else(|| self.capture_segment(node, segment, |it, next| it.match_node(next, rest)))
    }

    /// Finds the last segment of a path. A known verb takes precedence, so that `GET /x:retry` is a
    /// wrong method, not a resource called `x:retry`.
    fn find_end(&mut self, node: &RouteNode, value: &'p str, verb: Option<&str>) -> Option<usize> {
        if verb.is_none() && !self.allowed.is_empty() {
            return None;
        }
        let literal = node
            .literals
            .get(value)
            .and_then(|next| self.choose(next, verb));
        literal.or_else(|| self.capture_segment(node, value, |it, next| it.choose(next, verb)))
    }

    fn capture_segment(
        &mut self,
        node: &RouteNode,
        value: &'p str,
        go_on: impl FnOnce(&mut Self, &RouteNode) -> Option<usize>,
    ) -> Option<usize> {
        let next = node.capture.as_ref().filter(|_| !value.is_empty())?;
        self.captures.push(value);
        let found = go_on(self, next);
        if found.is_none() {
            self.captures.pop();
        }
        found
    }

    fn choose(&mut self, node: &RouteNode, verb: Option<&str>) -> Option<usize> {
        let methods = match verb {
            Some(verb) => node.verbs.get(verb)?,
            None => &node.plain,
        };
        let found = methods.get(self.method).copied();
        if found.is_none() {
            for name in methods.keys() {
                let method = name.parse().expect("names are derived from methods");
                self.allowed.push(method);
                if &**name == "GET" {
                    self.allowed.push(Method::HEAD);
                }
            }
        }
        found
    }
}

/// Decodes a captured segment once: `%2F` becomes a slash in the value. `None` if the encoding is
/// invalid or the bytes are not UTF-8.
pub(crate) fn decode_segment(segment: &str) -> Option<String> {
    let complete = segment
        .bytes()
        .enumerate()
        .filter(|(_, byte)| *byte == b'%')
        .all(|(at, _)| {
            segment
                .as_bytes()
                .get(at + 1..at + 3)
                .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
        });
    if !complete {
        return None;
    }
    percent_decode_str(segment)
        .decode_utf8()
        .ok()
        .map(Into::into)
}
