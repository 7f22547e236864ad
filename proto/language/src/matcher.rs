//! Label matchers in the syntax of Prometheus and Alertmanager: `host=~"db-.*"`.

/// A matcher of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatcherText {
    /// Name of the label.
    pub name: String,
    /// Text or regular expression.
    pub value: String,
    /// Whether the value is a regular expression, which must match the whole label.
    pub is_regex: bool,
    /// Whether the label has to match, as opposed to not match.
    pub is_equal: bool,
}

impl MatcherText {
    /// Parses a matcher such as `host=~"db-.*"`. The quotes are optional.
    pub fn parse(text: &str) -> Option<Self> {
        let trimmed = text.trim();
        let (name, rest) = if trimmed.starts_with('"') {
            unquote(trimmed)?
        } else {
            let at = trimmed.find(['=', '!'])?;
            (trimmed[..at].trim().to_owned(), &trimmed[at..])
        };
        let rest = rest.trim_start();
        let (is_equal, is_regex, value) = if let Some(value) = rest.strip_prefix("=~") {
            (true, true, value)
        } else if let Some(value) = rest.strip_prefix("!~") {
            (false, true, value)
        } else if let Some(value) = rest.strip_prefix("!=") {
            (false, false, value)
        } else {
            (true, false, rest.strip_prefix('=')?)
        };
        let value = value.trim();
        let value = match value.strip_prefix('"') {
            None => value.to_owned(),
            Some(_) => match unquote(value)? {
                (value, "") => value,
                _ => return None,
            },
        };
        (!name.is_empty()).then_some(Self {
            name,
            value,
            is_regex,
            is_equal,
        })
    }

    /// Parses a conjunction such as `{host="db-1", team=~"a|b"}`. The braces are optional.
    pub fn parse_list(text: &str) -> Option<Vec<Self>> {
        let trimmed = text.trim();
        let inner = match trimmed.strip_prefix('{') {
            Some(inner) => inner.strip_suffix('}')?,
            None => trimmed,
        };
        let inner = inner.trim();
        let inner = inner.strip_suffix(',').unwrap_or(inner);
        if inner.trim().is_empty() {
            return Some(Vec::new());
        }
        split_matchers(inner).into_iter().map(Self::parse).collect()
    }
}

fn split_matchers(text: &str) -> Vec<&str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// Returns the content of the leading quoted string, and the rest.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut found = String::new();
    let mut chars = text.strip_prefix('"')?.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((found, &text[at + 2..])),
            '\\' => match chars.next()?.1 {
                'n' => found.push('\n'),
                c @ ('"' | '\\') => found.push(c),
                c => found.extend(['\\', c]),
            },
            c => found.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matcher_list_is_split_at_unquoted_commas() {
        let table = [
            (r#"{a="b", c=~"d,e"}"#, Some(vec![("a", "b"), ("c", "d,e")])),
            (r#"a="b""#, Some(vec![("a", "b")])),
            (r#"a="\",", b!=c,"#, Some(vec![("a", "\","), ("b", "c")])),
            ("{}", Some(vec![])),
            ("{a=b", None),
            ("a=b,,c=d", None),
            (r#"a="b"c"#, None),
        ];
        for (text, expected) in table {
            let found = MatcherText::parse_list(text);
            let found = found.as_ref().map(|all| {
                let pairs = all.iter().map(|it| (&*it.name, &*it.value));
                pairs.collect::<Vec<_>>()
            });
            assert_eq!(found, expected, "{text}");
        }
    }
}
