//! Callers with a token, who are treated like callers with a key until the token expires.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    domain::{Rates, RecordId},
    error::Error,
    limits::TOKENS_KNOWN_MAX,
    oidc::{Person, SignIns},
    ops::client::{Caller, Meter, key_hash},
};

/// Users who called and whose tokens have not expired.
#[derive(Debug)]
pub struct SignedInUsers {
    sign_ins: Arc<SignIns>,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<[u8; 32], CachedToken>>,
    /// Wakes the task that ends expired tokens.
    came: Notify,
}

#[derive(Debug)]
struct CachedToken {
    ends_ms: i64,
    ended: CancellationToken,
    meter: Arc<Meter>,
}

impl SignedInUsers {
    pub fn new(sign_ins: Arc<SignIns>, clock: Arc<dyn Clock>) -> Self {
        Self {
            sign_ins,
            clock,
            known: Mutex::default(),
            came: Notify::new(),
        }
    }

    pub fn sign_ins(&self) -> &Arc<SignIns> {
        &self.sign_ins
    }

    pub async fn find(&self, shown: &str) -> Result<Caller, Error> {
        // Check the token on each call, because the provider can withdraw its keys.
        let person = self.sign_ins.authenticate(shown).await?;
        Ok(self.caller(key_hash(shown), person))
    }

    fn caller(&self, token: [u8; 32], person: Person) -> Caller {
        let now_ms = self.clock.now_ms();
        let mut known = self.lock_tokens();
        if known.len() >= TOKENS_KNOWN_MAX && !known.contains_key(&token) {
            let first = known.iter().min_by_key(|(_, it)| it.ends_ms);
            let first = first.map(|(token, _)| *token);
            if let Some(gone) = first.and_then(|first| known.remove(&first)) {
                gone.ended.cancel();
            }
        }
        let known = known.entry(token).or_insert_with(|| {
            self.came.notify_one();
            CachedToken {
                ends_ms: person.ends_ms,
                ended: CancellationToken::new(),
                meter: Arc::new(Meter::new(Rates::default(), now_ms)),
            }
        });
        Caller {
            id: user_id(&person.subject),
            name: person.name,
            role: person.role,
            dialects: BTreeSet::new(),
            scope: Arc::default(),
            meter: Arc::clone(&known.meter),
            revoked: known.ended.clone(),
            signed_in_until_ms: Some(person.ends_ms),
        }
    }

    /// Ends the calls of expired tokens, until the service stops.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        loop {
            let next_ms = self.end_expired_tokens();
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.came.notified() => {}
                () = self.clock.wait_until(next_ms), if next_ms != i64::MAX => {}
            }
        }
    }

    /// Ends expired tokens. Returns the time of the next expiry.
    fn end_expired_tokens(&self) -> i64 {
        let now_ms = self.clock.now_ms();
        let mut known = self.lock_tokens();
        known.retain(|_, it| {
            let is_over = it.ends_ms <= now_ms;
            if is_over {
                it.ended.cancel();
            }
            !is_over
        });
        let ends = known.values().map(|it| it.ends_ms);
        ends.min().unwrap_or(i64::MAX)
    }

    fn lock_tokens(&self) -> MutexGuard<'_, HashMap<[u8; 32], CachedToken>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an id for the shares of capacities that is the same for all tokens of a user.
fn user_id(subject: &str) -> RecordId {
    let hash = Sha256::digest([b"oidc:", subject.as_bytes()].concat());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    RecordId::from_bytes(bytes)
}
