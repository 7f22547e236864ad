//! Import of Grafana OnCall's API responses: users become contacts, schedules become schedules,
//! escalation chains become policies, integrations and routes become rules.

mod shift;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    File,
    escalation::{self, Policy, Step},
    fields::{Fields, invalid_field_error},
    imported::ImportOutput,
    people::{ImportedContacts, Person},
    rotation::{self, LAYERS_MAX},
};
use crate::error::ImportError;
use shift::read_shift;

const KINDS: [&str; 7] = [
    "users",
    "on_call_shifts",
    "schedules",
    "escalation_chains",
    "escalation_policies",
    "integrations",
    "routes",
];
const PAGING: [&str; 5] = [
    "count",
    "previous",
    "current_page_number",
    "page_size",
    "total_pages",
];
/// Fields without meaning outside Grafana OnCall: identities, addresses that contain tokens,
/// computed values, and permissions.
pub(crate) const IGNORED: [&str; 10] = [
    "id",
    "grafana_id",
    "team_id",
    "teams",
    "avatar_url",
    "on_call_now",
    "enable_web_overrides",
    "link",
    "inbound_email",
    "is_the_last_route",
];

#[derive(Default)]
struct Entities {
    people: ImportedContacts,
    shifts: BTreeMap<String, Fields>,
    schedules: BTreeMap<String, String>,
    policies: BTreeMap<String, String>,
    integrations: BTreeMap<String, String>,
}

pub(crate) fn import_export(
    files: Vec<File>,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let mut entities: BTreeMap<&str, BTreeMap<String, Fields>> = BTreeMap::new();
    for file in files {
        let Some(kind) = KINDS.into_iter().find(|it| *it == file.word) else {
            imported.record_omission(&file.path, "has no counterpart");
            continue;
        };
        let found = read_page(&format!("{}:", file.path), file.content, imported)?;
        let into = entities.entry(kind).or_default();
        for mut entity in found {
            let id = entity.take_text("id")?;
            let id = id.ok_or_else(|| invalid_field_error(&entity.path_of("id"), "is required"))?;
            into.insert(id, entity);
        }
    }
    let mut take = |kind: &str| entities.remove(kind).unwrap_or_default();
    let mut known = Entities {
        shifts: take("on_call_shifts"),
        ..Entities::default()
    };
    for (id, user) in take("users") {
        read_user(id, user, &mut known, imported)?;
    }
    for (id, schedule) in take("schedules") {
        read_schedule(id, schedule, &mut known, imported)?;
    }
    for shift in std::mem::take(&mut known.shifts).into_values() {
        imported.record_omission(&shift.path, "belongs to no imported schedule");
    }
    let mut steps: BTreeMap<String, Vec<(i64, Fields)>> = BTreeMap::new();
    for mut step in take("escalation_policies").into_values() {
        let chain = step.take_text("escalation_chain_id")?.unwrap_or_default();
        let position = take_number(&mut step, "position")?.unwrap_or_default();
        steps.entry(chain).or_default().push((position, step));
    }
    for (id, chain) in take("escalation_chains") {
        let steps = steps.remove(&id).unwrap_or_default();
        read_chain(id, chain, steps, &mut known, imported)?;
    }
    for (_, step) in steps.into_values().flatten() {
        imported.record_omission(&step.path, "its escalation chain is not in the files");
    }
    for (id, integration) in take("integrations") {
        read_integration(id, integration, &mut known, imported)?;
    }
    for route in take("routes").into_values() {
        read_route(route, &known, imported)?;
    }
    Ok(())
}

/// Returns the entities of a response: a page, a list, or one entity.
fn read_page(
    path: &str,
    content: Value,
    imported: &mut ImportOutput,
) -> Result<Vec<Fields>, ImportError> {
    if let Value::Array(items) = content {
        let items = items.into_iter().enumerate();
        let items = items.map(|(at, item)| Fields::from_value(&format!("{path}[{at}]"), item));
        return items.collect();
    }
    let mut fields = Fields::from_value(path, content)?;
    if !fields.has("results") {
        return Ok(vec![fields]);
    }
    let found = fields.take_objects("results")?;
    fields.ignore(&PAGING);
    let why = "there are more pages; save all of them";
    fields.omit("next", why, imported);
    fields.finish(imported);
    Ok(found)
}

fn finish(mut fields: Fields, imported: &mut ImportOutput) {
    fields.ignore(&IGNORED);
    let why = "create a destination of the type `slack`";
    fields.omit("slack", why, imported);
    fields.finish(imported);
}

fn take_number(fields: &mut Fields, name: &str) -> Result<Option<i64>, ImportError> {
    let path = fields.path_of(name);
    let text = fields.take_text(name)?;
    let number = text.map(|text| {
        // Durations are written as `60.0` as well.
        let text = text.strip_suffix(".0").unwrap_or(&text);
        text.parse()
            .map_err(|_no_number| invalid_field_error(&path, "expected a whole number"))
    });
    number.transpose()
}

fn read_user(
    id: String,
    mut user: Fields,
    known: &mut Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = user.path.clone();
    let name = user.require("username")?;
    let person = Person {
        path: &path,
        keys: vec![id],
        name: &name,
        time_zone: user.take_text("timezone")?,
        mail: user.take_text("email")?,
        variables: Map::new(),
    };
    known.people.add(person, imported);
    let why = "roles are set for API keys and single sign-on";
    user.omit("role", why, imported);
    finish(user, imported);
    Ok(())
}

fn contact_names(
    path: &str,
    ids: &[String],
    people: &ImportedContacts,
    imported: &mut ImportOutput,
) -> Vec<String> {
    let mut names = Vec::new();
    for id in ids {
        if let Some(name) = people.find([id.as_str()]) {
            names.push(name);
        } else {
            let why = format!("user `{id}` is missing in the files, or has no email address");
            imported.record_omission(path, &why);
        }
    }
    names
}

fn read_schedule(
    id: String,
    mut schedule: Fields,
    known: &mut Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = schedule.path.clone();
    let name = schedule.require("name")?;
    let kind = schedule.take_text("type")?;
    let zone = schedule.take_text("time_zone")?;
    let zone = zone.filter(|it| !it.is_empty());
    let zone = zone.unwrap_or_else(|| "UTC".to_owned());
    let ids = schedule.take_texts("shifts")?;
    for name in ["ical_url_primary", "ical_url_overrides"] {
        let why = "calendars by address are not read; create layers or overrides";
        schedule.omit(name, why, imported);
    }
    finish(schedule, imported);
    let why = match kind.as_deref() {
        None | Some("calendar" | "web") => None,
        Some("ical") => Some("its shifts are in an iCalendar file; create its layers"),
        Some(_) => Some("is of a type without counterpart"),
    };
    if let Some(why) = why {
        imported.record_omission(&path, why);
        return Ok(());
    }
    let mut layers = Vec::new();
    for id in ids {
        let Some(shift) = known.shifts.remove(&id) else {
            imported.record_omission(&path, &format!("shift `{id}` is missing in the files"));
            continue;
        };
        let shift = read_shift(shift, &zone, imported)?;
        if let Some(why) = shift.unsupported_reason() {
            imported.record_omission(&shift.path, why);
            continue;
        }
        let level = shift.level;
        let rotation = shift.into_rotation(&zone, &known.people, imported)?;
        let made = rotation::layers_json(&rotation, &zone, imported);
        layers.extend(made.into_iter().map(|layer| (level, layer)));
    }
    // Later layers override earlier ones, as higher levels do.
    layers.sort_by_key(|(level, _)| *level);
    if layers.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        let what = "where shifts of one level overlap, only the last one is on call, not all";
        imported.add_note(&path, what);
    }
    if layers.len() > LAYERS_MAX {
        let why = format!("has more than {LAYERS_MAX} layers; those of the lowest level are lost");
        imported.record_omission(&path, &why);
        layers.drain(..layers.len() - LAYERS_MAX);
    }
    if layers.is_empty() {
        imported.record_omission(&path, "none of its shifts could be imported");
        return Ok(());
    }
    let schedule = imported.unique_name("schedule", &name);
    let layers: Vec<_> = layers.into_iter().map(|(_, layer)| layer).collect();
    imported.add(
        "schedule",
        json!({
            "name": schedule, "description": path, "timeZone": zone, "layers": layers,
            "gapsAllowed": true,
        }),
    );
    known.schedules.insert(id, schedule);
    Ok(())
}

fn read_chain(
    id: String,
    mut chain: Fields,
    mut steps: Vec<(i64, Fields)>,
    known: &mut Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = chain.path.clone();
    let name = chain.require("name")?;
    finish(chain, imported);
    steps.sort_by_key(|(position, _)| *position);
    let (mut after_seconds, mut rounds) = (0_i64, 1);
    let mut made = Vec::new();
    for (_, mut step) in steps {
        let path = step.path.clone();
        let kind = step.take_text("type")?.unwrap_or_default();
        let wait = take_number(&mut step, "duration")?;
        let next_each_time = step.take_texts("persons_to_notify_next_each_time")?;
        let persons = step.take_texts("persons_to_notify")?;
        let schedule = step.take_text("notify_on_call_from_schedule")?;
        if step.take_flag("important")? == Some(true) {
            let what = "is important; set `minSeverity` and `after` of the contacts' methods";
            imported.add_note(&step.path_of("important"), what);
        }
        let contacts = |ids: &[String], imported: &mut ImportOutput| {
            let names = contact_names(&path, ids, &known.people, imported).into_iter();
            let targets = names.map(|name| json!({"contactName": name}));
            targets.collect::<Vec<_>>()
        };
        let targets = match kind.as_str() {
            "wait" => {
                after_seconds = after_seconds.saturating_add(wait.unwrap_or(60).max(0));
                Vec::new()
            }
            "notify_persons" => contacts(&persons, imported),
            "notify_person_next_each_time" => {
                imported.add_note(&path, "notifies all of these people, not one each time");
                contacts(&next_each_time, imported)
            }
            "notify_on_call_from_schedule" => {
                let found = schedule.and_then(|id| known.schedules.get(&id));
                if found.is_none() {
                    imported.record_omission(&path, "the schedule could not be imported");
                }
                let names = found.into_iter();
                names.map(|name| json!({"scheduleName": name})).collect()
            }
            "repeat_escalation" => {
                rounds = 6;
                Vec::new()
            }
            _ => {
                imported.record_omission(&path, skip_reason(&kind));
                continue;
            }
        };
        finish(step, imported);
        made.push(Step {
            path,
            after_seconds,
            targets,
        });
    }
    let policy = Policy {
        path: &path,
        name: &name,
        description: path.clone(),
        steps: made,
        rounds,
        pause_seconds: None,
        ack_timeout_seconds: None,
    };
    let made = escalation::add_policy(policy, imported);
    known.policies.extend(made.map(|name| (id, name)));
    Ok(())
}

fn skip_reason(step: &str) -> &'static str {
    match step {
        "notify_whole_channel" | "notify_user_group" => {
            "create a destination of the type `slack` and add it to the step"
        }
        "trigger_webhook" => "create a destination of the type `webhook` and add it to the step",
        "notify_if_time_from_to" => "set `activeCalendarName` in the rule",
        "notify_if_num_alerts_in_window" => "use `count` in the trigger's query",
        "resolve" => "events close when their sender reports it, or with a heartbeat",
        "notify_team_members" => "list the people of the team in the step",
        _ => "has no counterpart",
    }
}

fn read_integration(
    id: String,
    mut integration: Fields,
    known: &mut Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = integration.path.clone();
    let name = integration.require("name")?;
    let dialect = match integration.take_text("type")?.as_deref() {
        Some("alertmanager" | "grafana_alerting" | "grafana") => " --dialect alertmanager",
        _ => "",
    };
    let what = format!("create a key: `bellwether client create NAME --role ingest{dialect}`");
    imported.add_note(&path, &what);
    let why = "messages and groups are set in rules; see the topic «templates»";
    integration.omit("templates", why, imported);
    let mut route = integration.take_object("default_route")?;
    let chain = route.take_text("escalation_chain_id")?;
    let route_path = route.path.clone();
    finish(route, imported);
    finish(integration, imported);
    add_rule(&route_path, &name, &path, chain, known, imported);
    known.integrations.insert(id, name);
    Ok(())
}

fn read_route(
    mut route: Fields,
    known: &Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = route.path.clone();
    let chain = route.take_text("escalation_chain_id")?;
    let integration = route.take_text("integration_id")?.unwrap_or_default();
    let position = take_number(&mut route, "position")?.unwrap_or_default();
    let kind = route.take_text("routing_type")?;
    let condition = route.take_text("routing_regex")?.unwrap_or_default();
    let is_last = route.take_flag("is_the_last_route")? == Some(true);
    finish(route, imported);
    if is_last {
        imported.record_omission(&path, "is the default route of its integration");
        return Ok(());
    }
    let Some(integration) = known.integrations.get(&integration) else {
        imported.record_omission(&path, "its integration is missing in the files");
        return Ok(());
    };
    let kind = kind.unwrap_or_else(|| "regex".to_owned());
    let description: String = format!("{path}: {kind} {condition}")
        .chars()
        .take(1_000)
        .collect();
    let name = format!("{integration} route {}", position + 1);
    add_rule(&path, &name, &description, chain, known, imported);
    Ok(())
}

fn add_rule(
    path: &str,
    name: &str,
    description: &str,
    chain: Option<String>,
    known: &Entities,
    imported: &mut ImportOutput,
) {
    let Some(chain) = chain else {
        imported.record_omission(path, "has no escalation chain, so it notifies no one");
        return;
    };
    let Some(policy) = known.policies.get(&chain) else {
        imported.record_omission(path, "its escalation chain could not be imported");
        return;
    };
    imported.add_rule(path, name, description, policy);
}
