//! What a client that is kept to tags may act on beside its own definitions: what belongs to these.
//!
//! Definitions themselves are judged by their tags where a change of them is written down, in
//! [`crate::store::audit`].

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use crate::{
    domain::{Clause, Delivery, Destination, Literal, Name, Occurrence, Query, RecordId, Rule},
    error::Error,
    matching::field::Field,
    ops::resource::Resource,
    store::{
        Store, Stored,
        audit::{self, By},
    },
};

/// The limits of one client.
#[derive(Debug, Clone)]
pub(super) struct Bounds(Arc<By>);

impl Bounds {
    /// Those of the client that this task works for; none when it is kept to no tags.
    pub(super) fn of_caller() -> Option<Self> {
        let by = audit::current()?;
        (!by.scope.tags.is_empty()).then_some(Self(by))
    }

    fn tags(&self) -> &BTreeSet<String> {
        &self.0.scope.tags
    }

    fn hold(&self, tags: &[String]) -> bool {
        tags.iter().any(|tag| self.tags().contains(tag))
    }

    /// The dimensions that tags such as `team:db` stand for.
    fn dimensions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tags().iter().filter_map(|tag| tag.split_once(':'))
    }

    fn refused(&self, what: &str) -> Error {
        let tags: Vec<_> = self.tags().iter().map(|it| format!("`{it}`")).collect();
        let (client, tags) = (&self.0.client, tags.join(", "));
        Error::PermissionDenied(format!(
            "{what} outside of what `{client}` is kept to: {tags}"
        ))
    }

    /// Refuses a definition that carries none of the tags.
    ///
    /// # Errors
    /// [`Error::PermissionDenied`], naming it and the field that refers to it.
    pub(super) fn check<T: Resource>(&self, field: &str, resource: &T) -> Result<(), Error> {
        if self.hold(resource.tags()) {
            return Ok(());
        }
        let (word, name) = (T::WORD, resource.name());
        Err(self.refused(&format!("{field}: {word} `{name}` is")))
    }

    /// Refuses a query that may match events of others: it has to ask for a dimension that a tag
    /// stands for.
    ///
    /// # Errors
    /// [`Error::PermissionDenied`], naming the field and what would be right.
    pub(super) fn check_query(&self, field: &str, query: &Query) -> Result<(), Error> {
        if self.bound(&query.clause) {
            return Ok(());
        }
        let own: Vec<_> = self
            .dimensions()
            .map(|(key, value)| format!("`{key}` = `{value}`"))
            .collect();
        let asked = match own.as_slice() {
            [] => String::new(),
            own => format!(" (ask for {} as well)", own.join(" or ")),
        };
        Err(self.refused(&format!("{field}: matches events{asked}")))
    }

    /// Whether a clause is true of own events alone.
    fn bound(&self, clause: &Clause) -> bool {
        let is_own = |field: &str, literal: &Literal| {
            // What every event has, such as a type, is no dimension.
            let (Ok(Field::Dimension(key) | Field::Either(key)), Literal::Text(text)) =
                (Field::parse(field), literal)
            else {
                return false;
            };
            self.dimensions().any(|own| own == (&*key, &**text))
        };
        match clause {
            Clause::And(clauses) => clauses.iter().any(|it| self.bound(it)),
            Clause::Or(clauses) => !clauses.is_empty() && clauses.iter().all(|it| self.bound(it)),
            Clause::Equals(field, literal) => is_own(field, literal),
            Clause::In(field, literals) => {
                !literals.is_empty() && literals.iter().all(|it| is_own(field, it))
            }
            _ => false,
        }
    }

    /// Refuses a silence that covers more than own rules, or than own events.
    ///
    /// # Errors
    /// [`Error::PermissionDenied`], naming what is outside.
    pub(super) fn check_silence(
        &self,
        rules: &[Stored<Rule>],
        query: Option<&Query>,
    ) -> Result<(), Error> {
        for rule in rules {
            self.check("ruleNames", &rule.value)?;
        }
        match query {
            Some(query) if rules.is_empty() => self.check_query("query", query),
            _ => Ok(()),
        }
    }

    /// Refuses what is done to a rule's messages when the rule carries none of the tags.
    ///
    /// # Errors
    /// [`Error::PermissionDenied`], naming the rule, also when it is gone; those of the store.
    pub(super) async fn check_rule(
        &self,
        store: &Store,
        (id, name): (RecordId, &Name),
    ) -> Result<(), Error> {
        let rule = store.get::<Rule>(name.as_str().into()).await?;
        match rule.filter(|it| it.value.id == id) {
            Some(rule) => self.check("ruleName", &rule.value),
            None => Err(self.refused(&format!("ruleName: rule `{name}` is"))),
        }
    }

    /// Refuses a delivery of which neither the rule nor the destination carries one of the tags.
    ///
    /// # Errors
    /// [`Error::PermissionDenied`], naming it, and those of the store.
    pub(super) async fn check_delivery(
        &self,
        store: &Store,
        delivery: &Delivery,
    ) -> Result<(), Error> {
        let destination = delivery.destination_name.as_bytes().to_vec();
        let destination = store.get::<Destination>(destination).await?;
        let is_own = |it: &Stored<Destination>| {
            it.value.id == delivery.destination && self.hold(&it.value.tags)
        };
        if destination.as_ref().is_some_and(is_own) {
            return Ok(());
        }
        let rule = delivery.content.rule.name.as_bytes().to_vec();
        let rule = store.get::<Rule>(rule).await?;
        let is_own =
            |it: &Stored<Rule>| Some(it.value.id) == delivery.rule && self.hold(&it.value.tags);
        if rule.as_ref().is_some_and(is_own) {
            return Ok(());
        }
        let (id, to) = (delivery.id, &delivery.destination_name);
        Err(self.refused(&format!("delivery `{id}` to `{to}` is")))
    }
}

/// Which events the client may act on that this task works for.
#[derive(Debug)]
pub(super) struct EventBounds(Option<(Bounds, HashSet<RecordId>)>);

impl EventBounds {
    /// Those of the client, for some occurrences.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn of_caller(
        store: &Store,
        occurrences: impl Iterator<Item = &Occurrence>,
    ) -> Result<Self, Error> {
        let Some(bounds) = Bounds::of_caller() else {
            return Ok(Self(None));
        };
        let names: BTreeSet<_> = occurrences
            .flat_map(rules_of)
            .map(|(_, name)| name)
            .collect();
        let keys = names.into_iter().map(|name| name.as_str().into());
        let rules = store.get_many::<Rule>(keys.collect()).await?;
        let own = rules.into_iter().flatten().map(|it| it.value);
        let own = own.filter(|it| bounds.hold(&it.tags)).map(|it| it.id);
        let own = own.collect();
        Ok(Self(Some((bounds, own))))
    }

    /// Refuses an occurrence that has no dimension which a tag stands for, and that no rule with such a
    /// tag has to do with.
    ///
    /// # Errors
    /// [`Error::PermissionDenied`], naming it.
    pub(super) fn check(&self, occurrence: &Occurrence) -> Result<(), Error> {
        let Some((bounds, own_rules)) = &self.0 else {
            return Ok(());
        };
        let has = |(key, value): (&str, &str)| {
            let dimension = occurrence.dimensions.get(key);
            dimension.is_some_and(|it| it == value)
        };
        let mut rules = rules_of(occurrence).map(|(rule, _)| rule);
        if bounds.dimensions().any(has) || rules.any(|rule| own_rules.contains(&rule)) {
            return Ok(());
        }
        let id = occurrence.id();
        Err(bounds.refused(&format!("occurrence `{id}` is")))
    }
}

/// The rules that notified of an occurrence, or wait to.
fn rules_of(occurrence: &Occurrence) -> impl Iterator<Item = (RecordId, &Name)> {
    let notified = occurrence.notified.iter();
    let notified = notified.map(|it| (it.rule, &it.rule_name));
    let waiting = occurrence.pending.iter();
    notified.chain(waiting.map(|it| (it.rule, &it.rule_name)))
}

#[cfg(test)]
mod tests {
    use bellwether_proto::filter;

    use super::*;
    use crate::domain::KeyScope;

    #[test]
    fn a_query_is_within_tags_when_it_can_be_true_of_their_events_alone() {
        let tags = ["team:db", "team:dba", "gold", "type:disk", "a:b:c"];
        let scope = KeyScope {
            tags: tags.iter().map(ToString::to_string).collect(),
            ..KeyScope::default()
        };
        let bounds = Bounds(Arc::new(By {
            client: "db".into(),
            address: None,
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
                .unwrap_or_else(|fault| panic!("{text}: {fault:?}"))
                .clause;
            let answer = bounds.check_query("query", &Query { clause });
            assert_eq!(answer.is_ok(), is_within, "{text}: {answer:?}");
        }
        let Err(Error::PermissionDenied(why)) = bounds.check_query(
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
        assert!(why.contains("`db` is kept to"), "{why}");
    }
}
