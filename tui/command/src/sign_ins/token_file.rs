//! The user's file of sign-ins, with one entry per service.

use std::{
    collections::BTreeMap,
    fs::{DirBuilder, File, Permissions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bellwether_process::{oidc::Tokens, plain_file};
use bellwether_proto::v1::GetSignInResponse;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::time::{Duration, Instant, sleep};
use tonic::transport::Uri;

use crate::{config::Settings, failure::Failure};

const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const SERVICES_MAX: usize = 100;
/// Timeout for the lock held by another command, and the polling interval.
const LOCK_WAIT: Duration = Duration::from_secs(30);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SignIn {
    /// The token sent to the service: the ID token, or the access token if the service expects
    /// that.
    pub(crate) token: String,
    pub(crate) is_access_token: bool,
    #[serde(with = "rfc3339")]
    pub(crate) ends: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    pub(crate) token_endpoint: String,
}

impl SignIn {
    pub(crate) fn new(
        message: &GetSignInResponse,
        token_endpoint: String,
        tokens: Tokens,
    ) -> Result<Self, Failure> {
        let mut sign_in = Self {
            token: String::new(),
            is_access_token: message.takes_access_token,
            ends: Timestamp::UNIX_EPOCH,
            refresh_token: None,
            issuer: message.issuer.clone(),
            client_id: message.client_id.clone(),
            token_endpoint,
        };
        if sign_in.apply(tokens) {
            return Ok(sign_in);
        }
        let kind = if message.takes_access_token {
            "access token"
        } else {
            "ID token"
        };
        Err(Failure::new(format!(
            "the provider returned no {kind} with an expiry"
        )))
    }

    /// Applies renewed tokens and returns whether the token that the service expects is among them.
    /// Keeps the refresh token if there is no new one.
    pub(crate) fn apply(&mut self, tokens: Tokens) -> bool {
        let (token, message) = if self.is_access_token {
            (tokens.access_token, tokens.expires_in)
        } else {
            (tokens.id_token, None)
        };
        let Some(token) = token else { return false };
        let after = message.and_then(|seconds| {
            let life = SignedDuration::from_secs(i64::try_from(seconds).ok()?);
            Timestamp::now().checked_add(life).ok()
        });
        let Some(ends) = token_expiry(&token).or(after) else {
            return false;
        };
        (self.token, self.ends) = (token, ends);
        self.refresh_token = tokens.refresh_token.or(self.refresh_token.take());
        true
    }
}

/// Serializes times in RFC 3339, such as `2027-01-31T00:00:00Z`.
mod rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(at)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Reads the expiry of a token without verifying the token. The service verifies it.
fn token_expiry(token: &str) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Claims {
        exp: i64,
    }
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Claims = serde_json::from_slice(&claims).ok()?;
    Timestamp::from_second(claims.exp).ok()
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    sign_ins: BTreeMap<String, SignIn>,
}

pub(crate) struct TokenFile(PathBuf);

pub(crate) struct Lock(#[expect(dead_code, reason = "the open file holds the lock")] File);

impl TokenFile {
    pub(crate) fn for_settings(settings: &Settings) -> Result<Self, Failure> {
        let file = settings.sign_ins.clone().map(Self);
        file.ok_or_else(|| Failure::new("no home folder to store the sign-in; use a key"))
    }

    pub(crate) fn find(&self, address: &str) -> Result<Option<SignIn>, Failure> {
        Ok(self.read()?.sign_ins.remove(&entry_key(address)))
    }

    pub(crate) async fn lock(&self) -> Result<Lock, Failure> {
        let failed = |error: io::Error| self.io_failure("write", &error);
        let folder = self.0.parent().unwrap_or(Path::new("."));
        let mut make = DirBuilder::new();
        make.recursive(true).mode(0o700);
        make.create(folder).map_err(failed)?;
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.0.with_extension("lock"));
        let file = file.map_err(failed)?;
        let end = Instant::now() + LOCK_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(LOCK_PAUSE).await,
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    pub(crate) fn store(&self, lock: &Lock, address: &str, it: SignIn) -> Result<(), Failure> {
        let mut content = self.read()?;
        content.sign_ins.insert(entry_key(address), it);
        if content.sign_ins.len() > SERVICES_MAX {
            return Err(Failure::new(format!(
                "limit of {SERVICES_MAX} sign-ins reached; run `bellwether logout` for one"
            )));
        }
        self.write(lock, &content)
    }

    /// Deletes the sign-in at this address and returns whether there was one.
    pub(crate) fn remove(&self, lock: &Lock, address: &str) -> Result<bool, Failure> {
        let mut content = self.read()?;
        let was_there = content.sign_ins.remove(&entry_key(address)).is_some();
        if was_there {
            self.write(lock, &content)?;
        }
        Ok(was_there)
    }

    fn read(&self) -> Result<Content, Failure> {
        let text = match plain_file::read_text(&self.0, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Content::default());
            }
            Err(error) => return Err(self.io_failure("read", &error)),
        };
        serde_json::from_str(&text).map_err(|error| {
            let file = self.0.display();
            // The parser's message is omitted: it could contain part of a token.
            let (line, column) = (error.line(), error.column());
            Failure::new(format!(
                "{file} is invalid at line {line}, column {column}; delete it and run `bellwether \
                 login`"
            ))
        })
    }

    /// Replaces the file atomically with one that only the user can read. A symbolic link is
    /// replaced rather than followed.
    fn write(&self, _lock: &Lock, content: &Content) -> Result<(), Failure> {
        let failed = |error: io::Error| self.io_failure("write", &error);
        let text = serde_json::to_vec_pretty(content).map_err(|error| failed(error.into()))?;
        let folder = self.0.parent().unwrap_or(Path::new("."));
        let draft = tempfile::Builder::new()
            .prefix("sign-ins.")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(folder);
        let mut draft = draft.map_err(failed)?;
        draft.write_all(&text).map_err(failed)?;
        draft.as_file().sync_all().map_err(failed)?;
        let persisted = draft.persist(&self.0);
        persisted.map(drop).map_err(|error| failed(error.error))
    }

    fn io_failure(&self, what: &str, error: &io::Error) -> Failure {
        let file = self.0.display();
        Failure::new(format!("cannot {what} {file}: {error}"))
    }
}

/// Returns the key of a service's entry: the normalized address.
fn entry_key(address: &str) -> String {
    let uri: Option<Uri> = address.parse().ok();
    let parts = uri.as_ref().and_then(|uri| {
        let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
        Some(format!("{scheme}://{authority}").to_lowercase())
    });
    parts.unwrap_or_else(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn sample_sign_in(token: &str) -> SignIn {
        SignIn {
            token: token.to_owned(),
            is_access_token: false,
            ends: Timestamp::UNIX_EPOCH,
            refresh_token: Some("r".to_owned()),
            issuer: "https://login.example.net".to_owned(),
            client_id: "bellwether".to_owned(),
            token_endpoint: "https://login.example.net/token".to_owned(),
        }
    }

    fn sample_token(claims: &str) -> String {
        format!("e30.{}.AA", URL_SAFE_NO_PAD.encode(claims))
    }

    #[tokio::test]
    async fn each_service_has_an_entry_readable_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/sign-ins.json");
        let token_file = TokenFile(path.clone());
        assert!(token_file.find("http://a:1").unwrap().is_none());
        let lock = token_file.lock().await.unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, r#"{"sign_ins": {}}"#).unwrap();
        symlink(&elsewhere, &path).unwrap();
        token_file
            .store(&lock, "http://A:1/", sample_sign_in("one"))
            .unwrap();
        token_file
            .store(&lock, "https://a:1", sample_sign_in("two"))
            .unwrap();
        let read = |address| token_file.find(address).unwrap().map(|it| it.token);
        assert_eq!(read("http://a:1").as_deref(), Some("one"));
        assert_eq!(read("https://a:1/").as_deref(), Some("two"));
        let mode = path.symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode, 0o100_600);
        let untouched = std::fs::read_to_string(elsewhere).unwrap();
        assert_eq!(untouched, r#"{"sign_ins": {}}"#);
        assert!(token_file.remove(&lock, "http://a:1").unwrap());
        assert!(!token_file.remove(&lock, "http://a:1").unwrap());
        assert!(read("http://a:1").is_none() && read("https://a:1").is_some());
        let left = path.parent().unwrap().read_dir().unwrap().count();
        assert_eq!(left, 2, "the file and its lock");
    }

    #[test]
    fn refresh_token_is_retained_until_replaced() {
        let mut stored = sample_sign_in("old");
        let renewed = Tokens {
            id_token: Some(sample_token(r#"{"exp": 1800000000}"#)),
            expires_in: Some(5),
            ..Tokens::default()
        };
        assert!(stored.apply(renewed.clone()));
        assert_eq!(stored.ends.as_second(), 1_800_000_000);
        assert_eq!(stored.refresh_token.as_deref(), Some("r"));
        let mut other = renewed.clone();
        other.refresh_token = Some("s".to_owned());
        assert!(stored.apply(other));
        assert_eq!(stored.refresh_token.as_deref(), Some("s"));
        for unfit in [None, Some(sample_token("{}")), Some("x".to_owned())] {
            let id_token = unfit;
            assert!(!stored.apply(Tokens {
                id_token,
                ..renewed.clone()
            }));
        }
        assert_eq!(Some(stored.token), renewed.id_token);
    }
}
