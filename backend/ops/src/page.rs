//! Pages of lists: sizes, and opaque tokens that continue with the next page.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use crate::{
    error::Error,
    limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX},
};

/// The first byte of every token; incremented when the layout changes.
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
const SCOPE_BYTES: usize = 8;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// Number of records. 0 means the default, and larger values are reduced to the maximum.
    pub size: i32,
    pub token: String,
}

impl PageRequest {
    pub fn new(size: i32, token: String) -> Self {
        Self { size, token }
    }

    pub fn limit(&self) -> Result<usize, Error> {
        match usize::try_from(self.size) {
            Ok(0) => Ok(PAGE_SIZE_DEFAULT),
            Ok(size) => Ok(size.min(PAGE_SIZE_MAX)),
            Err(_) => Err(Error::invalid(
                "pageSize",
                format!(
                    "is negative; use 1 to {PAGE_SIZE_MAX}, or omit it for {PAGE_SIZE_DEFAULT}"
                ),
            )),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_page_token: String,
    /// Number of records that match the filters, over all pages.
    pub total: usize,
}

/// The list and the filters that a page token belongs to.
#[derive(Debug, Clone)]
pub struct TokenScope(Sha256);

impl TokenScope {
    pub fn new(list: &str) -> Self {
        Self(Sha256::new()).with_field("list", [list])
    }

    /// Adds a filter. Filters, and their values, must always be added in the same order.
    #[must_use]
    pub fn with_field<V: AsRef<[u8]>>(
        mut self,
        filter: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.add_field(filter.as_bytes());
        for value in values {
            self.add_field(value.as_ref());
        }
        // No string has this length, so the next filter cannot be mistaken for a value.
        self.0.update(u64::MAX.to_be_bytes());
        self
    }

    pub fn encode_token(&self, last_key: &[u8]) -> String {
        let mut bytes = vec![VERSION];
        let tail = [&self.hash()[..], last_key].concat();
        bytes.extend(crc32c::crc32c(&tail).to_be_bytes());
        bytes.extend(tail);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the key after which the page of a token starts; `None` for an empty token.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the token is malformed or belongs to other filters.
    pub fn last_key(&self, token: &str) -> Result<Option<Vec<u8>>, Error> {
        if token.is_empty() {
            return Ok(None);
        }
        let foreign = || {
            Error::invalid(
                "pageToken",
                "is not a token of this list; use `nextPageToken` from the previous response",
            )
        };
        let bytes = URL_SAFE_NO_PAD.decode(token).ok().ok_or_else(foreign)?;
        let rest = bytes.strip_prefix(&[VERSION]).ok_or_else(foreign)?;
        let (checksum, tail) = rest
            .split_first_chunk::<CHECKSUM_BYTES>()
            .ok_or_else(foreign)?;
        if crc32c::crc32c(tail).to_be_bytes() != *checksum {
            return Err(foreign());
        }
        let (scope, key) = tail
            .split_first_chunk::<SCOPE_BYTES>()
            .ok_or_else(foreign)?;
        if *scope != self.hash() {
            return Err(Error::invalid(
                "pageToken",
                "belongs to another list or other filters; start without a token",
            ));
        }
        Ok(Some(key.to_vec()))
    }

    fn add_field(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn hash(&self) -> [u8; SCOPE_BYTES] {
        let digest = self.0.clone().finalize();
        let mut hash = [0; SCOPE_BYTES];
        hash.copy_from_slice(&digest[..SCOPE_BYTES]);
        hash
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn page_size_defaults_to_50_and_is_capped_at_1000() {
        for (size, limit) in [(0, 50), (1, 1), (1_000, 1_000), (i32::MAX, 1_000)] {
            let request = PageRequest {
                size,
                ..PageRequest::default()
            };
            assert_eq!(request.limit().unwrap(), limit);
        }
        for size in [-1, i32::MIN] {
            let request = PageRequest {
                size,
                ..PageRequest::default()
            };
            let Err(Error::Invalid(violations)) = request.limit() else {
                panic!("{size} was accepted");
            };
            assert_eq!(violations[0].field, "pageSize");
        }
    }

    #[test]
    fn token_is_valid_only_for_its_list_and_filters() {
        let scope = TokenScope::new("triggers").with_field("tags", ["a", "b"]);
        let token = scope.encode_token(b"key");
        assert_eq!(scope.last_key(&token).unwrap(), Some(b"key".to_vec()));
        assert_eq!(scope.last_key("").unwrap(), None);
        let others = [
            TokenScope::new("rules").with_field("tags", ["a", "b"]),
            TokenScope::new("triggers").with_field("tags", ["a"]),
            TokenScope::new("triggers").with_field("tags", ["ab"]),
            TokenScope::new("triggers")
                .with_field("tags", ["a"])
                .with_field("b", [""; 0]),
            TokenScope::new("triggers").with_field("names", ["a", "b"]),
        ];
        for other in others {
            assert!(other.last_key(&token).is_err());
        }
    }

    proptest! {
        #[test]
        fn token_round_trips_its_key(key: Vec<u8>) {
            let scope = TokenScope::new("triggers");
            prop_assert_eq!(scope.last_key(&scope.encode_token(&key)).unwrap(), Some(key));
        }

        #[test]
        fn a_forged_token_is_refused(text in "\\PC{1,80}") {
            prop_assert!(TokenScope::new("triggers").last_key(&text).is_err());
        }

        #[test]
        fn a_token_with_one_changed_letter_is_refused(at in 0_usize..20, letter in "[A-Za-z0-9_-]") {
            let scope = TokenScope::new("triggers");
            let mut token = scope.encode_token(b"disk-full");
            token.replace_range(at..=at, &letter);
            let changed = token != scope.encode_token(b"disk-full");
            prop_assert_eq!(scope.last_key(&token).is_err(), changed);
        }
    }
}
