//! Rules: service, validation, storage and views. Rules never refer to missing definitions.

mod preview;

use std::time::Duration;

use bellwether_proto::v1::{self, rule_service_server::RuleService};
use tonic::{Request, Response, Status, async_trait};

use crate::{
    domain::{
        Calendar, Destination, EscalationPolicy, FlappingLimits, Grouping, Name, RevisedResource,
        Rule, Trigger, rule::REPEAT_INTERVAL_SECONDS_DEFAULT,
    },
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    limits::{
        FLAPPING_OPENINGS_MAX, FLAPPING_OPENINGS_MIN, FLAPPING_TIME_MAX, FLAPPING_TIME_MIN,
        GROUP_BY_MAX, GROUP_INTERVAL_DEFAULT, GROUP_INTERVAL_MAX, GROUP_INTERVAL_MIN,
        GROUP_WAIT_DEFAULT, GROUP_WAIT_MAX, REPEAT_INTERVAL_SECONDS_MAX, RULE_AUTO_PAUSE_MAX,
        RULE_AUTO_PAUSE_MIN, RULE_DELAY_MAX,
    },
    matching::field::Field,
    message,
    notify_open::{OpenNotifier, StoredDefinition},
    reach, references,
    refers::ReferenceChecker,
    resource::{AuthoredResource, Origin, Resource, Resources, resource},
    serve::serve,
    settings,
    store::{Changes, Stored},
    validate::{Violations, convert_language},
    wire::{
        time::{self, timestamp},
        to_i32,
    },
};

pub use preview::Installation;

pub type Rules = Resources<Rule>;

resource!(Rule, v1::Rule, "rule", |was| Some(RevisedResource::Rule(
    was
)));

#[derive(Debug)]
pub struct RuleApi {
    pub rules: Rules,
    pub opens: OpenNotifier,
    /// Used by previews.
    pub installation: Installation,
}

#[async_trait]
impl RuleService for RuleApi {
    serve! {
        rules of rule;
        create_rule(CreateRuleRequest) -> CreateRuleResponse;
        list_rules(ListRulesRequest) -> ListRulesResponse { rules };
        get_rule(GetRuleRequest) -> GetRuleResponse;
        update_rule(UpdateRuleRequest) -> UpdateRuleResponse;
        delete_rule(DeleteRuleRequest) -> DeleteRuleResponse, |_never| false;
        stored |api, request, stored| {
            notify_count: {
                let stores = StoredDefinition::Rule(stored.resource.clone());
                let answer = api.opens.notify_or_count(request.notify_open, request.validate_only, stores);
                answer.await?.map(to_i32)
            },
        }
    }

    async fn preview_rule(
        &self,
        request: Request<v1::PreviewRuleRequest>,
    ) -> Result<Response<v1::PreviewRuleResponse>, Status> {
        let previews = self.rules.preview(request.into_inner(), &self.installation);
        Ok(Response::new(previews.await?))
    }
}

impl AuthoredResource for Rule {
    type Draft = v1::Rule;
    type View = v1::Rule;

    async fn from_draft(
        all: &Rules,
        draft: &v1::Rule,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut changes = all.store.new_changes();
        let mut violations = Violations::default();
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        let language =
            convert_language(draft.template_language, &mut violations).unwrap_or_default();
        let snippets = settings::read_values(&all.store).await?.templates;
        violations.extend(message::check_message(language, &draft.message, &snippets));
        let repeat_interval_seconds = check_repeat_interval(draft.repeat_interval, &mut violations);
        let delay_ms = read_delay_ms(draft, &mut violations);
        let auto_pause_ms = read_auto_pause_ms(draft, &mut violations);
        let group = draft
            .group
            .as_ref()
            .map(|it| check_grouping(it, &mut violations));
        let flapping = draft.flapping.as_ref();
        let flapping = flapping.map(|it| flapping_limits(it, &mut violations));
        let mut refers = ReferenceChecker::new(all, stored, (&mut violations, &mut changes));
        let triggers = refers
            .resolve_all::<Trigger>("triggerNames", &draft.trigger_names)
            .await?;
        let destinations = refers
            .resolve_all::<Destination>("destinationNames", &draft.destination_names)
            .await?;
        let active_calendar = refers
            .resolve_optional::<Calendar>("activeCalendarName", &draft.active_calendar_name)
            .await?;
        let escalation_policy = refers
            .resolve_optional::<EscalationPolicy>(
                "escalationPolicyName",
                &draft.escalation_policy_name,
            )
            .await?;
        let rule = name.map(|name| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            enabled: draft.enabled.unwrap_or_default(),
            trigger_names: resource_names(&triggers),
            destination_names: resource_names(&destinations),
            escalation_policy: escalation_policy.map(|it| it.value.name),
            message: draft.message.clone(),
            template_language: language,
            repeat: draft.repeat.unwrap_or_default(),
            repeat_interval_seconds,
            send_updates: draft.send_updates.unwrap_or_default(),
            delay_ms,
            auto_pause_ms,
            active_calendar: active_calendar.map(|it| it.value.name),
            group,
            flapping,
            shadow: draft.shadow.unwrap_or_default(),
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(rule)?, changes))
    }

    async fn changes_on_delete(all: &Rules, rule: &Self, _force: bool) -> Result<Changes, Error> {
        let mut changes = all.store.new_changes();
        let now_ms = all.clock.now_ms();
        let limit = references::SilenceLimit::Rule(&rule.name);
        references::release_from_silences(&all.store, limit, now_ms, &mut changes).await?;
        Ok(changes)
    }

    async fn view(all: &Rules, rule: Self) -> Result<(v1::Rule, usize), Error> {
        let recent = all.recent.count_by_rule(rule.id).await?;
        let shadows = all.recent.count_shadow_messages(rule.id).await?;
        let last_ms = all.recent.last_by_rule(rule.id).await?;
        let receivers = (&*rule.destination_names, rule.escalation_policy.as_ref());
        let ways = reach::receivers_of_rule(&all.store, receivers, all.clock.now_ms()).await?;
        let ways = ways.iter().map(|it| it.to_wire(rule.name.as_str()));
        let reaches: Vec<_> = ways.collect();
        let bytes = reaches.iter().map(reach::wire_bytes).sum();
        let view = v1::Rule {
            reaches,
            recent_notification_count: Some(to_i32(recent)),
            recent_shadow_count: Some(to_i32(shadows)),
            last_notification_time: last_ms.map(timestamp),
            ..v1::Rule::from_domain(rule)
        };
        Ok((view, bytes))
    }
}

impl FromDomain<Rule> for v1::Rule {
    fn from_domain(rule: Rule) -> Self {
        let texts = |names: &[Name]| names.iter().map(ToString::to_string).collect();
        Self {
            name: rule.name.to_string(),
            description: rule.description,
            tags: rule.tags,
            enabled: Some(rule.enabled),
            trigger_names: texts(&rule.trigger_names),
            destination_names: texts(&rule.destination_names),
            escalation_policy_name: rule
                .escalation_policy
                .map(|it| it.to_string())
                .unwrap_or_default(),
            message: rule.message,
            template_language: rule.template_language.number(),
            repeat: Some(rule.repeat),
            repeat_interval: Some(rule.repeat_interval_seconds.into()),
            send_updates: Some(rule.send_updates),
            delay: (rule.delay_ms > 0).then(|| time::duration_from_ms(rule.delay_ms)),
            auto_pause: (rule.auto_pause_ms > 0)
                .then(|| time::duration_from_ms(rule.auto_pause_ms)),
            active_calendar_name: rule
                .active_calendar
                .map(|it| it.to_string())
                .unwrap_or_default(),
            group: rule.group.map(|it| v1::Grouping {
                by: it.by,
                wait: Some(time::duration_from_ms(it.wait_ms)),
                interval: Some(time::duration_from_ms(it.interval_ms)),
            }),
            flapping: rule.flapping.map(|it| v1::Flapping {
                open_count: it.open_count.try_into().unwrap_or(i32::MAX),
                window: Some(time::duration_from_ms(it.window_ms)),
                settle: Some(time::duration_from_ms(it.settle_ms)),
            }),
            shadow: Some(rule.shadow),
            recent_shadow_count: Some(0),
            recent_notification_count: Some(0),
            last_notification_time: None,
            create_time: Some(timestamp(rule.create_ms)),
            update_time: Some(timestamp(rule.update_ms)),
            etag: compute_etag(rule.id, rule.revision),
            reaches: Vec::new(),
        }
    }
}

fn resource_names<T: Resource>(resources: &[Stored<T>]) -> Vec<Name> {
    let name = |stored: &Stored<T>| stored.value.name().clone();
    resources.iter().map(name).collect()
}

fn check_repeat_interval(requested: Option<i64>, violations: &mut Violations) -> u32 {
    let Some(seconds) = requested else {
        return REPEAT_INTERVAL_SECONDS_DEFAULT;
    };
    let converted = u32::try_from(seconds).ok();
    converted
        .filter(|seconds| *seconds <= REPEAT_INTERVAL_SECONDS_MAX)
        .unwrap_or_else(|| {
            violations.add(
                "repeatInterval",
                format!("is {seconds}; expected 0 to {REPEAT_INTERVAL_SECONDS_MAX} seconds"),
            );
            REPEAT_INTERVAL_SECONDS_DEFAULT
        })
}

pub(super) fn check_grouping(draft: &v1::Grouping, violations: &mut Violations) -> Grouping {
    let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    if draft.by.len() > GROUP_BY_MAX {
        let count = draft.by.len();
        let message = format!("has {count} fields; the limit is {GROUP_BY_MAX}");
        violations.add("group.by", message);
    }
    for (at, name) in draft.by.iter().enumerate() {
        let path = format!("group.by[{at}]");
        match Field::parse(name) {
            Err(message) => violations.add(path, message),
            Ok(_) if draft.by[..at].contains(name) => {
                violations.add(path, format!("`{name}` is listed twice"));
            }
            Ok(field) if !field.is_retained() => {
                let message = format!("`{name}` differs for every event; group by a stable field");
                violations.add(path, message);
            }
            Ok(_) => {}
        }
    }
    let mut length = |field: &str, given: &Option<_>, (default, least, most): (_, _, _)| {
        let given = given.as_ref().map(time::duration_to_ms);
        let length_ms = given.unwrap_or_else(|| millis(default));
        if !(millis(least)..=millis(most)).contains(&length_ms) {
            let (least, most) = (least.as_secs(), most.as_secs());
            let found = length_ms / 1_000;
            let message = format!("is {found} s; expected {least} to {most} s");
            violations.add(format!("group.{field}"), message);
        }
        length_ms
    };
    let waits = (GROUP_WAIT_DEFAULT, Duration::ZERO, GROUP_WAIT_MAX);
    let wait_ms = length("wait", &draft.wait, waits);
    let intervals = (
        GROUP_INTERVAL_DEFAULT,
        GROUP_INTERVAL_MIN,
        GROUP_INTERVAL_MAX,
    );
    Grouping {
        by: draft.by.clone(),
        wait_ms,
        interval_ms: length("interval", &draft.interval, intervals),
    }
}

fn flapping_limits(draft: &v1::Flapping, violations: &mut Violations) -> FlappingLimits {
    let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    let openings = FLAPPING_OPENINGS_MIN..=FLAPPING_OPENINGS_MAX;
    let open_count = u32::try_from(draft.open_count).unwrap_or_default();
    if !openings.contains(&open_count) {
        let (found, least, most) = (draft.open_count, openings.start(), openings.end());
        let message = format!("is {found}; expected {least} to {most} openings");
        violations.add("flapping.openCount", message);
    }
    let mut length = |field: &str, given: &Option<_>| {
        let given = given.as_ref().map(time::duration_to_ms);
        let (least, most) = (FLAPPING_TIME_MIN, FLAPPING_TIME_MAX);
        let is_valid = |it: &i64| (millis(least)..=millis(most)).contains(it);
        if !given.is_some_and(|it| is_valid(&it)) {
            let found = given.map_or_else(
                || "is required".to_owned(),
                |found| format!("is {} s", found / 1_000),
            );
            let (least, most) = (least.as_secs(), most.as_secs());
            let message = format!("{found}; expected {least} to {most} s");
            violations.add(format!("flapping.{field}"), message);
        }
        given.unwrap_or_default()
    };
    FlappingLimits {
        open_count,
        window_ms: length("window", &draft.window),
        settle_ms: length("settle", &draft.settle),
    }
}

fn read_auto_pause_ms(draft: &v1::Rule, violations: &mut Violations) -> i64 {
    let pause_ms = draft.auto_pause.as_ref().map_or(0, time::duration_to_ms);
    let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    let (least, most) = (RULE_AUTO_PAUSE_MIN, RULE_AUTO_PAUSE_MAX);
    if pause_ms != 0 && !(millis(least)..=millis(most)).contains(&pause_ms) {
        let (least, most) = (least.as_secs(), most.as_secs());
        let found = pause_ms / 1_000;
        violations.add(
            "autoPause",
            format!("is {found} s; expected {least} to {most} s"),
        );
    }
    pause_ms
}

fn read_delay_ms(draft: &v1::Rule, violations: &mut Violations) -> i64 {
    let delay_max_ms = i64::try_from(RULE_DELAY_MAX.as_millis()).unwrap_or(i64::MAX);
    let delay_ms = draft.delay.as_ref().map_or(0, time::duration_to_ms);
    if !(0..=delay_max_ms).contains(&delay_ms) {
        let hours = RULE_DELAY_MAX.as_secs() / 3_600;
        let found = delay_ms / 1_000;
        violations.add("delay", format!("is {found} s; expected 0 s to {hours} h"));
    }
    delay_ms
}
