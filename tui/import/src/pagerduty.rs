//! Import of PagerDuty's REST API responses: users become contacts, schedules become schedules,
//! escalation policies become policies, services become rules.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{
    Timestamp,
    civil::{Time, Weekday},
};
use serde_json::{Map, json};

use super::{
    File,
    escalation::{self, Policy, Step},
    fields::{Fields, invalid_field_error},
    imported::ImportOutput,
    people::{self, ImportedContacts, Person},
    rotation::{self, LAYERS_MAX, Restriction, Rotation},
};
use crate::error::ImportError;

const KINDS: [(&str, &str); 4] = [
    ("users", "user"),
    ("schedules", "schedule"),
    ("escalation_policies", "escalation_policy"),
    ("services", "service"),
];
const PAGING: [&str; 5] = ["limit", "offset", "total", "more", "next_cursor"];
/// Fields without meaning outside PagerDuty: identities, page addresses, colours, and lists that
/// repeat other fields.
pub(crate) const IGNORED: [&str; 23] = [
    "id",
    "type",
    "summary",
    "self",
    "html_url",
    "created_at",
    "updated_at",
    "avatar_url",
    "color",
    "invitation_sent",
    "billed",
    "job_title",
    "teams",
    "users",
    "escalation_policies",
    "services",
    "label",
    "send_short_email",
    "send_html_email",
    "device_type",
    "sounds",
    "last_incident_timestamp",
    "alert_creation",
];

#[derive(Default)]
struct Entities {
    people: ImportedContacts,
    schedules: BTreeMap<String, String>,
    policies: BTreeMap<String, String>,
    timeouts: BTreeMap<String, BTreeSet<Option<i64>>>,
}

pub(crate) fn import_export(
    files: Vec<File>,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let mut entities: BTreeMap<&str, BTreeMap<String, Fields>> = BTreeMap::new();
    for file in files {
        let mut fields = Fields::from_value(&format!("{}:", file.path), file.content)?;
        for (several, one) in KINDS {
            let mut found = fields.take_objects(several)?;
            if fields.has(one) {
                found.push(fields.take_object(one)?);
            }
            let into = entities.entry(several).or_default();
            for mut entity in found {
                let id = entity.take_text("id")?;
                let id =
                    id.ok_or_else(|| invalid_field_error(&entity.path_of("id"), "is required"))?;
                // Prefers the response for a single schedule: lists omit some of its fields.
                let is_whole = entity.has("schedule_layers");
                if is_whole || !into.contains_key(&id) {
                    into.insert(id, entity);
                }
            }
        }
        fields.ignore(&PAGING);
        fields.finish(imported);
    }
    let mut take = |kind: &str| entities.remove(kind).unwrap_or_default();
    let mut known = Entities::default();
    for (id, user) in take("users") {
        read_user(id, user, &mut known, imported)?;
    }
    for (id, schedule) in take("schedules") {
        read_schedule(id, schedule, &mut known, imported)?;
    }
    let mut services = Vec::new();
    for mut service in take("services").into_values() {
        let timeout = service.take_text("acknowledgement_timeout")?;
        let timeout = timeout.and_then(|it| it.parse().ok()).filter(|it| *it > 0);
        let policy = service.take_object("escalation_policy")?.take_text("id")?;
        if let Some(policy) = &policy {
            let timeouts = known.timeouts.entry(policy.clone()).or_default();
            timeouts.insert(timeout);
        }
        services.push((service, policy));
    }
    for (id, policy) in take("escalation_policies") {
        read_policy(&id, policy, &mut known, imported)?;
    }
    for (service, policy) in services {
        read_service(service, policy, &known, imported)?;
    }
    Ok(())
}

fn take_description(fields: &mut Fields) -> Result<String, ImportError> {
    let text = fields.take_nonempty_text("description")?;
    let text = text.unwrap_or_else(|| fields.path.clone());
    Ok(text.chars().take(1_000).collect())
}

fn read_user(
    id: String,
    mut user: Fields,
    known: &mut Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = user.path.clone();
    let name = user.require("name")?;
    let mut mail = user.take_text("email")?;
    let mut variables = Map::new();
    for mut method in user.take_objects("contact_methods")? {
        let kind = method.take_text("type")?.unwrap_or_default();
        let code = method.take_text("country_code")?;
        let address = method.take_nonempty_text("address")?;
        let is_enabled = method.take_flag("enabled")? != Some(false);
        let is_blocked = method.take_flag("blacklisted")? == Some(true);
        let path = method.path.clone();
        method.ignore(&IGNORED);
        method.finish(imported);
        if !is_enabled || is_blocked {
            imported.record_omission(&path, "is disabled");
            continue;
        }
        let variable = match kind.as_str() {
            "sms_contact_method" => "sms",
            "phone_contact_method" => "phone",
            "email_contact_method" => {
                people::add_mail(&path, address, &mut mail, imported);
                continue;
            }
            _ => {
                imported.record_omission(&path, "no such method");
                continue;
            }
        };
        let Some(address) = address else {
            let why = "has no email address; save users with `include[]=contact_methods`";
            imported.record_omission(&path, why);
            continue;
        };
        let number = code.map_or_else(|| address.clone(), |code| format!("+{code}{address}"));
        people::add_number(&path, variable, &number, &mut variables, imported);
    }
    let why = "notification rules become contact methods; set `after` and `minSeverity` there";
    user.omit("notification_rules", why, imported);
    let why = "roles are set for API keys and single sign-on";
    user.omit("role", why, imported);
    let person = Person {
        path: &path,
        keys: vec![id],
        name: &name,
        time_zone: user.take_text("time_zone")?,
        mail,
        variables,
    };
    known.people.add(person, imported);
    user.ignore(&IGNORED);
    user.finish(imported);
    Ok(())
}

fn read_schedule(
    id: String,
    mut schedule: Fields,
    known: &mut Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = schedule.path.clone();
    let name = schedule.require("name")?;
    let description = take_description(&mut schedule)?;
    let zone = schedule
        .take_text("time_zone")?
        .unwrap_or_else(|| "UTC".to_owned());
    if !schedule.has("schedule_layers") {
        let why = "has no `schedule_layers`; save the response of GET /schedules/ID";
        imported.record_omission(&path, why);
        return Ok(());
    }
    let mut rotations = Vec::new();
    for layer in schedule.take_objects("schedule_layers")? {
        rotations.push(read_layer(layer, known, imported)?);
    }
    schedule.ignore(&IGNORED);
    let mut overrides = schedule.take_object("overrides_subschedule")?;
    if !overrides.take_list("rendered_schedule_entries")?.is_empty() {
        let why = "overrides are set with `POST …/schedules/NAME/overrides`";
        imported.record_omission(&overrides.path, why);
    }
    // Computed from the layers.
    schedule.ignore(&[
        "final_schedule",
        "web_cal_url",
        "http_cal_url",
        "personal_web_cal_url",
        "next_oncall_for_user",
        "cal_url",
        "personal_cal_url",
    ]);
    schedule.finish(imported);
    if rotations.len() > 1 {
        sort_lowest_first(&mut rotations);
        let what = "its last layer has the highest priority; compare who is on call with PagerDuty";
        imported.add_note(&path, what);
    }
    let has_gaps = rotations.iter().all(|it| !it.restrictions.is_empty());
    let mut layers = Vec::new();
    for rotation in &rotations {
        let made = rotation::layers_json(rotation, &zone, imported);
        if layers.len() + made.len() > LAYERS_MAX {
            imported.record_omission(&rotation.path, "a schedule can have at most 10 layers");
        } else {
            layers.extend(made);
        }
    }
    if layers.is_empty() {
        imported.record_omission(&path, "none of its layers could be imported");
        return Ok(());
    }
    let schedule = imported.unique_name("schedule", &name);
    imported.add(
        "schedule",
        json!({
            "name": schedule, "description": description, "timeZone": zone, "layers": layers,
            "gapsAllowed": has_gaps,
        }),
    );
    known.schedules.insert(id, schedule);
    Ok(())
}

/// Sorts the layers so that later ones override earlier ones. PagerDuty's default names contain
/// numbers to sort by. Without them, the order is reversed, because responses list the highest
/// layer first.
fn sort_lowest_first(rotations: &mut [Rotation]) {
    let number = |rotation: &Rotation| -> Option<u32> {
        rotation.name.strip_prefix("Layer ")?.trim().parse().ok()
    };
    if rotations.iter().all(|it| number(it).is_some()) {
        rotations.sort_by_key(number);
    } else {
        rotations.reverse();
    }
}

fn read_layer(
    mut layer: Fields,
    known: &Entities,
    imported: &mut ImportOutput,
) -> Result<Rotation, ImportError> {
    let path = layer.path.clone();
    let name = layer
        .take_text("name")?
        .unwrap_or_else(|| "layer".to_owned());
    let begins = parse_time(&mut layer, "start")?;
    let start = parse_time(&mut layer, "rotation_virtual_start")?.or(begins);
    let start = start.ok_or_else(|| {
        invalid_field_error(&layer.path_of("rotation_virtual_start"), "is required")
    })?;
    let end = parse_time(&mut layer, "end")?;
    let turn = layer.take_text("rotation_turn_length_seconds")?;
    let mut slots = Vec::new();
    for mut entry in layer.take_objects("users")? {
        let mut user = entry.take_object("user")?;
        let id = user.take_text("id")?.unwrap_or_default();
        let found = known.people.find([id.as_str()]);
        if found.is_none() {
            let why = "no contact: the user is missing in the responses, or has no email address";
            imported.record_omission(&user.path, why);
        }
        slots.push(found.into_iter().collect());
        user.ignore(&IGNORED);
        user.finish(imported);
        entry.finish(imported);
    }
    let mut restrictions = Vec::new();
    for one in layer.take_objects("restrictions")? {
        restrictions.extend(read_restriction(one, imported)?);
    }
    layer.ignore(&IGNORED);
    layer.ignore(&["rendered_schedule_entries", "rendered_coverage_percentage"]);
    layer.finish(imported);
    Ok(Rotation {
        path,
        name,
        start,
        turn_seconds: turn.and_then(|it| it.parse().ok()).unwrap_or_default(),
        from: begins,
        end,
        slots,
        restrictions,
    })
}

fn read_restriction(
    mut one: Fields,
    imported: &mut ImportOutput,
) -> Result<Option<Restriction>, ImportError> {
    let start = one.take_text("start_time_of_day")?;
    let start = start.and_then(|it| it.parse::<Time>().ok());
    let start = start.ok_or_else(|| {
        invalid_field_error(
            &one.path_of("start_time_of_day"),
            "expected a time such as 08:00:00",
        )
    })?;
    let seconds = one.take_integer("duration_seconds")?;
    let seconds = seconds.filter(|it| *it > 0);
    let seconds = seconds
        .ok_or_else(|| invalid_field_error(&one.path_of("duration_seconds"), "is required"))?;
    let weekday = match one
        .take_text("start_day_of_week")?
        .map(|it| it.parse::<i8>())
    {
        None => None,
        Some(number) => {
            let weekday = number
                .ok()
                .and_then(|it| Weekday::from_monday_one_offset(it).ok());
            let why = "expected 1 (Monday) to 7";
            Some(
                weekday
                    .ok_or_else(|| invalid_field_error(&one.path_of("start_day_of_week"), why))?,
            )
        }
    };
    one.take_value("type");
    one.finish(imported);
    let is_always = weekday.is_none() && seconds >= 86_400;
    Ok((!is_always).then_some(Restriction {
        weekday,
        start,
        seconds,
    }))
}

fn parse_time(fields: &mut Fields, name: &str) -> Result<Option<Timestamp>, ImportError> {
    let text = fields.take_nonempty_text(name)?;
    let read = text.map(|text| text.parse()).transpose();
    read.map_err(|_unfit| {
        invalid_field_error(
            &fields.path_of(name),
            "expected a time such as 2026-01-05T08:00:00Z",
        )
    })
}

fn read_policy(
    id: &str,
    mut fields: Fields,
    known: &mut Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = fields.path.clone();
    let name = fields.require("name")?;
    let description = take_description(&mut fields)?;
    let (mut steps, mut after, mut last) = (Vec::new(), 0, None);
    for mut rule in fields.take_objects("escalation_rules")? {
        let minutes = rule.take_text("escalation_delay_in_minutes")?;
        let wait = minutes.and_then(|it| it.parse::<i64>().ok()).unwrap_or(30) * 60;
        let mut targets = Vec::new();
        for mut target in rule.take_objects("targets")? {
            let kind = target.take_text("type")?.unwrap_or_default();
            let id = target.take_text("id")?.unwrap_or_default();
            let found = if kind.starts_with("user") {
                let contact = known.people.find([id.as_str()]);
                contact.map(|name| json!({"contactName": name}))
            } else {
                let schedule = known.schedules.get(&id);
                schedule.map(|name| json!({"scheduleName": name}))
            };
            if found.is_none() {
                imported.record_omission(&target.path, "the target could not be imported");
            }
            targets.extend(found);
            target.ignore(&IGNORED);
            target.finish(imported);
        }
        let path = rule.path.clone();
        rule.ignore(&IGNORED);
        rule.finish(imported);
        steps.push(Step {
            path,
            after_seconds: after,
            targets,
        });
        after += wait;
        last = Some(wait);
    }
    let loops = fields.take_integer("num_loops")?;
    fields.ignore(&IGNORED);
    if fields.take_value("on_call_handoff_notifications").is_some() {
        let what = "each hand-off opens an event; a rule can notify about it";
        imported.add_note(&fields.path_of("on_call_handoff_notifications"), what);
    }
    fields.finish(imported);
    let timeouts = known.timeouts.get(id).cloned().unwrap_or_default();
    let timeouts: Vec<_> = timeouts.into_iter().collect();
    if timeouts.len() > 1 {
        let what = "its services differ in `acknowledgement_timeout`; set `ackTimeout`";
        imported.add_note(&path, what);
    }
    let policy = Policy {
        path: &path,
        name: &name,
        description,
        steps,
        rounds: loops.unwrap_or_default() + 1,
        pause_seconds: last,
        ack_timeout_seconds: match timeouts[..] {
            [only] => only,
            _ => None,
        },
    };
    if let Some(name) = escalation::add_policy(policy, imported) {
        known.policies.insert(id.to_owned(), name);
    }
    Ok(())
}

/// Converts a service to a rule without triggers: PagerDuty assigns events by integration key.
fn read_service(
    mut service: Fields,
    policy: Option<String>,
    known: &Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = service.path.clone();
    let name = service.require("name")?;
    let description = take_description(&mut service)?;
    let policy = policy.and_then(|id| known.policies.get(&id));
    let Some(policy) = policy else {
        imported.record_omission(&path, "its escalation policy could not be imported");
        return Ok(());
    };
    imported.add_rule(&path, &name, &description, policy);
    let why = "create a key: `bellwether client create NAME --role ingest --dialect pagerduty`";
    service.omit("integrations", why, imported);
    service.ignore(&IGNORED);
    if service
        .take_text("status")?
        .is_some_and(|it| it == "disabled")
    {
        imported.add_note(&service.path_of("status"), "is disabled there");
    }
    service.finish(imported);
    Ok(())
}
