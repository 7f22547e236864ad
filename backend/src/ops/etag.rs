//! Etags: opaque texts that tell one version of a resource from every other.

use sha2::{Digest, Sha256};

use crate::{domain::RecordId, error::Error};

/// The etag of a revision of a resource, in the quotes that HTTP asks for.
pub fn etag(id: RecordId, revision: u64) -> String {
    let digest = Sha256::digest(id.to_bytes());
    let hash = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    format!("\"{revision}-{hash:08x}\"")
}

/// Refuses a change whose caller has read another revision than the stored one. An empty text asks
/// for no check, `*` for any revision; a list and a missing pair of quotes are understood.
///
/// # Errors
/// [`Error::Aborted`], which shows what the caller should do; `what` names the resource.
pub fn check(given: &str, id: RecordId, revision: u64, what: &str) -> Result<(), Error> {
    let current = etag(id, revision);
    let bare = |text: &str| text.trim().trim_start_matches("W/").replace('"', "");
    let is_current = |text: &str| bare(text) == "*" || bare(text) == bare(&current);
    if given.trim().is_empty() || given.split(',').any(is_current) {
        return Ok(());
    }
    Err(Error::Aborted(format!(
        "{what} was changed since it was read; read it again and retry"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_current_revision_of_the_same_resource_passes() {
        let (id, other) = (RecordId::from_parts(1, 1), RecordId::from_parts(1, 2));
        let current = etag(id, 7);
        let cases = [
            ("", true),
            ("*", true),
            (current.as_str(), true),
            (current.trim_matches('"'), true),
            (&format!("W/{current}"), true),
            (&format!("\"x\", {current}"), true),
            (&etag(id, 6), false),
            (&etag(other, 7), false),
            ("nonsense", false),
            ("\"\"", false),
        ];
        for (given, passes) in cases {
            let result = check(given, id, 7, "trigger `a`");
            assert_eq!(result.is_ok(), passes, "{given:?}");
        }
    }
}
