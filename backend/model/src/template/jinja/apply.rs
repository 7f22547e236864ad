//! Applies filters and tests, charging by the size of their input.

use minijinja::{
    Error, State, Value,
    value::{Kwargs, ValueKind},
};

use super::{
    error::invalid_operation,
    meter::{Meter, VALUE_DEPTH_MAX, string_steps},
};

/// Filters that read only one item of a list, its length, or a member of each item.
const SHALLOW: [&str; 11] = [
    "attr",
    "count",
    "d",
    "default",
    "first",
    "last",
    "length",
    "reject",
    "rejectattr",
    "select",
    "selectattr",
];
/// Steps for rounding a number, which is written with all its digits.
const ROUND_STEPS: u64 = 50;

pub(super) fn apply_filter(
    state: &mut State<'_, '_>,
    meter: &Meter,
    name: &str,
    value: Value,
    placed: &[Value],
    named: &[(String, Value)],
) -> Result<Value, Error> {
    let is_list = value.as_str().is_none();
    let compared = compared_member(name, placed, named).filter(|_| is_list);
    let is_sorted = compared.is_some() && name != "groupby";
    let is_shallow = is_list && (SHALLOW.contains(&name) || is_sorted);
    let weight = match compared {
        Some(paths) => weigh_members(state, meter, &value, paths)?,
        // The filter reads a member of each item, or has a filter that charges for it.
        None if is_shallow || (is_list && name == "map") => 1,
        None => meter.measure_value(state, &value)?,
    };
    let given = placed.iter().chain(named.iter().map(|(_, value)| value));
    let mut arguments = 0;
    for argument in given {
        arguments += 1 + meter.measure_value(state, argument)?;
    }
    let each = FilterCall {
        name,
        placed,
        named,
        arguments,
    };
    let made = if let Some(made) = each.apply(state, meter, &value)? {
        made
    } else {
        meter.spend(state, extra_steps(&each, &value, weight)?)?;
        let mut all = vec![value];
        all.extend_from_slice(placed);
        if !named.is_empty() {
            all.push(named.iter().cloned().collect::<Kwargs>().into());
        }
        let made = state.apply_filter(name, &all)?;
        match name {
            "chain" if made.kind() == ValueKind::Seq => {
                Value::from(meter.charge_items(state, &made)?)
            }
            "chain" if made.kind() == ValueKind::Map => {
                let keys = meter.charge_items(state, &made)?.into_iter();
                let entries = keys.map(|key| Ok((key.clone(), made.get_item(&key)?)));
                Value::from_pairs(entries.collect::<Result<Vec<_>, Error>>()?)
            }
            _ => meter.materialize(state, made)?,
        }
    };
    if !is_shallow {
        meter.charge(state, &made, VALUE_DEPTH_MAX)?;
    }
    Ok(made)
}

pub(super) fn apply_test(
    state: &mut State<'_, '_>,
    meter: &Meter,
    name: &str,
    value: Value,
    arguments: &[Value],
) -> Result<bool, Error> {
    meter.measure_value(state, &value)?;
    let mut all = vec![value];
    for argument in arguments {
        meter.measure_value(state, argument)?;
        all.push(argument.clone());
    }
    state.perform_test(name, &all)
}

struct FilterCall<'a> {
    name: &'a str,
    placed: &'a [Value],
    named: &'a [(String, Value)],
    /// The steps of all arguments.
    arguments: u64,
}

impl FilterCall<'_> {
    fn named_argument(&self, name: &str) -> Option<&Value> {
        let found = self.named.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value)
    }

    /// Applies a filter that itself applies a filter or test to each item; returns `None` for other
    /// filters.
    fn apply(
        &self,
        state: &mut State<'_, '_>,
        meter: &Meter,
        value: &Value,
    ) -> Result<Option<Value>, Error> {
        let (by_attribute, keeps) = match self.name {
            "map" => return self.map_value(state, meter, value).map(Some),
            "select" => (false, true),
            "reject" => (false, false),
            "selectattr" => (true, true),
            "rejectattr" => (true, false),
            _ => return Ok(None),
        };
        let (attribute, test) = match (by_attribute, self.placed) {
            (true, [attribute, test @ ..]) => (Some(attribute), test),
            (true, []) => {
                return Err(invalid_operation(format!(
                    "{}: the attribute is missing",
                    self.name
                )));
            }
            (false, test) => (None, test),
        };
        let mut matching = Vec::new();
        for item in meter.charge_items(state, value)? {
            meter.spend(state, self.arguments)?;
            let tested = attribute.map_or_else(|| item.clone(), |it| item_member(&item, it));
            let passes = match test {
                [] => tested.is_true(),
                [name, arguments @ ..] => {
                    let name = name
                        .as_str()
                        .ok_or_else(|| invalid_operation("the name of a test must be a string"))?;
                    apply_test(state, meter, name, tested, arguments)?
                }
            };
            if passes == keeps {
                matching.push(item);
            }
        }
        Ok(Some(Value::from(matching)))
    }

    fn map_value(
        &self,
        state: &mut State<'_, '_>,
        meter: &Meter,
        value: &Value,
    ) -> Result<Value, Error> {
        let mut mapped = Vec::new();
        for item in meter.charge_items(state, value)? {
            meter.spend(state, self.arguments)?;
            mapped.push(match (self.named_argument("attribute"), self.placed) {
                (Some(attribute), []) => match item_member(&item, attribute) {
                    found if found.is_undefined() => {
                        self.named_argument("default").cloned().unwrap_or_default()
                    }
                    found => found,
                },
                (None, [name, arguments @ ..]) => {
                    let name = name
                        .as_str()
                        .ok_or_else(|| invalid_operation("map: the filter is missing"))?;
                    // A nested `map` would apply another filter to each item.
                    if name == "map" {
                        return Err(invalid_operation("map: `map` cannot be used as the filter"));
                    }
                    apply_filter(state, meter, name, item, arguments, self.named)?
                }
                _ => {
                    return Err(invalid_operation(
                        "map: expected either a filter or an attribute",
                    ));
                }
            });
        }
        Ok(Value::from(mapped))
    }
}

/// Returns the path of the member by which a filter compares items, or several paths separated by
/// commas.
fn compared_member<'a>(
    name: &str,
    placed: &'a [Value],
    named: &'a [(String, Value)],
) -> Option<&'a str> {
    let is_placed = match name {
        "groupby" => true,
        "sort" | "unique" | "min" | "max" => false,
        _ => return None,
    };
    let attribute = named.iter().find(|(it, _)| it == "attribute");
    let attribute = attribute.map(|(_, it)| it);
    let attribute = attribute.or_else(|| placed.first().filter(|_| is_placed));
    attribute?.as_str()
}

/// Charges for reading the members of each item at comma-separated paths; returns the steps.
fn weigh_members(
    state: &State<'_, '_>,
    meter: &Meter,
    list: &Value,
    paths: &str,
) -> Result<u64, Error> {
    let mut steps = 0;
    for item in meter.charge_items(state, list)? {
        for path in paths.split(',') {
            steps += meter.measure_value(state, &item_member(&item, &path.into()))?;
        }
    }
    Ok(steps)
}

fn item_member(item: &Value, path: &Value) -> Value {
    let Some(path) = path.as_str() else {
        return item.get_item(path).unwrap_or_default();
    };
    let mut found = item.clone();
    for step in path.split('.') {
        found = match step.parse::<usize>() {
            Ok(at) => found.get_item(&Value::from(at)),
            Err(_name) => found.get_attr(step),
        }
        .unwrap_or_default();
        if found.is_undefined() {
            break;
        }
    }
    found
}

/// Returns the steps of a filter in addition to those for reading its input and creating its
/// result.
fn extra_steps(filter: &FilterCall<'_>, value: &Value, weight: u64) -> Result<u64, Error> {
    let text = value.as_str().unwrap_or_default();
    let items = value.len().unwrap_or(0) as u64;
    let first = filter.placed.first();
    let separator = first.and_then(Value::as_str);
    Ok(match filter.name {
        // Each item is compared by one of its members, once per halving of the list.
        "sort" | "unique" | "groupby" | "dictsort" | "min" | "max" => {
            let compared = u64::from(u64::BITS - items.leading_zeros());
            let paths = items.saturating_mul(filter.arguments);
            weight.saturating_mul(compared).saturating_add(paths)
        }
        "sum" => {
            let start = filter
                .placed
                .get(1)
                .or_else(|| filter.named_argument("start"));
            if start.is_some_and(|it| !it.is_number()) {
                return Err(invalid_operation("sum: `start` must be a number"));
            }
            items.saturating_mul(1 + filter.arguments)
        }
        "join" => items.saturating_mul(1 + filter.arguments),
        "list" | "batch" | "slice" => text.len() as u64,
        "lines" => text.matches('\n').count() as u64,
        "split" => match separator {
            Some(separator) => text.matches(separator).count() as u64,
            None => text.split_whitespace().count() as u64,
        },
        // Each character is searched for in the argument.
        "trim" => string_steps(text.len().saturating_mul(separator.map_or(0, str::len))),
        "round" => ROUND_STEPS,
        "card" | "e" | "escape" | "html" | "markdown" | "slack" | "telegram" | "urlencode" => {
            2 * weight
        }
        _ => 0,
    })
}
