//! Import of Opsgenie: users become contacts, rotations become schedules, escalations become
//! policies.
//!
//! Reads a folder per kind with a file per entity, as Opsgenie's backup tool writes them, or
//! responses from its REST API.

use std::collections::BTreeMap;

use jiff::{
    Timestamp,
    civil::{Time, Weekday},
};
use serde_json::{Map, Value, json};

use super::{
    File,
    escalation::{self, Step},
    fields::{Fields, invalid_field_error},
    imported::ImportOutput,
    people::{self, ImportedContacts, Person},
    rotation::{self, Restriction, Rotation},
};
use crate::error::ImportError;

/// For each kind: the folder, the member of a file that contains the entity, and the reason for
/// leaving out other members.
const KINDS: [(&str, &str, &str); 4] = [
    (
        "users",
        "user",
        "notification rules become contact methods; set `after` and `minSeverity` there",
    ),
    (
        "teams",
        "team",
        "rules decide who is notified; create rules with `escalationPolicyName`",
    ),
    (
        "schedules",
        "schedule",
        "overrides are set with `POST …/schedules/NAME/overrides`",
    ),
    ("escalations", "escalation", "has no counterpart"),
];
/// Fields without meaning outside Opsgenie: identities, edit permissions, and languages of its
/// pages.
pub(crate) const IGNORED: [&str; 8] = [
    "id",
    "_parent",
    "links",
    "createdAt",
    "took",
    "requestId",
    "ownerTeam",
    "locale",
];
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

#[derive(Default)]
struct Entities {
    people: ImportedContacts,
    teams: BTreeMap<String, Vec<String>>,
    /// Schedules by id and name: one per rotation, as all rotations are on call.
    schedules: BTreeMap<String, Vec<String>>,
}

pub(crate) fn import_export(
    files: Vec<File>,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let mut entities: BTreeMap<&str, Vec<Fields>> = BTreeMap::new();
    for file in files {
        let Some(kind) = KINDS.iter().find(|(folder, ..)| *folder == file.word) else {
            imported.record_omission(&file.path, skip_reason(&file.word));
            continue;
        };
        let into = entities.entry(kind.0).or_default();
        collect_entities(
            *kind,
            &format!("{}:", file.path),
            file.content,
            into,
            imported,
        )?;
    }
    let mut take = |kind: &str| entities.remove(kind).unwrap_or_default();
    let mut known = Entities::default();
    for user in take("users") {
        read_user(user, &mut known, imported)?;
    }
    for team in take("teams") {
        read_team(team, &mut known, imported)?;
    }
    for schedule in take("schedules") {
        read_schedule(schedule, &mut known, imported)?;
    }
    for escalation in take("escalations") {
        read_escalation(escalation, &known, imported)?;
    }
    Ok(())
}

fn skip_reason(word: &str) -> &'static str {
    match word {
        "integrations" => {
            "create a key: `bellwether client create NAME --role ingest --dialect opsgenie`"
        }
        "heartbeats" => "create a heartbeat; see the topic «heartbeats»",
        "maintenance" | "maintenances" => "create a silence; see the topic «silences»",
        "policies" | "policiesv2" | "policyorders" => {
            "use rules, inhibitions and delays instead of policies; see the topic «notifications»"
        }
        _ => "has no counterpart",
    }
}

/// Collects the entities of a file. The file contains an entity, a list of entities, or a REST
/// response with either.
fn collect_entities(
    kind: (&str, &str, &str),
    path: &str,
    content: Value,
    into: &mut Vec<Fields>,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    if let Value::Array(items) = content {
        for (at, item) in items.into_iter().enumerate() {
            collect_entities(kind, &format!("{path}[{at}]"), item, into, imported)?;
        }
        return Ok(());
    }
    let mut fields = Fields::from_value(path, content)?;
    for inner in ["data", kind.1] {
        if fields.has(inner) {
            let path = fields.path_of(inner);
            let content = fields.take_value(inner).unwrap_or_default();
            collect_entities(kind, &path, content, into, imported)?;
            fields.ignore(&IGNORED);
            fields.finish_with_reason(imported, kind.2);
            return Ok(());
        }
    }
    into.push(fields);
    Ok(())
}

fn take_keys(fields: &mut Fields) -> Result<Vec<String>, ImportError> {
    let mut keys = Vec::new();
    for name in ["id", "name", "username"] {
        keys.extend(fields.take_nonempty_text(name)?);
    }
    Ok(keys)
}

fn take_name(fields: &mut Fields, name: &str) -> Result<(Vec<String>, String), ImportError> {
    let text = fields.require(name)?;
    let mut keys = take_keys(fields)?;
    keys.push(text.clone());
    Ok((keys, text))
}

fn read_user(
    mut user: Fields,
    known: &mut Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = user.path.clone();
    let full = user.take_text("fullName")?;
    let (keys, username) = take_name(&mut user, "username")?;
    let mut variables = Map::new();
    let mut mail = username.contains('@').then(|| username.clone());
    for mut contact in user.take_objects("userContacts")? {
        let method = contact.take_text("contactMethod")?.unwrap_or_default();
        let to = contact.take_text("to")?;
        // `enabled` is beside the address in exports, and inside `status` in REST responses.
        let mut status = contact.take_object("status")?;
        let is_enabled = [contact.take_flag("enabled")?, status.take_flag("enabled")?];
        if is_enabled.contains(&Some(false)) {
            imported.record_omission(&contact.path, "is disabled");
            continue;
        }
        status.finish(imported);
        let path = contact.path.clone();
        match (method.as_str(), to) {
            ("email", to) => people::add_mail(&path, to, &mut mail, imported),
            ("sms" | "voice", Some(to)) => {
                let name = if method == "sms" { "sms" } else { "phone" };
                people::add_number(&path, name, &to, &mut variables, imported);
            }
            _ => imported.record_omission(&path, "no such method"),
        }
        contact.ignore(&IGNORED);
        contact.finish(imported);
    }
    if user.take_flag("blocked")? == Some(true) {
        let why = "is blocked: not imported as a contact, so its shifts have no one on call";
        imported.record_omission(&path, why);
        return Ok(());
    }
    if user.take_flag("verified")? == Some(false) {
        imported.add_note(
            &user.path_of("verified"),
            "the account was never verified in Opsgenie",
        );
    }
    let person = Person {
        path: &path,
        keys,
        name: full
            .as_deref()
            .filter(|it| !it.is_empty())
            .unwrap_or(&username),
        time_zone: user.take_text("timeZone")?,
        mail,
        variables,
    };
    known.people.add(person, imported);
    user.ignore(&IGNORED);
    let why = "roles are set for API keys and single sign-on";
    user.omit("role", why, imported);
    user.finish(imported);
    Ok(())
}

fn read_team(
    mut team: Fields,
    known: &mut Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let (keys, _) = take_name(&mut team, "name")?;
    let mut contacts = Vec::new();
    for mut member in team.take_objects("members")? {
        let user = member.take_object("user")?;
        contacts.extend(contact_name(user, known, imported)?);
        if member.take_text("role")?.is_some() {
            let why = "roles are set for API keys and single sign-on";
            imported.record_omission(&member.path_of("role"), why);
        }
        member.finish(imported);
    }
    for key in keys {
        known.teams.insert(key, contacts.clone());
    }
    team.ignore(&IGNORED);
    let path = team.path.clone();
    if team
        .take_text("description")?
        .is_some_and(|it| !it.is_empty())
    {
        imported.record_omission(&team.path_of("description"), "Bellwether has no teams");
    }
    team.finish(imported);
    let what = "schedules and escalations list the members of the team instead";
    imported.add_note(&path, what);
    Ok(())
}

fn contact_name(
    mut user: Fields,
    known: &Entities,
    imported: &mut ImportOutput,
) -> Result<Option<String>, ImportError> {
    let keys = take_keys(&mut user)?;
    let found = known.people.find(keys.iter().map(String::as_str));
    if found.is_none() {
        imported.record_omission(
            &user.path,
            "no contact: the user is blocked, missing in the export, or has no email address",
        );
    }
    user.ignore(&IGNORED);
    user.take_value("type");
    user.finish(imported);
    Ok(found)
}

fn read_schedule(
    mut schedule: Fields,
    known: &mut Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = schedule.path.clone();
    let (keys, name) = take_name(&mut schedule, "name")?;
    let description = schedule.take_text("description")?.unwrap_or_default();
    let zone = schedule
        .take_text("timezone")?
        .unwrap_or_else(|| "UTC".to_owned());
    let enabled = schedule.take_flag("enabled")?.unwrap_or(true);
    let rotations = schedule.take_objects("rotations")?;
    schedule.ignore(&IGNORED);
    schedule.finish(imported);
    if !enabled {
        imported.record_omission(&path, "is disabled");
        return Ok(());
    }
    let several = rotations.len() > 1;
    let mut made = Vec::new();
    for rotation in rotations {
        let rotation = read_rotation(rotation, &name, known, imported)?;
        let layers = rotation::layers_json(&rotation, &zone, imported);
        if layers.is_empty() {
            continue;
        }
        let wanted = if several {
            format!("{name} {}", rotation.name)
        } else {
            name.clone()
        };
        let schedule = imported.unique_name("schedule", &wanted);
        imported.add(
            "schedule",
            json!({
                "name": schedule, "description": description_or_path(&description, &rotation.path),
                "timeZone": zone, "layers": layers,
                "gapsAllowed": several || !rotation.restrictions.is_empty(),
            }),
        );
        made.push(schedule);
    }
    if made.is_empty() {
        imported.record_omission(&path, "none of its rotations could be imported");
    } else if several {
        imported.add_note(&path, "one schedule per rotation, because all are on call");
    }
    for key in keys {
        known.schedules.insert(key, made.clone());
    }
    Ok(())
}

fn description_or_path(description: &str, path: &str) -> String {
    let text = if description.is_empty() {
        path
    } else {
        description
    };
    text.chars().take(1_000).collect()
}

fn read_rotation(
    mut fields: Fields,
    schedule: &str,
    known: &Entities,
    imported: &mut ImportOutput,
) -> Result<Rotation, ImportError> {
    let path = fields.path.clone();
    let name = fields.take_nonempty_text("name")?;
    let start = parse_time(&mut fields, "startDate")?;
    let start =
        start.ok_or_else(|| invalid_field_error(&fields.path_of("startDate"), "is required"))?;
    let end = parse_time(&mut fields, "endDate")?;
    let unit = match fields.take_text("type")?.as_deref() {
        Some("hourly") => 3_600,
        Some("daily") => 86_400,
        None | Some("weekly") => 604_800,
        Some(_) => {
            let why = "expected `hourly`, `daily` or `weekly`";
            return Err(invalid_field_error(&fields.path_of("type"), why));
        }
    };
    let length = fields.take_integer("length")?;
    let mut slots = Vec::new();
    for mut participant in fields.take_objects("participants")? {
        let kind = participant.take_text("type")?;
        slots.push(match kind.as_deref() {
            Some("user") => contact_name(participant, known, imported)?
                .into_iter()
                .collect(),
            Some("team") => {
                let keys = take_keys(&mut participant)?;
                let team = keys.iter().find_map(|key| known.teams.get(key));
                if team.is_none() {
                    imported.record_omission(&participant.path, "the team is not in the export");
                }
                team.cloned().unwrap_or_default()
            }
            None | Some("none") => Vec::new(),
            Some(_) => {
                let why = "only users and teams can be on call; the shift is empty";
                imported.record_omission(&participant.path, why);
                Vec::new()
            }
        });
    }
    let restrictions = read_restrictions(fields.take_object("timeRestriction")?, imported)?;
    fields.ignore(&IGNORED);
    fields.finish(imported);
    Ok(Rotation {
        path,
        name: name.unwrap_or_else(|| schedule.to_owned()),
        start,
        turn_seconds: unit * length.unwrap_or(1),
        from: None,
        end,
        slots,
        restrictions,
    })
}

fn read_restrictions(
    mut fields: Fields,
    imported: &mut ImportOutput,
) -> Result<Vec<Restriction>, ImportError> {
    fields.take_value("type");
    let mut all = fields.take_objects("restrictions")?;
    if fields.has("restriction") {
        // Weekly restrictions are a list; a daily restriction is an object.
        let is_list = fields.is_list("restriction");
        if is_list {
            all.extend(fields.take_objects("restriction")?);
        } else {
            all.push(fields.take_object("restriction")?);
        }
    }
    fields.finish(imported);
    let mut restrictions = Vec::new();
    for mut one in all {
        let path = one.path.clone();
        let mut time = |hour: &str, minute: &str| -> Result<Time, ImportError> {
            let number = |text: Option<String>| text.map_or(Some(0), |it| it.parse::<i8>().ok());
            let (hours, minutes) = (number(one.take_text(hour)?), number(one.take_text(minute)?));
            let time = hours
                .zip(minutes)
                .and_then(|(hours, minutes)| Time::new(hours % 24, minutes, 0, 0).ok());
            time.ok_or_else(|| invalid_field_error(&path, "expected hours and minutes"))
        };
        let (start, end) = (time("startHour", "startMin")?, time("endHour", "endMin")?);
        let mut day = |field: &str| -> Result<Option<Weekday>, ImportError> {
            let Some(text) = one.take_text(field)? else {
                return Ok(None);
            };
            let text = text.to_lowercase();
            let found = WEEKDAYS.iter().find(|(name, _)| *name == text);
            let found = found.ok_or_else(|| {
                invalid_field_error(&one.path_of(field), "expected a day of the week")
            })?;
            Ok(Some(found.1))
        };
        let (first, last) = (day("startDay")?, day("endDay")?);
        one.finish(imported);
        let minutes = |time: Time| i64::from(time.hour()) * 60 + i64::from(time.minute());
        let days = match (first, last) {
            (Some(first), Some(last)) => i64::from(first.until(last)),
            _ => 0,
        };
        let period = if first.is_some() { 7 * 1_440 } else { 1_440 };
        let span = (days * 1_440 + minutes(end) - minutes(start)).rem_euclid(period);
        if span == 0 && first.is_none() {
            continue;
        }
        restrictions.push(Restriction {
            weekday: first,
            start,
            seconds: if span == 0 { period } else { span } * 60,
        });
    }
    Ok(restrictions)
}

/// Parses a time such as `2026-01-05T08:00:00Z`, `2026-01-05 08:00` in UTC, or milliseconds since
/// 1970.
fn parse_time(fields: &mut Fields, name: &str) -> Result<Option<Timestamp>, ImportError> {
    let Some(text) = fields.take_nonempty_text(name)? else {
        return Ok(None);
    };
    let short = || format!("{}:00Z", text.replace(' ', "T"));
    let read = match text.parse().map(Timestamp::from_millisecond) {
        Ok(read) => read.ok(),
        Err(_no_number) => text.parse().or_else(|_long| short().parse()).ok(),
    };
    let why = "expected a time such as 2026-01-05T08:00:00Z";
    read.map(Some)
        .ok_or_else(|| invalid_field_error(&fields.path_of(name), why))
}

fn read_escalation(
    mut fields: Fields,
    known: &Entities,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let path = fields.path.clone();
    let (_, name) = take_name(&mut fields, "name")?;
    let description = fields.take_text("description")?.unwrap_or_default();
    let mut steps = Vec::new();
    for mut rule in fields.take_objects("rules")? {
        let path = rule.path.clone();
        if rule
            .take_text("condition")?
            .is_some_and(|it| it != "if-not-acked")
        {
            let what = "steps run until someone acknowledges, not until the event is closed";
            imported.add_note(&path, what);
        }
        if rule
            .take_text("notifyType")?
            .is_some_and(|it| it != "default" && it != "all")
        {
            let what = "everyone on call, or in the team, is notified";
            imported.add_note(&path, what);
        }
        let mut delay = rule.take_object("delay")?;
        let amount = delay.take_integer("timeAmount")?;
        let unit = match delay.take_text("timeUnit")?.as_deref() {
            Some("hours") => 3_600,
            Some("days") => 86_400,
            Some("seconds") => 1,
            _ => 60,
        };
        delay.finish(imported);
        let targets = read_recipient(rule.take_object("recipient")?, known, imported)?;
        rule.finish(imported);
        steps.push(Step {
            path,
            after_seconds: amount.unwrap_or_default().saturating_mul(unit),
            targets,
        });
    }
    let mut repeat = fields.take_object("repeat")?;
    let number = |text: Option<String>| text.and_then(|it| it.parse::<i64>().ok());
    let rounds = number(repeat.take_text("count")?).unwrap_or_default() + 1;
    let pause = number(repeat.take_text("waitInterval")?).unwrap_or_default() * 60;
    for name in ["resetRecipientStates", "closeAlertAfterAll"] {
        if repeat.take_flag(name)? == Some(true) {
            imported.record_omission(&repeat.path_of(name), "has no counterpart");
        }
    }
    repeat.finish(imported);
    fields.ignore(&IGNORED);
    fields.finish(imported);
    let policy = escalation::Policy {
        path: &path,
        name: &name,
        description: description_or_path(&description, &path),
        steps,
        rounds,
        pause_seconds: (pause > 0).then_some(pause),
        ack_timeout_seconds: None,
    };
    escalation::add_policy(policy, imported);
    Ok(())
}

fn read_recipient(
    mut recipient: Fields,
    known: &Entities,
    imported: &mut ImportOutput,
) -> Result<Vec<Value>, ImportError> {
    let path = recipient.path.clone();
    let contacts = |names: Vec<String>| {
        let targets = names.into_iter().map(|name| json!({"contactName": name}));
        targets.collect::<Vec<_>>()
    };
    let targets = match recipient.take_text("type")?.as_deref() {
        Some("user") => contacts(
            contact_name(recipient, known, imported)?
                .into_iter()
                .collect(),
        ),
        Some("team") => {
            let keys = take_keys(&mut recipient)?;
            contacts(
                keys.iter()
                    .find_map(|key| known.teams.get(key))
                    .cloned()
                    .unwrap_or_default(),
            )
        }
        Some("schedule") => {
            let keys = take_keys(&mut recipient)?;
            let found = keys.iter().find_map(|key| known.schedules.get(key));
            let names = found.cloned().unwrap_or_default().into_iter();
            names.map(|name| json!({"scheduleName": name})).collect()
        }
        _ => Vec::new(),
    };
    if targets.is_empty() {
        imported.record_omission(&path, "the recipient could not be imported");
    }
    Ok(targets)
}
