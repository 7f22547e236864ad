//! The tag scope of a client: the records that it may change in addition to its own definitions.
//!
//! Definitions themselves are checked by their tags when a change is written, in
//! [`crate::store::audit`].

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    domain::{Clause, Delivery, Destination, Literal, Name, Occurrence, Query, RecordId, Rule},
    error::Error,
    matching::field::Field,
    named::Resource,
    store::{
        Changes, Store, Stored,
        audit::{self, Actor},
    },
};

#[derive(Debug, Clone)]
pub(super) struct TagScope(Arc<Actor>);

impl TagScope {
    /// Returns the tag scope of the client on whose behalf this task runs; `None` if it is not
    /// restricted.
    pub(super) fn from_caller() -> Option<Self> {
        let by = audit::current_actor()?;
        (!by.scope.tags.is_empty()).then_some(Self(by))
    }

    fn tags(&self) -> &BTreeSet<String> {
        &self.0.scope.tags
    }

    fn allows_tags(&self, tags: &[String]) -> bool {
        tags.iter().any(|tag| self.tags().contains(tag))
    }

    fn tag_dimensions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tags().iter().filter_map(|tag| tag.split_once(':'))
    }

    pub(super) fn denied_error(&self, what: &str) -> Error {
        let tags: Vec<_> = self.tags().iter().map(|it| format!("`{it}`")).collect();
        let (client, tags) = (&self.0.client, tags.join(", "));
        Error::PermissionDenied(format!("{what} is outside the scope of `{client}`: {tags}"))
    }

    pub(super) fn check<T: Resource>(&self, field: &str, resource: &T) -> Result<(), Error> {
        if self.allows_tags(resource.tags()) {
            return Ok(());
        }
        let (word, name) = (T::WORD, resource.name());
        Err(self.denied_error(&format!("{field}: {word} `{name}` is")))
    }

    /// Checks that a query matches only events within the scope: it must require a dimension that a
    /// tag represents.
    pub(super) fn check_query(&self, field: &str, query: &Query) -> Result<(), Error> {
        if self.is_within_scope(&query.clause) {
            return Ok(());
        }
        let own: Vec<_> = self
            .tag_dimensions()
            .map(|(key, value)| format!("`{key}` = `{value}`"))
            .collect();
        let hint = match own.as_slice() {
            [] => String::new(),
            own => format!(" (add {} to the query)", own.join(" or ")),
        };
        Err(self.denied_error(&format!("{field}: matches events{hint}")))
    }

    fn is_within_scope(&self, clause: &Clause) -> bool {
        requires_own_dimension(clause, &|key, value| {
            self.tag_dimensions().any(|own| own == (key, value))
        })
    }

    /// Checks that an event has a dimension that a tag represents. The rules that notified about it
    /// do not count, because editors write those.
    pub(super) fn check_event(&self, occurrence: &Occurrence) -> Result<(), Error> {
        if self.allows_tags(&audit::event_tags(occurrence)) {
            return Ok(());
        }
        let id = occurrence.id();
        Err(self.denied_error(&format!("occurrence `{id}` is")))
    }
}

/// Whether a clause matches only events with a dimension for which `is_own` returns true.
pub(super) fn requires_own_dimension(clause: &Clause, is_own: &dyn Fn(&str, &str) -> bool) -> bool {
    let has_own = |field: &str, literal: &Literal| {
        // Fields that every event has, such as the type, are not dimensions.
        let (Ok(Field::Dimension(key) | Field::Either(key)), Literal::Text(text)) =
            (Field::parse(field), literal)
        else {
            return false;
        };
        is_own(&key, text)
    };
    let bound = |it: &Clause| requires_own_dimension(it, is_own);
    match clause {
        Clause::And(clauses) => clauses.iter().any(bound),
        Clause::Or(clauses) => !clauses.is_empty() && clauses.iter().all(bound),
        Clause::Equals(field, literal) => has_own(field, literal),
        Clause::In(field, literals) => {
            !literals.is_empty() && literals.iter().all(|it| has_own(field, it))
        }
        _ => false,
    }
}

/// Checks that a definition has one of the caller's tags before one of its records is changed. Adds
/// the definition to the changes, so that the commit checks it again.
pub(super) fn check_owner<T: Resource>(
    changes: &mut Changes,
    field: &str,
    owner: &Stored<T>,
) -> Result<(), Error> {
    if let Some(scope) = TagScope::from_caller() {
        scope.check(field, &owner.value)?;
        changes.set_owner(owner);
    }
    Ok(())
}

pub(super) fn check_event_owner(
    changes: &mut Changes,
    occurrence: &Occurrence,
) -> Result<(), Error> {
    if let Some(scope) = TagScope::from_caller() {
        scope.check_event(occurrence)?;
        changes.set_owner_event(occurrence);
    }
    Ok(())
}

/// Like [`check_owner`], for the messages of a rule.
///
/// # Errors
/// Returns [`Error::PermissionDenied`] naming the rule, even if it was deleted, or an error if the
/// store fails.
pub(super) async fn check_rule_owner(
    (store, changes): (&Store, &mut Changes),
    (id, name): (RecordId, &Name),
) -> Result<(), Error> {
    let Some(scope) = TagScope::from_caller() else {
        return Ok(());
    };
    let rule = store.get::<Rule>(name.as_str().into()).await?;
    match rule.filter(|it| it.value.id == id) {
        Some(rule) => check_owner(changes, "ruleName", &rule),
        None => Err(scope.denied_error(&format!("ruleName: rule `{name}` is"))),
    }
}

/// Like [`check_owner`], for a delivery: checks its rule or its destination.
///
/// # Errors
/// Returns [`Error::PermissionDenied`], naming the delivery, if neither has a tag of the scope, or
/// any error of the store.
pub(super) async fn check_delivery_owner(
    (store, changes): (&Store, &mut Changes),
    delivery: &Delivery,
) -> Result<(), Error> {
    let Some(scope) = TagScope::from_caller() else {
        return Ok(());
    };
    let destination = delivery.destination_name.as_bytes().to_vec();
    let destination = store.get::<Destination>(destination).await?;
    let is_own = |it: &Stored<Destination>| {
        it.value.id == delivery.destination && scope.allows_tags(&it.value.tags)
    };
    if let Some(destination) = destination.filter(is_own) {
        changes.set_owner(&destination);
        return Ok(());
    }
    let rule = delivery.content.rule.name.as_bytes().to_vec();
    let rule = store.get::<Rule>(rule).await?;
    let is_own =
        |it: &Stored<Rule>| Some(it.value.id) == delivery.rule && scope.allows_tags(&it.value.tags);
    if let Some(rule) = rule.filter(is_own) {
        changes.set_owner(&rule);
        return Ok(());
    }
    let (id, to) = (delivery.id, &delivery.destination_name);
    Err(scope.denied_error(&format!("delivery `{id}` to `{to}` is")))
}

#[cfg(test)]
mod tests {
    use bellwether_language::filter;

    use super::*;
    use crate::{domain::KeyScope, store::Lane, testing::samples};

    /// Stores changes as a client restricted to `team:db`, with the owner that `prepare` adds.
    async fn store_as_db_client(
        prepare: impl FnOnce(&mut Changes) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let scope = KeyScope {
            tags: ["team:db".to_owned()].into(),
            ..KeyScope::default()
        };
        let by = Actor {
            client: "db".into(),
            address: None,
            agent: String::new(),
            method: "",
            time_ms: 0,
            scope: Arc::new(scope),
        };
        let store = Store::in_memory();
        let work = async {
            let mut changes = store.new_changes();
            prepare(&mut changes)?;
            store.apply(Lane::Admin, changes).await?;
            Ok(())
        };
        audit::run_as(by, work).await
    }

    type Owned<'a> = &'a dyn Fn(&mut Changes) -> Result<(), Error>;

    #[tokio::test]
    async fn change_requires_an_owner_within_the_tags() {
        let mut own = samples::occurrence(1);
        own.dimensions.insert("team".into(), "db".into());
        let mut other = own.clone();
        other.dimensions.insert("team".into(), "web".into());
        // The rules that notified about an event do not count.
        assert!(!other.notified.is_empty());
        let cases: [(&str, &Occurrence, Owned<'_>, bool); 5] = [
            ("no owner", &own, &|_| Ok(()), false),
            ("own event", &own, &|it| check_event_owner(it, &own), true),
            (
                "other event",
                &other,
                &|it| check_event_owner(it, &other),
                false,
            ),
            (
                "unchecked event",
                &other,
                &|it| {
                    it.set_owner_event(&other);
                    Ok(())
                },
                false,
            ),
            (
                "caller",
                &own,
                &|it| {
                    it.set_owner_caller();
                    Ok(())
                },
                true,
            ),
        ];
        for (case, occurrence, owner, is_allowed) in cases {
            let stored = store_as_db_client(|changes| {
                owner(changes)?;
                changes.insert(occurrence);
                Ok(())
            });
            match stored.await {
                Ok(()) => assert!(is_allowed, "{case}"),
                Err(Error::PermissionDenied(why)) => {
                    assert!(!is_allowed && why.contains("team:db"), "{case}: {why}");
                }
                Err(error) => panic!("{case}: {error}"),
            }
        }
    }

    #[test]
    fn query_is_in_scope_if_it_matches_only_tagged_events() {
        let tags = ["team:db", "team:dba", "gold", "type:disk", "a:b:c"];
        let scope = KeyScope {
            tags: tags.iter().map(ToString::to_string).collect(),
            ..KeyScope::default()
        };
        let scope = TagScope(Arc::new(Actor {
            client: "db".into(),
            address: None,
            agent: String::new(),
            method: "",
            time_ms: 0,
            scope: Arc::new(scope),
        }));
        let table = [
            ("team = db", true),
            ("dimensions.team = db", true),
            ("team = db and severity >= error", true),
            ("severity >= error and (host = a and team = dba)", true),
            ("team = db or team = dba", true),
            ("team in (db, dba)", true),
            ("a = \"b:c\"", true),
            ("team = db or host = a", false),
            ("team in (db, web)", false),
            ("not team = web", false),
            ("not (not team = db)", false),
            ("team = web", false),
            ("team != db", false),
            ("team contains db", false),
            ("team ~ \"^db$\"", false),
            ("metadata.team = db", false),
            ("type = disk", false),
            ("name = gold", false),
            ("gold = gold", false),
            ("severity >= debug", false),
            ("has team", false),
        ];
        for (text, is_within) in table {
            let clause = filter::parse(text, None);
            let clause = clause
                .unwrap_or_else(|error| panic!("{text}: {error:?}"))
                .clause;
            let answer = scope.check_query("query", &Query { clause });
            assert_eq!(answer.is_ok(), is_within, "{text}: {answer:?}");
        }
        let Err(Error::PermissionDenied(why)) = scope.check_query(
            "query",
            &Query {
                clause: Clause::Exists("host".into()),
            },
        ) else {
            panic!("it is outside");
        };
        assert!(
            why.contains("query") && why.contains("`team` = `db`"),
            "{why}"
        );
        assert!(why.contains("is outside the scope of `db`"), "{why}");
    }
}
