//! Entity tags in headers.

/// Separates the etag of a resource from the hash of the response.
const HASH_MARK: char = '.';

/// Returns the tag of a response, without quotes: the etag of the resource in it, if any, followed
/// by a hash of the response.
pub(crate) fn response_tag(resource: Option<&str>, hash: u64) -> String {
    match resource.map(unquote_tag) {
        Some(resource) => format!("{resource}{HASH_MARK}{hash:016x}"),
        None => format!("{hash:016x}"),
    }
}

pub(crate) fn resource_part(tag: &str) -> &str {
    tag.split_once(HASH_MARK)
        .map_or(tag, |(resource, _)| resource)
}

pub(crate) fn parse_list(text: &str) -> impl Iterator<Item = &str> {
    let tags = text.split(',').map(unquote_tag);
    tags.filter(|tag| !tag.is_empty())
}

/// Removes the weak prefix and the quotes, which clients use inconsistently.
pub(crate) fn unquote_tag(tag: &str) -> &str {
    let tag = tag.trim();
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    let unquoted = tag
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    unquoted.unwrap_or(tag)
}
