//! Inhibitions: stored, edited, deleted, and tried on what is open.

mod preview;

use std::time::Duration;

use crate::{
    domain::{Inhibition, Query, inhibition::EqualFields},
    error::{Error, Violation},
    limits::{
        INHIBITION_EQUAL_MAX, INHIBITION_LINGER_DEFAULT, INHIBITION_LINGER_MAX, INHIBITIONS_MAX,
    },
    matching::{self, field::Field},
    ops::{
        bounds::Bounds,
        resource::{Drafted, Origin, Resources},
        validate::Faults,
    },
    store::{Changes, Direction, Store, engine::Range},
};

pub use preview::{Pair, Preview, Previews};

/// An inhibition as its author describes it, not checked yet.
#[derive(Debug, Clone, Default)]
pub struct InhibitionDraft {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Labels.
    pub tags: Vec<String>,
    /// Whether it holds.
    pub enabled: bool,
    /// The causes.
    pub source: Option<Query>,
    /// Their effects.
    pub target: Option<Query>,
    /// The fields that are equal on both.
    pub equal: Vec<EqualFields>,
    /// How long it holds on, in milliseconds.
    pub linger_ms: Option<i64>,
    /// For an update: the etag that must be current; empty asks for no check.
    pub etag: String,
    /// What was wrong with how the draft was written.
    pub faults: Vec<Violation>,
}

/// An inhibition, and whether it holds all that it is to hold.
#[derive(Debug, Clone)]
pub struct InhibitionView {
    /// The inhibition.
    pub inhibition: Inhibition,
    /// What its author may not have meant; reported only when it is stored.
    pub warnings: Vec<String>,
}

/// Manages inhibitions.
pub type Inhibitions = Resources<Inhibition>;

impl Drafted for Inhibition {
    type Draft = InhibitionDraft;
    type View = InhibitionView;

    fn named(draft: &InhibitionDraft) -> (&str, &str) {
        (&draft.name, &draft.etag)
    }

    async fn checked(
        all: &Inhibitions,
        draft: &InhibitionDraft,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut faults = Faults::new(&draft.faults);
        let name = faults.name(&draft.name, stored.is_none());
        faults.texts(&draft.description, &draft.tags);
        let source = compiles("source", draft.source.as_ref(), &mut faults);
        let target = compiles("target", draft.target.as_ref(), &mut faults);
        check_equal(&draft.equal, &mut faults);
        let linger_ms = linger(draft.linger_ms, &mut faults);
        if stored.is_none() && count(&all.store).await? >= INHIBITIONS_MAX {
            return Err(Error::Exhausted {
                message: format!("there are {INHIBITIONS_MAX} inhibitions; delete some first"),
                retry_after: None,
            });
        }
        if let (Some(bounds), Some(target)) = (Bounds::of_caller(), &target) {
            bounds.check_query("target", target)?;
        }
        let queries = source.zip(target);
        let inhibition = name.zip(queries).map(|(name, (source, target))| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            enabled: draft.enabled,
            source,
            target,
            equal: draft.equal.clone(),
            linger_ms,
            counted_revision: stored.map_or(0, |it| it.counted_revision),
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((faults.or(inhibition)?, all.store.changes()))
    }

    async fn released(all: &Inhibitions, _: &Self, _force: bool) -> Result<Changes, Error> {
        Ok(all.store.changes())
    }

    fn bare(self) -> InhibitionView {
        InhibitionView {
            inhibition: self,
            warnings: Vec::new(),
        }
    }

    async fn view(_: &Inhibitions, inhibition: Self) -> Result<(InhibitionView, usize), Error> {
        Ok((inhibition.bare(), 0))
    }

    async fn answer(all: &Inhibitions, inhibition: Self) -> Result<InhibitionView, Error> {
        let mut warnings = all.fields.warnings(&inhibition.source).await?;
        warnings.extend(all.fields.warnings(&inhibition.target).await?);
        Ok(InhibitionView {
            inhibition,
            warnings,
        })
    }
}

fn compiles(path: &str, query: Option<&Query>, faults: &mut Faults) -> Option<Query> {
    let Some(query) = query else {
        faults.add_new(path, "is required");
        return None;
    };
    match matching::compile(query) {
        Ok(_) => Some(query.clone()),
        Err(violations) => {
            faults.add_under(path, violations);
            None
        }
    }
}

fn check_equal(equal: &[EqualFields], faults: &mut Faults) {
    if !(1..=INHIBITION_EQUAL_MAX).contains(&equal.len()) {
        let count = equal.len();
        let fault = format!(
            "has {count} fields; give 1 to {INHIBITION_EQUAL_MAX} that relate causes to effects"
        );
        faults.add("equal", fault);
        return;
    }
    for (at, fields) in equal.iter().enumerate() {
        for (side, name) in [("source", &fields.source), ("target", &fields.target)] {
            if let Err(fault) = Field::parse(name) {
                faults.add(format!("equal[{at}].{side}"), fault);
            }
        }
    }
}

fn linger(asked_ms: Option<i64>, faults: &mut Faults) -> i64 {
    let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    let linger_ms = asked_ms.unwrap_or(millis(INHIBITION_LINGER_DEFAULT));
    if !(0..=millis(INHIBITION_LINGER_MAX)).contains(&linger_ms) {
        let most = INHIBITION_LINGER_MAX.as_secs();
        let found = linger_ms / 1_000;
        faults.add("linger", format!("is {found} s; give 0 to {most} s"));
    }
    linger_ms
}

async fn count(store: &Store) -> Result<usize, Error> {
    let all = Range::under(&[]);
    let page = store.page::<Inhibition>(all, Direction::Ascending, INHIBITIONS_MAX);
    Ok(page.await?.len())
}
