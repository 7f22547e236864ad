//! Clients: named keys with a role. A new service creates the first client itself.

mod draft;
mod keys;
mod meter;
pub mod wire;

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use crate::{
    clock::{Clock, to_millis},
    commit::commit,
    domain::{CertificateName, Client, KeyScope, Name, PreviousKey, Rates, RecordId, Role, Secret},
    error::Error,
    limits::PAGE_SIZE_MAX,
    page::{Page, PageRequest, TokenScope},
    resource::find_lookalike,
    store::{Changes, Direction, Lane, Store, Stored, engine::Range, open::replace_file},
};

pub use draft::{ClientDraft, ClientEdit};
pub use keys::{Caller, Keys};
pub use meter::{Limit, Meter, Unit};

/// Prefix of every key, recognizable to users and secret scanners.
const KEY_PREFIX: &str = "bw_";
const CLIENTS_MAX: usize = 10_000;
/// Name of the file in the data folder with the key of the first client.
pub const ADMIN_KEY_FILE: &str = "admin.key";
const ADMIN_NAME: &str = "admin";

/// Returns the stored form of a key. A key has 256 random bits, so no slow hash is needed.
pub fn key_hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// Returns the hash of a certificate in the key table. It cannot collide with the hash of a key,
/// because a key comes from a header and cannot contain a zero byte.
pub fn certificate_hash(name: &CertificateName) -> [u8; 32] {
    Sha256::digest([b"\0certificate ", name.as_str().as_bytes()].concat()).into()
}

fn new_key() -> Secret {
    let bits: [u8; 32] = rand::random();
    Secret::new(format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(bits)))
}

/// Default and maximum time for which a rotated key is still accepted.
const OVERLAP_DEFAULT: Duration = Duration::from_secs(24 * 3_600);
const OVERLAP_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

#[derive(Debug, Clone)]
pub struct Clients {
    store: Store,
    clock: Arc<dyn Clock>,
    /// Held while a client is created, so that no two similar names are created concurrently.
    making: Arc<Mutex<()>>,
}

impl Clients {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            making: Arc::default(),
        }
    }

    /// Creates a client and its key. The key cannot be read again.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] with the invalid fields, and [`Error::AlreadyExists`] if the
    /// name, or one that looks the same, is taken.
    pub async fn create(&self, draft: &ClientDraft) -> Result<(Client, Secret), Error> {
        let (name, role, wanted) = draft.read(self.clock.now_ms())?;
        let key = new_key();
        let client = Client {
            rates: draft.rates,
            dialects: wanted.dialects,
            scope: wanted.scope,
            certificates: wanted.certificates,
            expire_ms: draft.expire_ms,
            ..self.new_client(name, role, &key)
        };
        let _making = self.making.lock().await;
        let decide = || self.decide_create(&client);
        commit(&self.store, Lane::Admin, decide).await?;
        Ok((client, key))
    }

    /// Updates a client; takes effect with its next call.
    pub async fn update(&self, name: &str, edit: &ClientEdit) -> Result<Client, Error> {
        let wanted = edit.read(self.clock.now_ms())?;
        let absent = || Error::NotFound(format!("client `{name}` not found"));
        let name = Name::parse(name).map_err(|_error| absent())?;
        let _making = self.making.lock().await;
        let decide = async || {
            let stored = self.find(&name).await?.ok_or_else(absent)?;
            let mut client = stored.value.clone();
            wanted.apply(&mut client)?;
            if client.certificates != stored.value.certificates {
                self.check_certificates(&client).await?;
            }
            if edit.expire_ms.is_some() {
                self.ensure_admin_remains(&stored.value, &client).await?;
            }
            let mut changes = self.store.new_changes();
            if client != stored.value {
                changes.update(&stored, &client);
            }
            Ok((changes, client))
        };
        let (client, _) = commit(&self.store, Lane::Admin, decide).await?;
        Ok(client)
    }

    async fn check_certificates(&self, client: &Client) -> Result<(), Error> {
        if client.certificates.is_empty() {
            return Ok(());
        }
        let others = self.read_all().await?;
        let others = others.iter().filter(|other| other.value.id != client.id);
        check_conflicts(client, others.map(|other| &other.value))
    }

    /// Creates a new key for a client. The previous key is accepted for the overlap.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the overlap is too long, and [`Error::NotFound`] if the client
    /// does not exist.
    pub async fn rotate(
        &self,
        name: &str,
        overlap_seconds: Option<u32>,
    ) -> Result<(Client, Secret), Error> {
        let requested = overlap_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        let overlap = requested.unwrap_or(OVERLAP_DEFAULT);
        if overlap > OVERLAP_MAX {
            let (found, most) = (overlap.as_secs(), OVERLAP_MAX.as_secs());
            let message = format!("is {found}; the limit is {most}");
            return Err(Error::invalid("overlapSeconds", message));
        }
        let absent = || Error::NotFound(format!("client `{name}` not found"));
        let name = Name::parse(name).map_err(|_error| absent())?;
        let key = new_key();
        let decide = async || {
            let stored = self.find(&name).await?.ok_or_else(absent)?;
            let until_ms = self.clock.now_ms().saturating_add(to_millis(overlap));
            let client = Client {
                key_hash: key_hash(key.reveal()),
                previous: (!overlap.is_zero()).then_some(PreviousKey {
                    hash: stored.value.key_hash,
                    until_ms,
                }),
                ..stored.value.clone()
            };
            let mut changes = self.store.new_changes();
            changes.update(&stored, &client);
            Ok((changes, client))
        };
        let (client, _) = commit(&self.store, Lane::Admin, decide).await?;
        Ok((client, key))
    }

    /// Refuses to set an expiry on the last admin key without one: after it expired, no one could
    /// create a new key.
    async fn ensure_admin_remains(&self, old: &Client, new: &Client) -> Result<(), Error> {
        if new.role != Role::Admin || new.expire_ms.is_none() || old.expire_ms.is_some() {
            return Ok(());
        }
        let all = self.read_all().await?;
        let stays =
            |it: &Client| it.role == Role::Admin && it.expire_ms.is_none() && it.id != new.id;
        if all.iter().any(|stored| stays(&stored.value)) {
            return Ok(());
        }
        Err(Error::FailedPrecondition(format!(
            "`{}` is the last client with the role `admin` whose key does not expire; create another one first",
            new.name
        )))
    }

    pub async fn list(&self, page: &PageRequest) -> Result<Page<Client>, Error> {
        let limit = page.limit()?;
        let scope = TokenScope::new("clients");
        let after = scope.last_key(&page.token)?;
        let all = self.read_all().await?;
        let total = all.len();
        let is_next = |client: &Client| {
            let key = client.name.as_str().as_bytes();
            after.as_deref().is_none_or(|after| key > after)
        };
        let mut rest = all.into_iter().map(|stored| stored.value).filter(is_next);
        let items: Vec<_> = rest.by_ref().take(limit).collect();
        let next_page_token = match (items.last(), rest.next()) {
            (Some(last), Some(_)) => scope.encode_token(last.name.as_str().as_bytes()),
            _ => String::new(),
        };
        Ok(Page {
            items,
            next_page_token,
            total,
        })
    }

    pub async fn get(&self, name: &Name, id: RecordId) -> Result<Client, Error> {
        let stored = self.find(name).await?.map(|stored| stored.value);
        stored
            .filter(|client| client.id == id)
            .ok_or_else(|| Error::Unauthenticated("the key was revoked".into()))
    }

    /// Revokes a client; its key is no longer accepted.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if the client does not exist, and [`Error::FailedPrecondition`]
    /// for the last client with the role `admin`.
    pub async fn revoke(&self, name: &str) -> Result<(), Error> {
        let absent = || Error::NotFound(format!("client `{name}` not found"));
        let name = Name::parse(name).map_err(|_error| absent())?;
        let decide = async || {
            let client = self.find(&name).await?.ok_or_else(absent)?;
            let mut changes = self.store.new_changes();
            if client.value.role == Role::Admin && client.value.expire_ms.is_none() {
                let other_admin = self.read_all().await?.into_iter().find(|other| {
                    other.value.role == Role::Admin
                        && other.value.expire_ms.is_none()
                        && other.value.id != client.value.id
                });
                let other_admin = other_admin.ok_or_else(|| {
                    Error::FailedPrecondition(format!(
                        "`{name}` is the last client with the role `admin` whose key does not \
                         expire; create another one first"
                    ))
                })?;
                // If two admins revoke each other concurrently, one of them must remain.
                changes.touch_record(&other_admin);
            }
            changes.delete(&client);
            Ok((changes, ()))
        };
        commit(&self.store, Lane::Admin, decide).await?;
        Ok(())
    }

    /// Creates the client `admin` if the service has no clients yet, and writes its key to
    /// [`ADMIN_KEY_FILE`] in the data folder, readable only by the owner. Does nothing if there are
    /// clients, even if the file is missing.
    ///
    /// # Errors
    /// Returns [`Error::Internal`] if the file cannot be written, and an error if the store fails.
    pub async fn ensure_admin(&self, data_dir: &Path) -> Result<(), Error> {
        self.create_first_admin(&data_dir.join(ADMIN_KEY_FILE))
            .await?;
        Ok(())
    }

    /// Like [`Clients::ensure_admin`], with an explicit file. Returns whether the client was
    /// created.
    pub async fn create_first_admin(&self, key_file: &Path) -> Result<bool, Error> {
        if !self.read_page(Vec::new(), 1).await?.is_empty() {
            return Ok(false);
        }
        let key = new_key();
        let name = Name::parse(ADMIN_NAME).map_err(|message| Error::Internal(message.into()))?;
        let client = self.new_client(name, Role::Admin, &key);
        // Write the file first. The next start overwrites an unused key, but a client whose key no
        // one has would lock out all users.
        let content = format!("{}\n", key.reveal());
        replace_file(key_file, content.as_bytes())
            .map_err(|error| Error::Internal(Box::new(error)))?;
        let mut changes = self.store.new_changes();
        changes.insert(&client);
        self.store.apply(Lane::Admin, changes).await?;
        Ok(true)
    }

    async fn decide_create(&self, client: &Client) -> Result<(Changes, ()), Error> {
        if self.find(&client.name).await?.is_some() {
            return Err(Error::AlreadyExists(format!(
                "client `{}` already exists",
                client.name
            )));
        }
        let others = self.read_all().await?;
        let names = others.iter().map(|other| other.value.name.as_str());
        if let Some(other) = find_lookalike(client.name.as_str(), names) {
            return Err(Error::AlreadyExists(format!(
                "client `{other}` already exists and looks like `{}`",
                client.name
            )));
        }
        check_conflicts(client, others.iter().map(|other| &other.value))?;
        if others.len() >= CLIENTS_MAX {
            return Err(Error::Exhausted {
                message: format!("limit of {CLIENTS_MAX} clients reached"),
                retry_after: None,
            });
        }
        let mut changes = self.store.new_changes();
        changes.insert(client);
        Ok((changes, ()))
    }

    fn new_client(&self, name: Name, role: Role, key: &Secret) -> Client {
        let create_ms = self.clock.now_ms();
        Client {
            id: RecordId::from_parts(create_ms.unsigned_abs(), rand::random()),
            name,
            role,
            rates: Rates::default(),
            dialects: BTreeSet::new(),
            scope: KeyScope::default(),
            certificates: BTreeSet::new(),
            key_hash: key_hash(key.reveal()),
            create_ms,
            last_used_ms: None,
            last_used_from: None,
            expire_ms: None,
            previous: None,
        }
    }

    async fn find(&self, name: &Name) -> Result<Option<Stored<Client>>, Error> {
        Ok(self.store.get(name.as_str().into()).await?)
    }

    async fn read_all(&self) -> Result<Vec<Stored<Client>>, Error> {
        let mut all: Vec<Stored<Client>> = Vec::new();
        loop {
            let start = all.last().map_or_else(Vec::new, |last| {
                [last.value.name.as_str().as_bytes(), &[0]].concat()
            });
            let page = self.read_page(start, PAGE_SIZE_MAX).await?;
            let is_last = page.len() < PAGE_SIZE_MAX;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    async fn read_page(&self, start: Vec<u8>, limit: usize) -> Result<Vec<Stored<Client>>, Error> {
        let range = Range { start, end: None };
        Ok(self.store.page(range, Direction::Ascending, limit).await?)
    }
}

fn check_conflicts<'a>(
    client: &Client,
    mut others: impl Iterator<Item = &'a Client>,
) -> Result<(), Error> {
    let shared = |other: &Client| {
        let both = client.certificates.intersection(&other.certificates);
        Some((
            both.into_iter().next()?.as_str().to_owned(),
            other.name.clone(),
        ))
    };
    match others.find_map(shared) {
        None => Ok(()),
        Some((certificate, other)) => Err(Error::AlreadyExists(format!(
            "`{certificate}` already authenticates client `{other}`"
        ))),
    }
}

#[cfg(test)]
mod tests;
