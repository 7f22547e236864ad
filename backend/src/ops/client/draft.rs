//! What is asked of a client, when it is made and when it changes: read, and checked whole.

use std::collections::BTreeSet;

use crate::{
    domain::{CertificateName, Client, Dialect, KeyScope, Name, Rates, Role},
    error::{Error, Violation},
    limits::{CLIENT_EVENTS_PER_SECOND_MAX, CLIENT_REQUESTS_PER_SECOND_MAX},
    ops::{audit, settings},
};

/// Certificates that stand for one client.
const CERTIFICATES_MAX: usize = 8;
/// How many tags, and sources, one client is kept to, and of how many characters.
const SCOPE_TAGS_MAX: (usize, usize) = (20, 100);
const SCOPE_SOURCES_MAX: (usize, usize) = (100, 1_024);

/// A client as it is asked for.
#[derive(Debug, Clone, Default)]
pub struct ClientDraft {
    /// Its name.
    pub name: String,
    /// What it may do; required.
    pub role: Option<Role>,
    /// How much it may ask for.
    pub rates: Rates,
    /// What it may speak in addition to the native interface.
    pub dialects: Vec<String>,
    /// When its key ends.
    pub expire_ms: Option<i64>,
    /// The tags that it is kept to.
    pub scope_tags: Vec<String>,
    /// The sources that it is kept to.
    pub scope_sources: Vec<String>,
    /// The certificates that stand for it.
    pub certificates: Vec<String>,
}

#[cfg(test)]
impl ClientDraft {
    /// A client with a name and a role, and nothing else said of it.
    pub(crate) fn new(name: &str, role: Role) -> Self {
        Self {
            name: name.into(),
            role: Some(role),
            ..Self::default()
        }
    }
}

/// What is to change of a client; what is not stated stays.
#[derive(Debug, Clone, Default)]
pub struct ClientEdit {
    /// How much it may ask for; zero takes a limit away.
    pub rates: Rates,
    /// What it may speak in addition to the native interface.
    pub dialects: Option<Vec<String>>,
    /// When its key ends; zero takes the end away.
    pub expire_ms: Option<i64>,
    /// The tags that it is kept to; none keeps it to none.
    pub scope_tags: Option<Vec<String>>,
    /// The sources that it is kept to; none keeps it to none.
    pub scope_sources: Option<Vec<String>>,
    /// The certificates that stand for it.
    pub certificates: Option<Vec<String>>,
}

/// What a draft says, once it was read.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) dialects: BTreeSet<Dialect>,
    pub(super) scope: KeyScope,
    pub(super) certificates: BTreeSet<CertificateName>,
}

/// What an edit says, once it was read; what is none stays.
#[derive(Debug)]
pub(super) struct Change {
    rates: Rates,
    dialects: Option<BTreeSet<Dialect>>,
    tags: Option<BTreeSet<String>>,
    sources: Option<BTreeSet<String>>,
    certificates: Option<BTreeSet<CertificateName>>,
    expire_ms: Option<i64>,
}

impl ClientDraft {
    /// The name, the role and what else is wanted.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the wrong fields.
    pub(super) fn read(&self, now_ms: i64) -> Result<(Name, Role, Wanted), Error> {
        let mut faults = Faults::default();
        let name = faults.of("name", Name::parse_new(&self.name));
        if [audit::OTHERS, settings::FILE].contains(&self.name.as_str()) {
            let fault = "is a name in the audit log that is no client; give another name";
            faults.add("name", fault);
        }
        if self.role.is_none() {
            faults.add(
                "role",
                "is required: ingest, viewer, operator, editor or admin",
            );
        }
        faults.0.extend(rate_faults(self.rates));
        faults.0.extend(past(self.expire_ms, now_ms));
        let wanted = Wanted {
            dialects: faults.take(known(&self.dialects)),
            certificates: faults.take(certificates(&self.certificates)),
            scope: KeyScope {
                tags: faults.take(scope("scopeTags", &self.scope_tags, SCOPE_TAGS_MAX)),
                sources: faults.take(scope(
                    "scopeSources",
                    &self.scope_sources,
                    SCOPE_SOURCES_MAX,
                )),
            },
        };
        if let Some(role) = self.role {
            faults.0.extend(scope_faults(role, &wanted.scope));
            faults
                .0
                .extend(sending_faults(role, &wanted.dialects, self.rates));
        }
        match (name, self.role, &*faults.0) {
            (Some(name), Some(role), []) => Ok((name, role, wanted)),
            _ => Err(Error::Invalid(faults.0)),
        }
    }
}

impl ClientEdit {
    /// What is to change.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the wrong fields.
    pub(super) fn read(&self, now_ms: i64) -> Result<Change, Error> {
        let mut faults = Faults::default();
        faults.0.extend(rate_faults(self.rates));
        let ends_ms = self.expire_ms.filter(|at_ms| *at_ms != 0);
        faults.0.extend(past(ends_ms, now_ms));
        let dialects = self.dialects.as_deref();
        let dialects = dialects.map(|names| faults.take(known(names)));
        let named = self.certificates.as_deref();
        let named = named.map(|names| faults.take(certificates(names)));
        let mut texts = |field, given: &Option<Vec<String>>, most| {
            let given = given.as_deref();
            given.map(|given| faults.take(scope(field, given, most)))
        };
        let change = Change {
            rates: self.rates,
            dialects,
            certificates: named,
            tags: texts("scopeTags", &self.scope_tags, SCOPE_TAGS_MAX),
            sources: texts("scopeSources", &self.scope_sources, SCOPE_SOURCES_MAX),
            expire_ms: self.expire_ms,
        };
        if faults.0.is_empty() {
            Ok(change)
        } else {
            Err(Error::Invalid(faults.0))
        }
    }
}

impl Change {
    /// Changes a client.
    ///
    /// # Errors
    /// [`Error::Invalid`] where its role has no use for what it is to be kept to.
    pub(super) fn change(&self, client: &mut Client) -> Result<(), Error> {
        client.rates = self.rates.over(client.rates);
        set(&mut client.dialects, self.dialects.as_ref());
        set(&mut client.scope.tags, self.tags.as_ref());
        set(&mut client.scope.sources, self.sources.as_ref());
        set(&mut client.certificates, self.certificates.as_ref());
        if let Some(at_ms) = self.expire_ms {
            client.expire_ms = Some(at_ms).filter(|at_ms| *at_ms != 0);
        }
        match scope_faults(client.role, &client.scope) {
            faults if faults.is_empty() => Ok(()),
            faults => Err(Error::Invalid(faults)),
        }
    }
}

fn set<T: Clone>(field: &mut T, to: Option<&T>) {
    if let Some(to) = to {
        field.clone_from(to);
    }
}

/// What is wrong with the end of a key.
fn past(expire_ms: Option<i64>, now_ms: i64) -> Option<Violation> {
    let is_past = expire_ms.is_some_and(|at_ms| at_ms <= now_ms);
    is_past.then(|| Violation::new("expireTime", "is in the past; to end a key now, revoke it"))
}

/// Everything that is wrong with what was asked.
#[derive(Debug, Default)]
struct Faults(Vec<Violation>);

impl Faults {
    fn add(&mut self, field: &str, fault: impl Into<String>) {
        self.0.push(Violation::new(field, fault));
    }

    fn of<T>(&mut self, field: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|fault| self.add(field, fault)).ok()
    }

    fn take<T: Default>(&mut self, read: Result<T, Violation>) -> T {
        read.unwrap_or_else(|fault| {
            self.0.push(fault);
            T::default()
        })
    }
}

/// The certificates of these names.
fn certificates(names: &[String]) -> Result<BTreeSet<CertificateName>, Violation> {
    let fault = |fault| Violation::new("certificates", fault);
    if names.len() > CERTIFICATES_MAX {
        let found = names.len();
        return Err(fault(format!(
            "are {found}; at most {CERTIFICATES_MAX} are taken"
        )));
    }
    let read = names.iter().map(|name| CertificateName::parse(name));
    read.collect::<Result<_, _>>().map_err(fault)
}

/// The texts that a client is kept to: so many, each of so many characters.
fn scope(
    field: &str,
    texts: &[String],
    (most, length): (usize, usize),
) -> Result<BTreeSet<String>, Violation> {
    if texts.len() > most {
        let found = texts.len();
        let fault = format!("are {found}; at most {most} are taken");
        return Err(Violation::new(field, fault));
    }
    let characters = |text: &String| text.chars().count();
    let wrong = |text: &&String| !(1..=length).contains(&characters(text));
    match texts.iter().find(wrong) {
        None => Ok(texts.iter().cloned().collect()),
        Some(text) => {
            let found = characters(text);
            let fault = format!("hold one of {found} characters; each has 1 to {length}");
            Err(Violation::new(field, fault))
        }
    }
}

/// What a role has no use for: a limit that limits nothing would only look like one.
fn scope_faults(role: Role, scope: &KeyScope) -> Vec<Violation> {
    let mut faults = Vec::new();
    if !scope.tags.is_empty() && !matches!(role, Role::Operator | Role::Editor) {
        let role = role.word();
        let fault = format!("can be given to the roles operator and editor; this one is {role}");
        faults.push(Violation::new("scopeTags", fault));
    }
    if !scope.sources.is_empty() && role != Role::Ingest {
        let role = role.word();
        let fault = format!("can be given to the role ingest; this one is {role}");
        faults.push(Violation::new("scopeSources", fault));
    }
    faults
}

/// Returns the settings for sending that have no effect in a role.
fn sending_faults(role: Role, dialects: &BTreeSet<Dialect>, rates: Rates) -> Vec<Violation> {
    let mut faults = Vec::new();
    if role == Role::Admin && !dialects.is_empty() {
        let fault = "are not needed: the role admin may send every dialect; leave them out, or choose \
                     another role";
        faults.push(Violation::new("dialects", fault));
    }
    let sends = matches!(role, Role::Ingest | Role::Admin) || !dialects.is_empty();
    if rates.events_per_second.is_some_and(|it| it > 0) && !sends {
        let role = role.word();
        let fault = format!("limits nothing: the role {role} sends no events without a dialect");
        faults.push(Violation::new("eventsPerSecond", fault));
    }
    faults
}

/// The dialects of these names.
fn known(names: &[String]) -> Result<BTreeSet<Dialect>, Violation> {
    let dialects = names.iter().map(|name| {
        Dialect::of_word(name).ok_or_else(|| {
            let words = Dialect::ALL.map(Dialect::word).join(", ");
            Violation::new("dialects", format!("`{name}` is none of {words}"))
        })
    });
    dialects.collect()
}

/// What is wrong with rates.
fn rate_faults(rates: Rates) -> Vec<Violation> {
    let limits = [
        (
            "requestsPerSecond",
            rates.requests_per_second,
            CLIENT_REQUESTS_PER_SECOND_MAX,
        ),
        (
            "eventsPerSecond",
            rates.events_per_second,
            CLIENT_EVENTS_PER_SECOND_MAX,
        ),
    ];
    let above = limits
        .into_iter()
        .filter_map(|(field, rate, most)| Some((field, rate.filter(|rate| *rate > most)?, most)));
    above
        .map(|(field, rate, most)| {
            Violation::new(field, format!("is {rate}; at most {most} can be given"))
        })
        .collect()
}
