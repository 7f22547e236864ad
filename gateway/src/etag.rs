//! Entity tags as headers carry them.

/// What parts the etag of a resource from the hash of the answer it is in.
const HASH_MARK: char = '.';

/// The tag of an answer, without quotes: the etag of the resource in it, if it is one, and the hash
/// of the answer.
pub(crate) fn of(resource: Option<&str>, hash: u64) -> String {
    match resource.map(bare) {
        Some(resource) => format!("{resource}{HASH_MARK}{hash:016x}"),
        None => format!("{hash:016x}"),
    }
}

/// The etag of the resource that a tag was given for.
pub(crate) fn resource(tag: &str) -> &str {
    tag.split_once(HASH_MARK)
        .map_or(tag, |(resource, _)| resource)
}

/// The tags of a list, bare.
pub(crate) fn list(text: &str) -> impl Iterator<Item = &str> {
    let tags = text.split(',').map(bare);
    tags.filter(|tag| !tag.is_empty())
}

/// A tag without the mark of a weak one and without quotes, which callers leave out or put in as
/// they like.
pub(crate) fn bare(tag: &str) -> &str {
    let tag = tag.trim();
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    let unquoted = tag
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    unquoted.unwrap_or(tag)
}
