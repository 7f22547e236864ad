//! Links in messages that can be followed without a key for a limited time.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bellwether_backend_base::config::Config;
use bellwether_language::text::percent_encode;

use crate::{
    audit::AuditLog,
    clock::Clock,
    domain::{Contact, Heartbeat, Name, Schedule, Secret},
    error::Error,
    message::{Links, SignLinks},
    store::{Store, audit::Actor},
};

/// Method called by an acknowledgement link.
pub const ACKNOWLEDGE: &str = "/bellwether.v1.LinkService/Acknowledge";
const ISSUED: &str = "issued an acknowledge link in a message";
/// Maximum time by which the clock may have been set back since a link was created.
const STEP_MS: i64 = 60_000;

/// Returns the configuration of links in messages. Links are signed if they can be followed without
/// a key.
pub fn link_config(
    config: &Config,
    store: &Store,
    clock: &Arc<dyn Clock>,
    audit: &Arc<AuditLog>,
) -> Links {
    let lifetime = config.link_lifetime;
    let signed = || SignedLinks {
        audit: Some(Arc::clone(audit)),
        ..SignedLinks::new(store.clone(), Arc::clone(clock), lifetime)
    };
    Links {
        base: config.link_base.clone(),
        template: config.link_template.clone(),
        signer: (!lifetime.is_zero()).then(|| Arc::new(signed()) as _),
        acknowledging: Some(Arc::new(signed())),
    }
}

/// Permission granted to any caller that presents the grant's signature instead of a key. All
/// access without a key requires a grant.
#[derive(Debug, Clone, Copy)]
pub enum LinkGrant<'a> {
    /// Reading an event or a group for a limited time.
    Read {
        /// The occurrence or group.
        thread: &'a str,
        /// End of the grant, in milliseconds since the epoch.
        until_ms: i64,
    },
    /// Acknowledging an occurrence as a contact until the response ends.
    Acknowledge {
        /// The occurrence.
        thread: &'a str,
        response: &'a str,
        contact: &'a str,
    },
    /// Reading the shifts of a schedule until its feed URL is revoked.
    Feed(&'a Schedule),
    /// Reading the shifts of a contact until its feed URL is revoked.
    ContactFeed(&'a Contact),
    /// Sending beats of a heartbeat until its key is rotated.
    Beat(&'a Heartbeat),
}

impl LinkGrant<'_> {
    /// Returns the signature of the grant. It is secret and must only be shown to the holder.
    pub fn sign(self, store: &Store) -> Secret {
        Secret::new(URL_SAFE_NO_PAD.encode(self.prove(store)))
    }

    pub(super) fn prove(self, store: &Store) -> Vec<u8> {
        self.with_parts(|purpose, parts| store.compute_proof(purpose, parts))
    }

    pub fn is_signed(self, store: &Store, signature: &str) -> bool {
        let proof = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
        self.is_proven(store, &proof)
    }

    pub(super) fn is_proven(self, store: &Store, proof: &[u8]) -> bool {
        let is_issued = match self {
            Self::Beat(heartbeat) => heartbeat.key_number > 0,
            Self::Read { .. } | Self::Acknowledge { .. } | Self::Feed(_) | Self::ContactFeed(_) => {
                true
            }
        };
        is_issued && self.with_parts(|purpose, parts| store.is_proven(purpose, parts, proof))
    }

    fn with_parts<R>(self, use_parts: impl FnOnce(&str, &[&[u8]]) -> R) -> R {
        match self {
            Self::Read { thread, until_ms } => {
                use_parts("link", &[thread.as_bytes(), &until_ms.to_be_bytes()])
            }
            Self::Acknowledge {
                thread,
                response,
                contact,
            } => {
                let parts = [thread, response, contact].map(str::as_bytes);
                use_parts("acknowledge", &parts)
            }
            Self::Feed(schedule) => {
                // The id tells this schedule apart from a later one with the same name.
                let (name, id) = (schedule.name.as_str().as_bytes(), schedule.id.to_bytes());
                match schedule.feed_number {
                    // The form of URLs issued before feeds could be rotated.
                    0 => use_parts("feed", &[name, &id]),
                    number => use_parts("feed", &[name, &id, &number.to_be_bytes()]),
                }
            }
            Self::ContactFeed(contact) => {
                let (id, number) = (contact.id.to_bytes(), contact.feed_number);
                use_parts("contact feed", &[&id, &number.to_be_bytes()])
            }
            Self::Beat(heartbeat) => {
                let (id, number) = (heartbeat.id.to_bytes(), heartbeat.key_number);
                use_parts("heartbeat address", &[&id, &number.to_be_bytes()])
            }
        }
    }
}

#[derive(Debug)]
pub struct SignedLinks {
    store: Store,
    clock: Arc<dyn Clock>,
    lifetime_ms: i64,
    audit: Option<Arc<AuditLog>>,
}

impl SignedLinks {
    /// Creates signed links with the key of a store. With a lifetime of zero, links cannot be
    /// followed.
    pub fn new(store: Store, clock: Arc<dyn Clock>, lifetime: Duration) -> Self {
        Self {
            store,
            clock,
            lifetime_ms: i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX),
            audit: None,
        }
    }

    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Checks that a link was signed here and has not expired.
    ///
    /// # Errors
    /// Returns [`Error::Unauthenticated`] with a message for the user of the link.
    pub fn check(&self, thread: &str, until_ms: i64, sign: &str) -> Result<(), Error> {
        let refused = |why: &str| Err(Error::Unauthenticated(why.to_owned()));
        if !(LinkGrant::Read { thread, until_ms }).is_signed(&self.store, sign) {
            return refused("the link was not issued by this service; use a key");
        }
        let now_ms = self.clock.now_ms();
        // A shortened lifetime also applies to earlier links.
        let last_ms = now_ms
            .saturating_add(self.lifetime_ms)
            .saturating_add(STEP_MS);
        if self.lifetime_ms == 0 || until_ms <= now_ms || until_ms > last_ms {
            return refused("the link has expired; use a key");
        }
        Ok(())
    }

    /// Checks that an acknowledgement link was signed here.
    ///
    /// # Errors
    /// Returns [`Error::Unauthenticated`] with a message for the user of the link.
    pub fn check_acknowledge(
        &self,
        (thread, response, contact): (&str, &str, &str),
        sign: &str,
    ) -> Result<(), Error> {
        let grant = LinkGrant::Acknowledge {
            thread,
            response,
            contact,
        };
        if grant.is_signed(&self.store, sign) {
            return Ok(());
        }
        Err(Error::Unauthenticated(
            "the link was not issued by this service; use a key".into(),
        ))
    }

    pub fn schedule_feed(&self, schedule: &Schedule) -> String {
        self.feed_path("schedules", &schedule.name, LinkGrant::Feed(schedule))
    }

    pub fn contact_feed(&self, contact: &Contact) -> String {
        self.feed_path("contacts", &contact.name, LinkGrant::ContactFeed(contact))
    }

    fn feed_path(&self, kind: &str, name: &Name, grant: LinkGrant<'_>) -> String {
        let sign = grant.sign(&self.store);
        let name = percent_encode(name.as_str());
        format!("/{kind}/{name}.ics?sign={}", sign.reveal())
    }

    /// Checks a feed URL; `found` is the schedule or contact that it names.
    ///
    /// # Errors
    /// Returns [`Error::Unauthenticated`] if the URL was not issued here, belongs to another
    /// resource, or was revoked.
    pub fn check_feed<T>(
        &self,
        found: Option<T>,
        grant: impl Fn(&T) -> LinkGrant<'_>,
        sign: &str,
    ) -> Result<T, Error> {
        // Returns the error for a name that may not exist; it does not disclose whether the name
        // exists.
        let granted = found.filter(|it| grant(it).is_signed(&self.store, sign));
        granted.ok_or_else(|| {
            Error::Unauthenticated("this feed URL is invalid or revoked; request a new one".into())
        })
    }
}

impl SignLinks for SignedLinks {
    fn read_signature(&self, thread: &str, since_ms: i64) -> (i64, Secret) {
        let until_ms = since_ms.saturating_add(self.lifetime_ms);
        let signature = LinkGrant::Read { thread, until_ms }.sign(&self.store);
        (until_ms, signature)
    }

    fn acknowledgement_signature(&self, thread: &str, response: &str, contact: &Name) -> Secret {
        let grant = LinkGrant::Acknowledge {
            thread,
            response,
            contact: contact.as_str(),
        };
        grant.sign(&self.store)
    }

    fn record_issued(&self, thread: &str, contact: &Name) {
        let Some(audit) = &self.audit else { return };
        let by = Actor {
            client: Name::for_contact(contact).to_string(),
            address: None,
            agent: String::new(),
            method: ACKNOWLEDGE,
            time_ms: self.clock.now_ms(),
            scope: Arc::default(),
        };
        audit.record_granted_read(by, "occurrence", thread, ISSUED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::ManualClock, samples::START_MS};

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn signed_link_is_valid_unmodified_until_expiry() {
        let (store, clock) = (
            Store::in_memory(),
            Arc::new(ManualClock::starting_at(START_MS)),
        );
        let links = |lifetime| {
            let clock = Arc::clone(&clock) as Arc<dyn Clock>;
            SignedLinks::new(store.clone(), clock, lifetime)
        };
        let of_a_day = links(DAY);
        let signed = of_a_day.read_signature("a:1", START_MS);
        assert_eq!(signed, of_a_day.read_signature("a:1", START_MS));
        let (until_ms, sign) = (signed.0, signed.1.reveal());
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
        // A shorter lifetime applies to existing links.
        assert!(links(DAY / 2).check("a:1", until_ms, sign).is_err());
        assert!(links(Duration::ZERO).check("a:1", until_ms, sign).is_err());
        clock.advance(DAY);
        assert!(of_a_day.check("a:1", until_ms, sign).is_err());
    }
}
