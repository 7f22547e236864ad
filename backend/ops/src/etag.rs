//! Etags: opaque identifiers of the versions of a resource.

use sha2::{Digest, Sha256};

use crate::{domain::RecordId, error::Error};

/// Returns the etag of a revision, in the quotes required by HTTP.
pub fn compute_etag(id: RecordId, revision: u64) -> String {
    let digest = Sha256::digest(id.to_bytes());
    let hash = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    format!("\"{revision}-{hash:08x}\"")
}

/// Checks that the caller has read the stored revision. An empty etag skips the check and `*`
/// matches any revision. Lists and missing quotes are accepted.
///
/// # Errors
/// Returns [`Error::Aborted`] with advice for the caller; `what` names the resource.
pub fn check_etag(given: &str, id: RecordId, revision: u64, what: &str) -> Result<(), Error> {
    let current = compute_etag(id, revision);
    let bare = |text: &str| text.trim().trim_start_matches("W/").replace('"', "");
    let is_current = |text: &str| bare(text) == "*" || bare(text) == bare(&current);
    if given.trim().is_empty() || given.split(',').any(is_current) {
        return Ok(());
    }
    Err(Error::Aborted(format!(
        "{what} has changed since it was read; read it again and retry"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_current_revision_of_the_same_resource_passes() {
        let (id, other) = (RecordId::from_parts(1, 1), RecordId::from_parts(1, 2));
        let current = compute_etag(id, 7);
        let cases = [
            ("", true),
            ("*", true),
            (current.as_str(), true),
            (current.trim_matches('"'), true),
            (&format!("W/{current}"), true),
            (&format!("\"x\", {current}"), true),
            (&compute_etag(id, 6), false),
            (&compute_etag(other, 7), false),
            ("nonsense", false),
            ("\"\"", false),
        ];
        for (given, passes) in cases {
            let result = check_etag(given, id, 7, "trigger `a`");
            assert_eq!(result.is_ok(), passes, "{given:?}");
        }
    }
}
