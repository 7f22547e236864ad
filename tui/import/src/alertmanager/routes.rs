//! Import of routes: each reachable one becomes a trigger, and rules for its receiver.
//!
//! Rules are independent of each other. The condition of a route therefore combines its own
//! matchers, those of its parents, and the negation of earlier siblings without `continue`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    super::{
        fields::{Fields, invalid_field_error},
        imported::ImportOutput,
    },
    condition::{Condition, FilterOrQuery, exists_condition},
    duration,
    intervals::{Intervals, Times},
    matcher::{self, ALERT, Matcher},
    receivers::Receiver,
};
use crate::error::ImportError;

const DEPTH_MAX: usize = 32;
const ROUTES_MAX: usize = 5_000;
const GROUP_BY_MAX: usize = 10;
/// Limits in milliseconds: the longest wait, the range of the interval, and the longest repeat
/// interval.
const WAIT_MAX_MS: u64 = 3_600_000;
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 10_000..=86_400_000;
const REPEAT_MAX_MS: u64 = 31_536_000_000;

#[derive(Debug, Clone)]
struct Options {
    receiver: String,
    group_by: InheritedSetting<Vec<String>>,
    wait_ms: InheritedSetting<u64>,
    interval_ms: InheritedSetting<u64>,
    repeat_ms: InheritedSetting<u64>,
}

#[derive(Debug, Clone)]
struct InheritedSetting<T> {
    path: String,
    value: T,
}

impl<T: Clone> InheritedSetting<T> {
    fn default(value: T) -> Self {
        Self {
            path: "route".to_owned(),
            value,
        }
    }

    fn or_inherited(path: String, value: Option<T>, around: &Self) -> Self {
        value.map_or_else(|| around.clone(), |value| Self { path, value })
    }
}

struct Route {
    path: String,
    options: Options,
    matchers: Vec<Matcher>,
    continues: bool,
    muted: Vec<String>,
    active: Vec<String>,
    routes: Vec<Self>,
}

pub(crate) fn import_routes(
    fields: &mut Fields,
    receivers: &BTreeMap<String, Receiver>,
    intervals: &mut Intervals,
    imported: &mut ImportOutput,
) -> Result<(), ImportError> {
    let defaults = Options {
        receiver: String::new(),
        group_by: InheritedSetting::default(Vec::new()),
        wait_ms: InheritedSetting::default(30_000),
        interval_ms: InheritedSetting::default(300_000),
        repeat_ms: InheritedSetting::default(14_400_000),
    };
    let root = read_route(fields.take_object("route")?, &defaults, 0, imported)?;
    let (mut routes, mut matchers) = (0, Vec::new());
    collect_matchers(&root, &mut routes, &mut matchers);
    if routes > ROUTES_MAX {
        let why = format!("expected at most {ROUTES_MAX} routes; found {routes}");
        return Err(invalid_field_error("route", &why));
    }
    matcher::check_case(matchers.into_iter(), imported);
    let mut writer = Writer {
        receivers,
        intervals,
        imported,
    };
    writer.write(&root, &[], &[])
}

impl Route {
    fn route_times(&self) -> Times<'_> {
        Times {
            path: &self.path,
            active: &self.active,
            muted: &self.muted,
        }
    }
}

fn read_route(
    mut fields: Fields,
    around: &Options,
    depth: usize,
    imported: &mut ImportOutput,
) -> Result<Route, ImportError> {
    if depth == DEPTH_MAX {
        let why = format!("expected at most {DEPTH_MAX} levels of nested routes");
        return Err(invalid_field_error(&fields.path, &why));
    }
    let matchers =
        matcher::read_matchers(&mut fields, ["matchers", "match", "match_re"], imported)?;
    let groups = fields
        .has("group_by")
        .then(|| fields.take_texts("group_by"));
    let receiver = fields.take_text("receiver")?;
    let mut length = |name: &str,
                      around: &InheritedSetting<u64>|
     -> Result<InheritedSetting<u64>, ImportError> {
        let value = duration::read_field(&mut fields, name)?;
        Ok(InheritedSetting::or_inherited(
            fields.path_of(name),
            value,
            around,
        ))
    };
    let wait_ms = length("group_wait", &around.wait_ms)?;
    let interval_ms = length("group_interval", &around.interval_ms)?;
    let repeat_ms = length("repeat_interval", &around.repeat_ms)?;
    let options = Options {
        receiver: receiver.unwrap_or_else(|| around.receiver.clone()),
        group_by: InheritedSetting::or_inherited(
            fields.path_of("group_by"),
            groups.transpose()?,
            &around.group_by,
        ),
        wait_ms,
        interval_ms,
        repeat_ms,
    };
    let continues = fields.take_flag("continue")?.unwrap_or_default();
    let muted = fields.take_texts("mute_time_intervals")?;
    let active = fields.take_texts("active_time_intervals")?;
    let inner = fields.take_objects("routes")?.into_iter();
    let inner = inner.map(|inner| read_route(inner, &options, depth + 1, imported));
    let routes = inner.collect::<Result<_, _>>()?;
    let path = fields.path.clone();
    fields.finish(imported);
    Ok(Route {
        path,
        options,
        matchers,
        continues,
        muted,
        active,
        routes,
    })
}

fn collect_matchers<'a>(route: &'a Route, routes: &mut usize, matchers: &mut Vec<&'a Matcher>) {
    *routes += 1;
    matchers.extend(&route.matchers);
    for inner in &route.routes {
        collect_matchers(inner, routes, matchers);
    }
}

struct Writer<'a> {
    receivers: &'a BTreeMap<String, Receiver>,
    intervals: &'a mut Intervals,
    imported: &'a mut ImportOutput,
}

impl Writer<'_> {
    /// Converts a route and its children. `required` contains the matchers of its parents;
    /// `excluded` contains the matchers of earlier siblings without `continue`.
    fn write(
        &mut self,
        route: &Route,
        required: &[Matcher],
        excluded: &[Vec<Matcher>],
    ) -> Result<(), ImportError> {
        let required = [required, &route.matchers].concat();
        let mut earlier = excluded.to_vec();
        for inner in &route.routes {
            self.write(inner, &required, &earlier)?;
            if !inner.continues {
                earlier.push(inner.matchers.clone());
            }
        }
        // The parent's receiver gets the alerts that no child matches. Children with `continue`
        // count, too.
        let inner = route.routes.iter().map(|inner| inner.matchers.clone());
        let excluded: Vec<_> = excluded.iter().cloned().chain(inner).collect();
        self.write_own(route, &matcher::combined_condition(&required, &excluded))
    }

    fn write_own(&mut self, route: &Route, condition: &Condition) -> Result<(), ImportError> {
        let name = &route.options.receiver;
        let path = &route.path;
        let receiver = self.receivers.get(name).ok_or_else(|| {
            invalid_field_error(&format!("{path}.receiver"), "expected a receiver name")
        })?;
        if *condition == Condition::Never {
            let why = "no alert reaches it: other routes match all of its alerts, or it has \
                       matchers that exclude each other";
            // Not reported for a parent route: often, no alert remains for it.
            if route.routes.is_empty() {
                self.imported.record_omission(path, why);
            }
            return Ok(());
        }
        if receiver.is_silent {
            let what = "its receiver notifies no one, so no rule was created";
            self.imported.add_note(path, what);
            return Ok(());
        }
        let condition = if condition.is_open_ended() {
            Condition::all_of([exists_condition(ALERT), condition.clone()])
        } else {
            condition.clone()
        };
        let matched = match condition.to_filter() {
            Ok(FilterOrQuery::Filter(text)) => json!({"filter": text}),
            Ok(FilterOrQuery::Query(query)) => json!({"query": query}),
            Err(why) => {
                self.imported.record_omission(path, why);
                return Ok(());
            }
        };
        let description = format!("Alertmanager: {path}");
        let trigger = self.imported.unique_name("trigger", name);
        self.imported.add(
            "trigger",
            json!({
                "name": trigger, "description": description,
                "type": {"event": matched},
            }),
        );
        let calendar = self
            .intervals
            .add_calendar(&route.route_times(), self.imported)?;
        let shared = self.shared_rule_fields(route, &trigger, &description, calendar);
        if receiver.destinations.is_empty() {
            let what =
                "its receiver has no counterpart, so its rule is disabled, without destinations";
            self.imported.add_note(path, what);
            self.write_rule(name, &shared, false, &[]);
            return Ok(());
        }
        for updates in [true, false] {
            let destinations: Vec<_> = { receiver.destinations.iter() }
                .filter(|it| it.send_resolved == updates)
                .map(|it| &*it.name)
                .collect();
            if !destinations.is_empty() {
                self.write_rule(name, &shared, updates, &destinations);
            }
        }
        Ok(())
    }

    fn shared_rule_fields(
        &mut self,
        route: &Route,
        trigger: &str,
        description: &str,
        calendar: Option<String>,
    ) -> Map<String, Value> {
        let options = &route.options;
        let repeat_ms = self.clamp_setting(&options.repeat_ms, 0..=REPEAT_MAX_MS);
        let mut rule = Map::new();
        rule.insert("description".into(), json!(description));
        rule.insert("triggerNames".into(), json!([trigger]));
        rule.insert("repeat".into(), json!(true));
        rule.insert("repeatInterval".into(), json!(repeat_ms / 1_000));
        if let Some(calendar) = calendar {
            rule.insert("activeCalendarName".into(), json!(calendar));
        }
        if !options.group_by.value.iter().any(|label| label == "...") {
            let wait_ms = self.clamp_setting(&options.wait_ms, 0..=WAIT_MAX_MS);
            let interval_ms = self.clamp_setting(&options.interval_ms, INTERVAL_MS);
            let by = self.grouping_fields(&options.group_by);
            let group = json!({
                "by": by, "wait": duration::to_wire(wait_ms), "interval": duration::to_wire(interval_ms),
            });
            rule.insert("group".into(), group);
        }
        rule
    }

    fn grouping_fields(&mut self, labels: &InheritedSetting<Vec<String>>) -> Vec<String> {
        let path = &labels.path;
        let mut by = Vec::new();
        for label in &labels.value {
            match matcher::field_for_label(label) {
                Some(field) if by.len() < GROUP_BY_MAX && !by.contains(&field) => by.push(field),
                Some(field) if by.contains(&field) => {}
                Some(_) => {
                    let why = format!("`{label}`: a group can have at most {GROUP_BY_MAX} fields");
                    self.imported.record_omission(path, &why);
                }
                None => {
                    let why = format!(
                        "the label `{label}` is excluded from events (`senders.replica_labels`)"
                    );
                    self.imported.record_omission(path, &why);
                }
            }
        }
        by
    }

    fn clamp_setting(
        &mut self,
        given: &InheritedSetting<u64>,
        range: std::ops::RangeInclusive<u64>,
    ) -> u64 {
        let limited = given.value.clamp(*range.start(), *range.end());
        if limited != given.value {
            let what = format!(
                "{} instead of {}",
                duration::to_wire(limited),
                duration::to_wire(given.value)
            );
            self.imported.add_note(&given.path, &what);
        }
        limited
    }

    fn write_rule(
        &mut self,
        name: &str,
        shared: &Map<String, Value>,
        updates: bool,
        destinations: &[&str],
    ) {
        let mut rule = shared.clone();
        rule.insert(
            "name".into(),
            json!(self.imported.unique_name("rule", name)),
        );
        rule.insert("enabled".into(), json!(!destinations.is_empty()));
        rule.insert("sendUpdates".into(), json!(updates));
        rule.insert("destinationNames".into(), json!(destinations));
        self.imported.add("rule", Value::Object(rule));
    }
}
