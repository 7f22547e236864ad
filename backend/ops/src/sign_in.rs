//! States of browser sign-ins: signed here, and checked before the provider is called.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rand::RngCore as _;

use crate::{clock::Clock, error::Error, limits::BROWSER_SIGN_IN, store::Store};

const PURPOSE: &str = "sign-in";
/// Bytes of a state before its proof: expiry and random bytes.
const HEAD_BYTES: usize = 8 + 16;

/// Creator and verifier of sign-in states, which are valid on every node of the store.
#[derive(Debug)]
pub struct SignInStates {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl SignInStates {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Returns a state for the browser with the given verifier.
    pub fn create(&self, verifier: &str) -> String {
        let lifetime_ms = i64::try_from(BROWSER_SIGN_IN.as_millis()).unwrap_or(i64::MAX);
        let until_ms = self.clock.now_ms().saturating_add(lifetime_ms);
        let mut state = until_ms.to_be_bytes().to_vec();
        state.resize(HEAD_BYTES, 0);
        rand::rng().fill_bytes(&mut state[8..]);
        let proof = self
            .store
            .compute_proof(PURPOSE, &[&state, verifier.as_bytes()]);
        state.extend(proof);
        URL_SAFE_NO_PAD.encode(state)
    }

    /// Checks that a state was issued for the verifier and has not expired.
    pub fn check(&self, state: &str, verifier: &str) -> Result<(), Error> {
        let refused = |why: &str| Err(Error::Unauthenticated(why.to_owned()));
        let state = URL_SAFE_NO_PAD.decode(state).unwrap_or_default();
        let Some((head, proof)) = state.split_at_checked(HEAD_BYTES) else {
            return refused("this sign-in was not started by this service; start again");
        };
        let parts = [head, verifier.as_bytes()];
        if !self.store.is_proven(PURPOSE, &parts, proof) {
            return refused("this sign-in was not started by this service; start again");
        }
        let until_ms = head.first_chunk().copied().map_or(0, i64::from_be_bytes);
        if until_ms <= self.clock.now_ms() {
            return refused("this sign-in took longer than ten minutes; start again");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::ManualClock, samples::START_MS};

    #[test]
    fn state_is_valid_only_for_its_verifier_and_lifetime() {
        let clock = Arc::new(ManualClock::starting_at(START_MS));
        let states = SignInStates::new(Store::in_memory(), Arc::clone(&clock) as Arc<dyn Clock>);
        let state = states.create("v");
        assert!(states.check(&state, "v").is_ok());
        for (state, verifier) in [
            (&*state, "w"),
            (&state[1..], "v"),
            ("", "v"),
            ("x", "v"),
            ("A".repeat(96).as_str(), "v"),
        ] {
            assert!(states.check(state, verifier).is_err(), "{state} {verifier}");
        }
        clock.advance(BROWSER_SIGN_IN);
        assert!(states.check(&state, "v").is_err());
    }
}
