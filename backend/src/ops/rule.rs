//! Rules: stored, edited and deleted, and never pointing at what is not there.

mod preview;

use std::{collections::HashSet, time::Duration};

use crate::{
    domain::{
        Calendar, Destination, FlappingLimits, Grouping, Name, Rule, Trigger,
        rule::REPEAT_INTERVAL_SECONDS_DEFAULT,
    },
    error::Error,
    limits::{
        FLAPPING_OPENINGS_MAX, FLAPPING_OPENINGS_MIN, FLAPPING_TIME_MAX, FLAPPING_TIME_MIN,
        GROUP_BY_MAX, GROUP_INTERVAL_DEFAULT, GROUP_INTERVAL_MAX, GROUP_INTERVAL_MIN,
        GROUP_WAIT_DEFAULT, GROUP_WAIT_MAX, REPEAT_INTERVAL_SECONDS_MAX, RULE_AUTO_PAUSE_MAX,
        RULE_AUTO_PAUSE_MIN, RULE_DELAY_MAX, RULE_NAMES_MAX,
    },
    matching::field::Field,
    message,
    ops::{
        bounds::Bounds,
        resource::{Drafted, Origin, Resource, Resources},
        users,
        validate::{Faults, language},
    },
    store::{Changes, Stored},
};

pub use preview::{Installation, Preview, Previews};

/// A rule as its author describes it, not checked yet.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
pub struct RuleDraft {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Labels.
    pub tags: Vec<String>,
    /// Whether it notifies.
    pub enabled: bool,
    /// The triggers.
    pub trigger_names: Vec<String>,
    /// The destinations.
    pub destination_names: Vec<String>,
    /// The message's template.
    pub message: String,
    /// The number of its language.
    pub template_language: i32,
    /// Whether later matches notify again.
    pub repeat: bool,
    /// Seconds between repeats; none means the default.
    pub repeat_interval: Option<i64>,
    /// Whether changes notify again.
    pub send_updates: bool,
    /// How long it waits from the first match before it notifies, in milliseconds.
    pub delay_ms: Option<i64>,
    /// How long it waits for what mostly closes automatically, in milliseconds.
    pub auto_pause_ms: Option<i64>,
    /// How it gathers occurrences into one message.
    pub group: Option<GroupingDraft>,
    /// When it takes an event for flapping.
    pub flapping: Option<FlappingDraft>,
    /// Whether it only records what it would send.
    pub shadow: bool,
    /// The calendar inside whose windows it notifies; empty for none.
    pub active_calendar: String,
    /// For an update: the etag that must be current; empty asks for no check.
    pub etag: String,
}

/// How a rule is to gather occurrences; what is left out has its default.
#[derive(Debug, Clone, Default)]
pub struct GroupingDraft {
    /// The fields whose values the members of a group share.
    pub by: Vec<String>,
    /// How long the first message waits, in milliseconds.
    pub wait_ms: Option<i64>,
    /// How long after a message the next one goes out, in milliseconds.
    pub interval_ms: Option<i64>,
}

/// When a rule is to take an event for flapping.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlappingDraft {
    /// With how many openings it begins.
    pub open_count: i32,
    /// Within what time these are, in milliseconds.
    pub window_ms: Option<i64>,
    /// For how long nothing opens or closes when it ends, in milliseconds.
    pub settle_ms: Option<i64>,
}

/// A rule, and what is known about its use.
#[derive(Debug, Clone)]
pub struct RuleView {
    /// The rule.
    pub rule: Rule,
    /// Its notifications in the last 24 hours.
    pub recent_notifications: usize,
    /// What it only recorded in the last 24 hours.
    pub recent_shadows: usize,
    /// When it notified last, in milliseconds since 1970.
    pub last_notification_ms: Option<i64>,
}

/// Manages rules.
pub type Rules = Resources<Rule>;

impl Drafted for Rule {
    type Draft = RuleDraft;
    type View = RuleView;

    fn named(draft: &RuleDraft) -> (&str, &str) {
        (&draft.name, &draft.etag)
    }

    async fn checked(
        all: &Rules,
        draft: &RuleDraft,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut changes = all.store.changes();
        let mut faults = Faults::default();
        let name = faults.name(&draft.name, stored.is_none());
        faults.texts(&draft.description, &draft.tags);
        let language = language(draft.template_language, &mut faults).unwrap_or_default();
        faults.extend(message::check_message(language, &draft.message));
        let repeat_interval_seconds = repeat_interval(draft, &mut faults);
        let delay_ms = delay(draft, &mut faults);
        let auto_pause_ms = auto_pause(draft, &mut faults);
        let group = draft.group.as_ref().map(|it| grouping(it, &mut faults));
        let flapping = draft.flapping.map(|it| flapping(it, &mut faults));
        let triggers = all
            .referred::<Trigger>("triggerNames", &draft.trigger_names, &mut faults)
            .await?;
        let destinations = all
            .referred::<Destination>("destinationNames", &draft.destination_names, &mut faults)
            .await?;
        let active_calendar = all
            .referred_if_any::<Calendar>("activeCalendarName", &draft.active_calendar, &mut faults)
            .await?;
        if let Some(calendar) = &active_calendar {
            changes.touch(calendar);
        }
        for trigger in &triggers {
            changes.touch(trigger);
        }
        let bounds = Bounds::of_caller();
        for destination in &destinations {
            let name = &destination.value.name;
            let is_there = stored.is_some_and(|it| it.destination_names.contains(name));
            if let (Some(bounds), false) = (&bounds, is_there) {
                bounds.check("destinationNames", &destination.value)?;
            }
            changes.touch(destination);
        }
        let rule = name.map(|name| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            enabled: draft.enabled,
            trigger_names: names(&triggers),
            destination_names: names(&destinations),
            message: draft.message.clone(),
            template_language: language,
            repeat: draft.repeat,
            repeat_interval_seconds,
            send_updates: draft.send_updates,
            delay_ms,
            auto_pause_ms,
            active_calendar: active_calendar.map(|it| it.value.name),
            group,
            flapping,
            shadow: draft.shadow,
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((faults.or(rule)?, changes))
    }

    async fn released(all: &Rules, rule: &Self, _force: bool) -> Result<Changes, Error> {
        let mut changes = all.store.changes();
        let now_ms = all.clock.now_ms();
        users::release_rule(&all.store, &rule.name, now_ms, &mut changes).await?;
        Ok(changes)
    }

    async fn view(all: &Rules, rule: Self) -> Result<(RuleView, usize), Error> {
        let view = RuleView {
            recent_notifications: all.recent.of_rule(rule.id).await?,
            recent_shadows: all.recent.shadows_of_rule(rule.id).await?,
            last_notification_ms: all.recent.last_of_rule(rule.id).await?,
            rule,
        };
        Ok((view, 0))
    }

    fn bare(self) -> RuleView {
        RuleView {
            rule: self,
            recent_notifications: 0,
            recent_shadows: 0,
            last_notification_ms: None,
        }
    }
}

impl<K> Resources<K> {
    /// The resources of those names, without repeats; each name of nothing is a fault.
    pub(super) async fn referred<T: Resource>(
        &self,
        field: &str,
        texts: &[String],
        faults: &mut Faults,
    ) -> Result<Vec<Stored<T>>, Error> {
        if texts.len() > RULE_NAMES_MAX {
            let count = texts.len();
            faults.add(
                field,
                format!("holds {count} names; at most {RULE_NAMES_MAX} are kept"),
            );
            return Ok(Vec::new());
        }
        let keys = texts.iter().map(|text| text.clone().into_bytes()).collect();
        let stored = self.store.get_many::<T>(keys).await?;
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        for (at, (text, stored)) in texts.iter().zip(stored).enumerate() {
            match stored {
                Some(stored) if seen.insert(text) => found.push(stored),
                Some(_) => {}
                None => faults.add(
                    format!("{field}[{at}]"),
                    match Name::parse(text) {
                        Ok(name) => format!("there is no {} `{name}`", T::WORD),
                        Err(fault) => fault,
                    },
                ),
            }
        }
        Ok(found)
    }
}

impl<K> Resources<K> {
    /// The resource of that name, unless the name is empty; one of nothing is a fault.
    pub(super) async fn referred_if_any<T: Resource>(
        &self,
        field: &str,
        text: &str,
        faults: &mut Faults,
    ) -> Result<Option<Stored<T>>, Error> {
        if text.is_empty() {
            return Ok(None);
        }
        let stored = self.store.get::<T>(text.into()).await?;
        if stored.is_none() {
            let fault = match Name::parse(text) {
                Ok(name) => format!("there is no {} `{name}`", T::WORD),
                Err(fault) => fault,
            };
            faults.add(field, fault);
        }
        Ok(stored)
    }
}

fn names<T: Resource>(resources: &[Stored<T>]) -> Vec<Name> {
    let name = |stored: &Stored<T>| stored.value.name().clone();
    resources.iter().map(name).collect()
}

fn repeat_interval(draft: &RuleDraft, faults: &mut Faults) -> u32 {
    let Some(seconds) = draft.repeat_interval else {
        return REPEAT_INTERVAL_SECONDS_DEFAULT;
    };
    let taken = u32::try_from(seconds).ok();
    taken
        .filter(|seconds| *seconds <= REPEAT_INTERVAL_SECONDS_MAX)
        .unwrap_or_else(|| {
            faults.add(
                "repeatInterval",
                format!("is {seconds}; give 0 to {REPEAT_INTERVAL_SECONDS_MAX} seconds"),
            );
            REPEAT_INTERVAL_SECONDS_DEFAULT
        })
}

pub(super) fn grouping(draft: &GroupingDraft, faults: &mut Faults) -> Grouping {
    let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    if draft.by.len() > GROUP_BY_MAX {
        let count = draft.by.len();
        let fault = format!("holds {count} fields; at most {GROUP_BY_MAX} are taken");
        faults.add("group.by", fault);
    }
    for (at, name) in draft.by.iter().enumerate() {
        let path = format!("group.by[{at}]");
        match Field::parse(name) {
            Err(fault) => faults.add(path, fault),
            Ok(_) if draft.by[..at].contains(name) => {
                faults.add(path, format!("`{name}` is named twice"));
            }
            Ok(field) if !field.is_kept() => {
                let fault = format!("`{name}` differs with every event; group by a stable field");
                faults.add(path, fault);
            }
            Ok(_) => {}
        }
    }
    let mut length = |field: &str, given: Option<i64>, (default, least, most): (_, _, _)| {
        let length_ms = given.unwrap_or_else(|| millis(default));
        if !(millis(least)..=millis(most)).contains(&length_ms) {
            let (least, most) = (least.as_secs(), most.as_secs());
            let found = length_ms / 1_000;
            let fault = format!("is {found} s; give {least} to {most} s");
            faults.add(format!("group.{field}"), fault);
        }
        length_ms
    };
    let waits = (GROUP_WAIT_DEFAULT, Duration::ZERO, GROUP_WAIT_MAX);
    let wait_ms = length("wait", draft.wait_ms, waits);
    let intervals = (
        GROUP_INTERVAL_DEFAULT,
        GROUP_INTERVAL_MIN,
        GROUP_INTERVAL_MAX,
    );
    Grouping {
        by: draft.by.clone(),
        wait_ms,
        interval_ms: length("interval", draft.interval_ms, intervals),
    }
}

fn flapping(draft: FlappingDraft, faults: &mut Faults) -> FlappingLimits {
    let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    let openings = FLAPPING_OPENINGS_MIN..=FLAPPING_OPENINGS_MAX;
    let open_count = u32::try_from(draft.open_count).unwrap_or_default();
    if !openings.contains(&open_count) {
        let (found, least, most) = (draft.open_count, openings.start(), openings.end());
        let fault = format!("is {found}; give {least} to {most} openings");
        faults.add("flapping.openCount", fault);
    }
    let mut length = |field: &str, given: Option<i64>| {
        let (least, most) = (FLAPPING_TIME_MIN, FLAPPING_TIME_MAX);
        let is_taken = |it: &i64| (millis(least)..=millis(most)).contains(it);
        if !given.is_some_and(|it| is_taken(&it)) {
            let found = given.map_or_else(
                || "is required".to_owned(),
                |found| format!("is {} s", found / 1_000),
            );
            let (least, most) = (least.as_secs(), most.as_secs());
            let fault = format!("{found}; give {least} to {most} s");
            faults.add(format!("flapping.{field}"), fault);
        }
        given.unwrap_or_default()
    };
    FlappingLimits {
        open_count,
        window_ms: length("window", draft.window_ms),
        settle_ms: length("settle", draft.settle_ms),
    }
}

fn auto_pause(draft: &RuleDraft, faults: &mut Faults) -> i64 {
    let pause_ms = draft.auto_pause_ms.unwrap_or_default();
    let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    let (least, most) = (RULE_AUTO_PAUSE_MIN, RULE_AUTO_PAUSE_MAX);
    if pause_ms != 0 && !(millis(least)..=millis(most)).contains(&pause_ms) {
        let (least, most) = (least.as_secs(), most.as_secs());
        let found = pause_ms / 1_000;
        faults.add(
            "autoPause",
            format!("is {found} s; give {least} to {most} s"),
        );
    }
    pause_ms
}

fn delay(draft: &RuleDraft, faults: &mut Faults) -> i64 {
    let delay_max_ms = i64::try_from(RULE_DELAY_MAX.as_millis()).unwrap_or(i64::MAX);
    let delay_ms = draft.delay_ms.unwrap_or_default();
    if !(0..=delay_max_ms).contains(&delay_ms) {
        let hours = RULE_DELAY_MAX.as_secs() / 3_600;
        let found = delay_ms / 1_000;
        faults.add("delay", format!("is {found} s; give 0 s to {hours} h"));
    }
    delay_ms
}
