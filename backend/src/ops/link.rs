//! Links in messages that can be followed without a key, for a time.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bellwether_proto::text::percent_encoded;

use crate::{
    clock::Clock,
    config::Config,
    domain::{Name, Schedule},
    error::Error,
    message::{Links, SignLinks},
    store::Store,
};

/// What the proof of a link is for.
const PURPOSE: &str = "link";
/// What the proof of a link is for by which a contact acknowledges.
const ACKNOWLEDGE: &str = "acknowledge";
/// What the proof of a feed's address is for.
const FEED: &str = "feed";
/// How far the clock may have been set back since a link was made.
const STEP_MS: i64 = 60_000;

/// Where the links in messages lead, signed where they can be followed without a key.
pub fn links(config: &Config, store: &Store, clock: &Arc<dyn Clock>) -> Links {
    let lifetime = config.link_lifetime;
    let signed = || SignedLinks::new(store.clone(), Arc::clone(clock), lifetime);
    Links {
        base: config.link_base.clone(),
        template: config.link_template.clone(),
        signer: (!lifetime.is_zero()).then(|| Arc::new(signed()) as _),
        acknowledging: Some(Arc::new(signed())),
    }
}

/// Signs links, and knows those that it signed.
#[derive(Debug)]
pub struct SignedLinks {
    store: Store,
    clock: Arc<dyn Clock>,
    lifetime_ms: i64,
}

impl SignedLinks {
    /// Signs with the key of that store. A lifetime of zero lets no link be followed.
    pub fn new(store: Store, clock: Arc<dyn Clock>, lifetime: Duration) -> Self {
        Self {
            store,
            clock,
            lifetime_ms: i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX),
        }
    }

    /// Refuses a link that was not signed here, or that cannot be followed any more.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] with a sentence for who followed it.
    pub fn check(&self, thread: &str, until_ms: i64, sign: &str) -> Result<(), Error> {
        let refused = |why: &str| Err(Error::Unauthenticated(why.to_owned()));
        let proof = URL_SAFE_NO_PAD.decode(sign).unwrap_or_default();
        let parts = [thread.as_bytes(), &until_ms.to_be_bytes()];
        if !self.store.is_proven(PURPOSE, &parts, &proof) {
            return refused("the link was not created by this service: authenticate with a key");
        }
        let now_ms = self.clock.now_ms();
        // A lifetime that was shortened since counts for links made before.
        let last_ms = now_ms
            .saturating_add(self.lifetime_ms)
            .saturating_add(STEP_MS);
        if self.lifetime_ms == 0 || until_ms <= now_ms || until_ms > last_ms {
            return refused("the link has expired: authenticate with a key");
        }
        Ok(())
    }
}

impl SignedLinks {
    /// Refuses a link to acknowledge by that was not signed here.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] with a sentence for who followed it.
    pub fn check_acknowledge(
        &self,
        (thread, response, contact): (&str, &str, &str),
        sign: &str,
    ) -> Result<(), Error> {
        let proof = URL_SAFE_NO_PAD.decode(sign).unwrap_or_default();
        let parts = [thread, response, contact].map(str::as_bytes);
        if self.store.is_proven(ACKNOWLEDGE, &parts, &proof) {
            return Ok(());
        }
        Err(Error::Unauthenticated(
            "the link was not created by this service: authenticate with a key".into(),
        ))
    }
}

impl SignedLinks {
    /// The path of a schedule's feed, with what proves that it may be read.
    pub fn feed(&self, schedule: &Schedule) -> String {
        let sign = URL_SAFE_NO_PAD.encode(
            self.store
                .prove(FEED, &feed_parts(schedule, &schedule.id.to_bytes())),
        );
        let name = percent_encoded(schedule.name.as_str());
        format!("/schedules/{name}.ics?sign={sign}")
    }

    /// Refuses an address of a feed that was not made here, or for another schedule.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] with a sentence for who followed it.
    pub fn check_feed(&self, schedule: Option<&Schedule>, sign: &str) -> Result<(), Error> {
        let proof = URL_SAFE_NO_PAD.decode(sign).unwrap_or_default();
        let is_proven = |it: &Schedule| {
            self.store
                .is_proven(FEED, &feed_parts(it, &it.id.to_bytes()), &proof)
        };
        // The same error for a schedule that does not exist: only who has the address may know.
        if schedule.is_some_and(is_proven) {
            return Ok(());
        }
        Err(Error::Unauthenticated(
            "the address is of no schedule that exists: ask for it again".into(),
        ))
    }
}

/// One of the same name that is created later has another id.
fn feed_parts<'a>(schedule: &'a Schedule, id: &'a [u8; 16]) -> [&'a [u8]; 2] {
    [schedule.name.as_str().as_bytes(), id]
}

impl SignLinks for SignedLinks {
    fn query(&self, thread: &str, since_ms: i64) -> String {
        let until_ms = since_ms.saturating_add(self.lifetime_ms);
        let parts = [thread.as_bytes(), &until_ms.to_be_bytes()];
        let sign = URL_SAFE_NO_PAD.encode(self.store.prove(PURPOSE, &parts));
        format!("until={until_ms}&sign={sign}")
    }

    fn acknowledge(&self, thread: &str, response: &str, contact: &Name) -> String {
        let parts = [thread, response, contact.as_str()].map(str::as_bytes);
        let sign = URL_SAFE_NO_PAD.encode(self.store.prove(ACKNOWLEDGE, &parts));
        let contact = percent_encoded(contact.as_str());
        format!("response={response}&contact={contact}&sign={sign}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::ManualClock, ops::samples::START_MS};

    const DAY: Duration = Duration::from_secs(86_400);

    fn parts(query: &str) -> (i64, &str) {
        let (until, sign) = query.split_once("&sign=").unwrap();
        (until.strip_prefix("until=").unwrap().parse().unwrap(), sign)
    }

    #[test]
    fn a_link_is_followed_until_it_ends_and_only_as_it_was_made() {
        let (store, clock) = (Store::in_memory(), Arc::new(ManualClock::at(START_MS)));
        let links = |lifetime| {
            let clock = Arc::clone(&clock) as Arc<dyn Clock>;
            SignedLinks::new(store.clone(), clock, lifetime)
        };
        let of_a_day = links(DAY);
        let query = of_a_day.query("a:1", START_MS);
        assert_eq!(query, of_a_day.query("a:1", START_MS));
        let (until_ms, sign) = parts(&query);
        assert!(of_a_day.check("a:1", until_ms, sign).is_ok());
        for (thread, until_ms, sign) in [
            ("a:2", until_ms, sign),
            ("a:1", until_ms + 1, sign),
            ("a:1", until_ms, &sign[1..]),
            ("a:1", until_ms, ""),
            ("a:1", until_ms, "not base64"),
        ] {
            let refused = of_a_day.check(thread, until_ms, sign).unwrap_err();
            assert!(matches!(refused, Error::Unauthenticated(_)), "{thread}");
        }
        let others = Store::in_memory();
        let others = SignedLinks::new(others, Arc::clone(&clock) as Arc<dyn Clock>, DAY);
        assert!(others.check("a:1", until_ms, sign).is_err());
        // A shorter lifetime counts for links that are out already.
        assert!(links(DAY / 2).check("a:1", until_ms, sign).is_err());
        assert!(links(Duration::ZERO).check("a:1", until_ms, sign).is_err());
        clock.advance(DAY);
        assert!(of_a_day.check("a:1", until_ms, sign).is_err());
    }
}
