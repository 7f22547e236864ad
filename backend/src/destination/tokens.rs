//! OAuth tokens that were given out, kept while they are good.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Tokens that are kept; beyond that the cache starts anew.
const TOKENS_MAX: usize = 1_000;
/// Tokens that were given out, by what they were asked with.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Mutex<HashMap<[u8; 32], Token>>);

#[derive(Clone)]
pub(super) struct Token {
    pub(super) bearer: String,
    /// In milliseconds since 1970.
    pub(super) good_until_ms: i64,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Token(good until {})", self.good_until_ms)
    }
}

impl Tokens {
    pub(super) fn get(&self, key: [u8; 32], now_ms: i64) -> Option<String> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let token = tokens.get(&key)?;
        (now_ms < token.good_until_ms).then(|| token.bearer.clone())
    }

    pub(super) fn put(&self, key: [u8; 32], token: Token) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS_MAX {
            tokens.clear();
        }
        tokens.insert(key, token);
    }

    pub(super) fn drop_token(&self, key: [u8; 32]) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.remove(&key);
    }
}
