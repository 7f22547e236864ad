//! Validation of client drafts and edits.

use std::collections::BTreeSet;

use crate::{
    audit,
    domain::{CertificateName, Client, Dialect, KeyScope, Name, Rates, Role},
    error::{Error, Violation},
    limits::{CLIENT_EVENTS_PER_SECOND_MAX, CLIENT_REQUESTS_PER_SECOND_MAX},
    settings,
};

const CERTIFICATES_MAX: usize = 8;
/// Maximum number of tags and of sources in a scope, and of characters in each.
const SCOPE_TAGS_MAX: (usize, usize) = (20, 100);
const SCOPE_SOURCES_MAX: (usize, usize) = (100, 1_024);

#[derive(Debug, Clone, Default)]
pub struct ClientDraft {
    pub name: String,
    /// Role of the client; required.
    pub role: Option<Role>,
    pub rates: Rates,
    /// Dialects allowed in addition to the native API.
    pub dialects: Vec<String>,
    pub expire_ms: Option<i64>,
    pub scope_tags: Vec<String>,
    pub scope_sources: Vec<String>,
    pub certificates: Vec<String>,
}

impl ClientDraft {
    /// Returns a client without limits and restrictions.
    pub fn new(name: &str, role: Role) -> Self {
        Self {
            name: name.into(),
            role: Some(role),
            ..Self::default()
        }
    }
}

/// A partial update of a client; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct ClientEdit {
    pub rates: Rates,
    pub dialects: Option<Vec<String>>,
    /// Expiry of the key; zero removes it.
    pub expire_ms: Option<i64>,
    /// Tags that the client is restricted to; an empty list removes the restriction.
    pub scope_tags: Option<Vec<String>>,
    /// Sources that the client is restricted to; an empty list removes the restriction.
    pub scope_sources: Option<Vec<String>>,
    pub certificates: Option<Vec<String>>,
}

#[derive(Debug)]
pub(super) struct ValidatedDraft {
    pub(super) dialects: BTreeSet<Dialect>,
    pub(super) scope: KeyScope,
    pub(super) certificates: BTreeSet<CertificateName>,
}

#[derive(Debug)]
pub(super) struct ValidatedEdit {
    rates: Rates,
    dialects: Option<BTreeSet<Dialect>>,
    tags: Option<BTreeSet<String>>,
    sources: Option<BTreeSet<String>>,
    certificates: Option<BTreeSet<CertificateName>>,
    expire_ms: Option<i64>,
}

impl ClientDraft {
    pub(super) fn read(&self, now_ms: i64) -> Result<(Name, Role, ValidatedDraft), Error> {
        let mut violations = DraftViolations::default();
        let name = violations.collect("name", Name::parse_new(&self.name));
        if [audit::OTHERS, settings::FILE].contains(&self.name.as_str()) {
            let message = "is reserved for the audit log; use another name";
            violations.add("name", message);
        }
        if self.role.is_none() {
            violations.add(
                "role",
                "is required: ingest, viewer, operator, editor or admin",
            );
        }
        violations.0.extend(rate_violations(self.rates));
        violations
            .0
            .extend(expiry_in_past_violation(self.expire_ms, now_ms));
        let wanted = ValidatedDraft {
            dialects: violations.value_or_default(parse_dialects(&self.dialects)),
            certificates: violations.value_or_default(parse_certificates(&self.certificates)),
            scope: KeyScope {
                tags: violations.value_or_default(parse_scope(
                    "scopeTags",
                    &self.scope_tags,
                    SCOPE_TAGS_MAX,
                )),
                sources: violations.value_or_default(parse_scope(
                    "scopeSources",
                    &self.scope_sources,
                    SCOPE_SOURCES_MAX,
                )),
            },
        };
        if let Some(role) = self.role {
            violations.0.extend(scope_violations(role, &wanted.scope));
            violations
                .0
                .extend(sending_violations(role, &wanted.dialects, self.rates));
        }
        match (name, self.role, &*violations.0) {
            (Some(name), Some(role), []) => Ok((name, role, wanted)),
            _ => Err(Error::Invalid(violations.0)),
        }
    }
}

impl ClientEdit {
    pub(super) fn read(&self, now_ms: i64) -> Result<ValidatedEdit, Error> {
        let mut violations = DraftViolations::default();
        violations.0.extend(rate_violations(self.rates));
        let ends_ms = self.expire_ms.filter(|at_ms| *at_ms != 0);
        violations
            .0
            .extend(expiry_in_past_violation(ends_ms, now_ms));
        let dialects = self.dialects.as_deref();
        let dialects = dialects.map(|names| violations.value_or_default(parse_dialects(names)));
        let named = self.certificates.as_deref();
        let named = named.map(|names| violations.value_or_default(parse_certificates(names)));
        let mut texts = |field, given: &Option<Vec<String>>, most| {
            let given = given.as_deref();
            given.map(|given| violations.value_or_default(parse_scope(field, given, most)))
        };
        let change = ValidatedEdit {
            rates: self.rates,
            dialects,
            certificates: named,
            tags: texts("scopeTags", &self.scope_tags, SCOPE_TAGS_MAX),
            sources: texts("scopeSources", &self.scope_sources, SCOPE_SOURCES_MAX),
            expire_ms: self.expire_ms,
        };
        if violations.0.is_empty() {
            Ok(change)
        } else {
            Err(Error::Invalid(violations.0))
        }
    }
}

impl ValidatedEdit {
    /// Applies the change to a client. Returns an error if its role does not support the requested
    /// restrictions.
    pub(super) fn apply(&self, client: &mut Client) -> Result<(), Error> {
        client.rates = self.rates.merged_onto(client.rates);
        set_if_some(&mut client.dialects, self.dialects.as_ref());
        set_if_some(&mut client.scope.tags, self.tags.as_ref());
        set_if_some(&mut client.scope.sources, self.sources.as_ref());
        set_if_some(&mut client.certificates, self.certificates.as_ref());
        if let Some(at_ms) = self.expire_ms {
            client.expire_ms = Some(at_ms).filter(|at_ms| *at_ms != 0);
        }
        match scope_violations(client.role, &client.scope) {
            violations if violations.is_empty() => Ok(()),
            violations => Err(Error::Invalid(violations)),
        }
    }
}

fn set_if_some<T: Clone>(field: &mut T, to: Option<&T>) {
    if let Some(to) = to {
        field.clone_from(to);
    }
}

fn expiry_in_past_violation(expire_ms: Option<i64>, now_ms: i64) -> Option<Violation> {
    let is_past = expire_ms.is_some_and(|at_ms| at_ms <= now_ms);
    is_past.then(|| Violation::new("expireTime", "is in the past; to end a key now, revoke it"))
}

#[derive(Debug, Default)]
struct DraftViolations(Vec<Violation>);

impl DraftViolations {
    fn add(&mut self, field: &str, message: impl Into<String>) {
        self.0.push(Violation::new(field, message));
    }

    fn collect<T>(&mut self, field: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|message| self.add(field, message)).ok()
    }

    fn value_or_default<T: Default>(&mut self, read: Result<T, Violation>) -> T {
        read.unwrap_or_else(|violation| {
            self.0.push(violation);
            T::default()
        })
    }
}

fn parse_certificates(names: &[String]) -> Result<BTreeSet<CertificateName>, Violation> {
    let invalid = |message| Violation::new("certificates", message);
    if names.len() > CERTIFICATES_MAX {
        let found = names.len();
        return Err(invalid(format!(
            "has {found} entries; the limit is {CERTIFICATES_MAX}"
        )));
    }
    let read = names.iter().map(|name| CertificateName::parse(name));
    read.collect::<Result<_, _>>().map_err(invalid)
}

fn parse_scope(
    field: &str,
    texts: &[String],
    (most, length): (usize, usize),
) -> Result<BTreeSet<String>, Violation> {
    if texts.len() > most {
        let found = texts.len();
        let message = format!("has {found} entries; the limit is {most}");
        return Err(Violation::new(field, message));
    }
    let characters = |text: &String| text.chars().count();
    let wrong = |text: &&String| !(1..=length).contains(&characters(text));
    match texts.iter().find(wrong) {
        None => Ok(texts.iter().cloned().collect()),
        Some(text) => {
            let found = characters(text);
            let message = format!("has an entry of {found} characters; expected 1 to {length}");
            Err(Violation::new(field, message))
        }
    }
}

/// Returns violations for restrictions that a role would ignore, giving a false sense of security.
fn scope_violations(role: Role, scope: &KeyScope) -> Vec<Violation> {
    let mut violations = Vec::new();
    if !scope.tags.is_empty() && !matches!(role, Role::Operator | Role::Editor) {
        let role = role.as_str();
        let message =
            format!("is allowed only for operators and editors; this client has the role {role}");
        violations.push(Violation::new("scopeTags", message));
    }
    if !scope.sources.is_empty() && role != Role::Ingest {
        let role = role.as_str();
        let message =
            format!("is allowed only for the role ingest; this client has the role {role}");
        violations.push(Violation::new("scopeSources", message));
    }
    violations
}

fn sending_violations(role: Role, dialects: &BTreeSet<Dialect>, rates: Rates) -> Vec<Violation> {
    let mut violations = Vec::new();
    if role == Role::Admin && !dialects.is_empty() {
        let message = "are not needed: the role admin may send every dialect; leave them out, or choose \
                     another role";
        violations.push(Violation::new("dialects", message));
    }
    let sends = matches!(role, Role::Ingest | Role::Admin) || !dialects.is_empty();
    if rates.events_per_second.is_some_and(|it| it > 0) && !sends {
        let role = role.as_str();
        let message =
            format!("has no effect: the role {role} cannot send events without a dialect");
        violations.push(Violation::new("eventsPerSecond", message));
    }
    violations
}

fn parse_dialects(names: &[String]) -> Result<BTreeSet<Dialect>, Violation> {
    let dialects = names.iter().map(|name| {
        Dialect::from_name(name).ok_or_else(|| {
            let words = Dialect::ALL.map(Dialect::as_str).join(", ");
            Violation::new("dialects", format!("`{name}` is not one of {words}"))
        })
    });
    dialects.collect()
}

fn rate_violations(rates: Rates) -> Vec<Violation> {
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
        .map(|(field, rate, most)| Violation::new(field, format!("is {rate}; the limit is {most}")))
        .collect()
}
