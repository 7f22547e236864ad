//! A cache of OAuth tokens.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

/// Maximum number of cached tokens; above it, the cache is cleared.
const TOKENS_MAX: usize = 1_000;
/// Cached tokens, by their request parameters.
#[derive(Debug, Default)]
pub(crate) struct TokenCache {
    given: Mutex<HashMap<[u8; 32], Token>>,
    /// Cache keys of servers that accept the client's secret only in the body.
    in_body: Mutex<HashSet<[u8; 32]>>,
}

#[derive(Clone)]
pub(super) struct Token {
    pub(super) bearer: String,
    pub(super) good_until_ms: i64,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Token(good until {})", self.good_until_ms)
    }
}

impl TokenCache {
    pub(super) fn requires_secret_in_body(&self, key: [u8; 32]) -> bool {
        let in_body = self.in_body.lock().unwrap_or_else(PoisonError::into_inner);
        in_body.contains(&key)
    }

    pub(super) fn record_in_body(&self, key: [u8; 32]) {
        let mut in_body = self.in_body.lock().unwrap_or_else(PoisonError::into_inner);
        if in_body.len() >= TOKENS_MAX {
            in_body.clear();
        }
        in_body.insert(key);
    }

    pub(super) fn get(&self, key: [u8; 32], now_ms: i64) -> Option<String> {
        let tokens = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let token = tokens.get(&key)?;
        (now_ms < token.good_until_ms).then(|| token.bearer.clone())
    }

    pub(super) fn put(&self, key: [u8; 32], token: Token) {
        let mut tokens = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS_MAX {
            tokens.clear();
        }
        tokens.insert(key, token);
    }

    pub(super) fn drop_token(&self, key: [u8; 32]) {
        let mut tokens = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.remove(&key);
    }
}
