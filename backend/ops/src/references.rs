//! References between resources, such as the rules that use a trigger.

use crate::{
    domain::{Name, RevisedResource, Rule, Silence, Stage},
    error::{Error, Reason},
    limits::PAGE_SIZE_MAX,
    revision,
    store::{Changes, Direction, Index, Kind, Store, Stored, engine::Range, record::users_prefix},
};

const NAMED_MAX: usize = 10;

#[derive(Debug, Clone, Copy)]
pub(super) enum ReferencedResource<'a> {
    Trigger(&'a Name),
    Destination(&'a Name),
}

impl ReferencedResource<'_> {
    fn name(&self) -> &Name {
        match self {
            Self::Trigger(name) | Self::Destination(name) => name,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Trigger(name) => format!("trigger `{name}`"),
            Self::Destination(name) => format!("destination `{name}`"),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Trigger(_) => Kind::Trigger,
            Self::Destination(_) => Kind::Destination,
        }
    }

    fn index(&self) -> Index {
        match self {
            Self::Trigger(_) => Index::RuleByTrigger,
            Self::Destination(_) => Index::RuleByDestination,
        }
    }

    fn range(&self) -> Range {
        Range::with_prefix(&users_prefix(self.index(), self.kind(), self.name()).build())
    }
}

/// Returns the names of the rules that use a resource, in order; at most [`PAGE_SIZE_MAX`].
pub(super) async fn rules_using(
    store: &Store,
    used: ReferencedResource<'_>,
) -> Result<Vec<Name>, Error> {
    user_names(store, (used.index(), used.kind()), used.name()).await
}

async fn user_names(
    store: &Store,
    (index, kind): (Index, Kind),
    name: &Name,
) -> Result<Vec<Name>, Error> {
    let range = Range::with_prefix(&users_prefix(index, kind, name).build());
    let engine = store.engine();
    let found = engine.entries(index, range, Direction::Ascending, PAGE_SIZE_MAX);
    let name = |(_, user): (_, Vec<u8>)| Name::parse(std::str::from_utf8(&user).ok()?).ok();
    Ok(found.await?.into_iter().filter_map(name).collect())
}

/// Users of a resource, each with its kind; at most [`PAGE_SIZE_MAX`] per kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct References(Vec<(&'static str, Name)>);

impl References {
    pub(super) async fn find(store: &Store, kind: Kind, name: &Name) -> Result<Self, Error> {
        let backs: &[(Index, &str)] = match kind {
            Kind::Destination => &[
                (Index::ContactByUse, "contact"),
                (Index::PolicyByUse, "policy"),
            ],
            Kind::Calendar => &[
                (Index::RuleByCalendar, "rule"),
                (Index::SilenceByCalendar, "silence"),
                (Index::CalendarByException, "calendar"),
                (Index::HeartbeatByCalendar, "heartbeat"),
                (Index::ContactByUse, "contact"),
                (Index::ScheduleByUse, "schedule"),
            ],
            Kind::Contact => &[
                (Index::ScheduleByUse, "schedule"),
                (Index::PolicyByUse, "policy"),
            ],
            Kind::Schedule => &[(Index::PolicyByUse, "policy")],
            Kind::Policy => &[(Index::RuleByPolicy, "rule")],
            _ => &[],
        };
        let mut all = Vec::new();
        for (index, word) in backs {
            let found = user_names(store, (*index, kind), name).await?;
            all.extend(found.into_iter().map(|user| (*word, user)));
        }
        Ok(Self(all))
    }

    pub(super) fn first_user(&self, word: &str) -> Option<&Name> {
        let mut all = self.0.iter();
        all.find(|it| it.0 == word).map(|it| &it.1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Name)> {
        self.0.iter().map(|(word, name)| (*word, name))
    }

    pub(super) fn take_references(&mut self) -> Vec<(&'static str, Name)> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn add(&mut self, word: &'static str, name: Name) {
        self.0.push((word, name));
    }

    /// Returns the size of the references on the wire, in bytes.
    pub(super) fn bytes(&self) -> usize {
        /// Overhead per name: the kind, field numbers and lengths.
        const AROUND: usize = 20;
        self.iter().map(|(_, it)| it.as_str().len() + AROUND).sum()
    }

    /// Refuses to delete a resource that is in use.
    ///
    /// # Errors
    /// Returns [`Error::Refused`] with the names of the users if there are any.
    pub(super) fn ensure_unused(&self, what: &str, name: &Name) -> Result<(), Error> {
        self.ensure_unused_by_rules((what, name), &[])
    }

    /// Refuses to delete a resource that is in use, and names the rules that reach it.
    ///
    /// # Errors
    /// Returns [`Error::Refused`] with the names of the users if there are any.
    pub(super) fn ensure_unused_by_rules(
        &self,
        (what, name): (&str, &Name),
        rules: &[Name],
    ) -> Result<(), Error> {
        let named = self.iter().take(NAMED_MAX);
        let named: Vec<_> = named
            .map(|(word, name)| format!("{word} `{name}`"))
            .collect();
        let more = match self.0.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if named.is_empty() {
            return Ok(());
        }
        let reached_by = match rules {
            [] => String::new(),
            [_] => format!(". The {} notifies it", list_rules(rules)),
            _ => format!(". The {} notify it", list_rules(rules)),
        };
        Err(Error::Refused {
            reason: Reason::InUse,
            message: format!(
                "{what} `{name}` is used by {}{more}; remove it there first{reached_by}",
                named.join(", ")
            ),
        })
    }
}

pub(super) fn names_bytes(names: &[Name]) -> usize {
    /// Overhead per text: field number and length.
    const AROUND: usize = 4;
    names.iter().map(|name| name.as_str().len() + AROUND).sum()
}

/// Removes a resource from all rules that use it, as part of `changes`.
///
/// # Errors
/// Returns [`Error::FailedPrecondition`] if a rule uses it and `force` is not set.
pub(super) async fn remove_from_rules(
    store: &Store,
    used: ReferencedResource<'_>,
    force: bool,
    now_ms: i64,
    changes: &mut Changes,
) -> Result<(), Error> {
    let mut range = used.range();
    loop {
        let rules = store
            .page_by_index::<Rule>(
                used.index(),
                range.clone(),
                Direction::Ascending,
                PAGE_SIZE_MAX,
            )
            .await?;
        let Some((last, _)) = rules.last() else {
            return Ok(());
        };
        range.start = [&last[..], &[0]].concat();
        let rules: Vec<_> = rules.into_iter().map(|(_, rule)| rule).collect();
        if !force {
            return Err(in_use_error(used, &rules));
        }
        for stored in rules {
            let mut rule = stored.value.clone();
            match used {
                ReferencedResource::Trigger(name) => {
                    rule.trigger_names.retain(|other| other != name);
                }
                ReferencedResource::Destination(name) => {
                    rule.destination_names.retain(|other| other != name);
                }
            }
            rule.revision += 1;
            rule.update_ms = now_ms;
            let was = RevisedResource::Rule(stored.value.clone());
            revision::store_revision(store, was, now_ms, false, changes).await?;
            changes.update(&stored, &rule);
        }
    }
}

/// A resource to which silences are limited.
#[derive(Debug, Clone, Copy)]
pub(super) enum SilenceLimit<'a> {
    Rule(&'a Name),
    Destination(&'a Name),
}

/// Removes a deleted rule or destination from all silences limited to it, as part of `changes`. A
/// silence whose last rule or destination is removed ends.
pub(super) async fn release_from_silences(
    store: &Store,
    deleted: SilenceLimit<'_>,
    now_ms: i64,
    changes: &mut Changes,
) -> Result<(), Error> {
    let mut pages = store.pages::<Silence>(Range::with_prefix(&[]));
    while let Some(page) = pages.next().await? {
        for stored in page {
            let mut silence = stored.value.clone();
            let (names, deleted) = match deleted {
                SilenceLimit::Rule(name) => (&mut silence.rule_names, name),
                SilenceLimit::Destination(name) => (&mut silence.destination_names, name),
            };
            if stored.value.progress.stage == Stage::Over || !names.contains(deleted) {
                continue;
            }
            names.retain(|other| other != deleted);
            if names.is_empty() {
                // Without names the silence would apply to all rules or destinations.
                silence.end_ms = silence.end_ms.min(now_ms);
                silence.start_ms = silence.start_ms.min(now_ms);
            }
            silence.revision += 1;
            silence.update_ms = now_ms;
            let was = RevisedResource::Silence(stored.value.clone());
            revision::store_revision(store, was, now_ms, false, changes).await?;
            changes.update(&stored, &silence);
        }
    }
    Ok(())
}

fn in_use_error(used: ReferencedResource<'_>, rules: &[Stored<Rule>]) -> Error {
    let names: Vec<_> = rules.iter().map(|it| it.value.name.clone()).collect();
    Error::Refused {
        reason: Reason::InUse,
        message: format!(
            "{} is used by the {}; remove it there first, or delete with `force`",
            used.describe(),
            list_rules(&names)
        ),
    }
}

fn list_rules(rules: &[Name]) -> String {
    let named = rules.iter().take(NAMED_MAX).map(|it| format!("`{it}`"));
    let named: Vec<_> = named.collect();
    let more = match rules.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let word = if rules.len() == 1 { "rule" } else { "rules" };
    format!("{word} {}{more}", named.join(", "))
}
