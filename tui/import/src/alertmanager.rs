//! Import of Alertmanager's configuration: routes become triggers and rules, receivers become
//! destinations, time intervals become calendars.

mod condition;
mod duration;
mod go_template;
mod inhibitions;
mod intervals;
mod matcher;
mod receivers;
mod routes;

use serde_json::Value;

use super::{
    fields::{Fields, invalid_field_error},
    imported::ImportOutput,
};
use crate::error::ImportError;

pub(crate) fn import_config(file: Value, imported: &mut ImportOutput) -> Result<(), ImportError> {
    let mut fields = Fields::from_value("", file)?;
    if !fields.has("route") {
        return Err(invalid_field_error(
            "route",
            "is required; expected an Alertmanager configuration file",
        ));
    }
    let mut global = fields.take_object("global")?;
    let receivers = receivers::import_receivers(&mut fields, &mut global, imported)?;
    let mut intervals = intervals::read_intervals(&mut fields, imported)?;
    routes::import_routes(&mut fields, &receivers, &mut intervals, imported)?;
    inhibitions::import_inhibitions(&mut fields, imported)?;
    for name in global.field_names() {
        if name.starts_with("smtp_") {
            global.take_value(&name);
            let why = "the mail server is set in section `[smtp]` of bellwether.toml";
            imported.record_omission(&global.path_of(&name), why);
        }
    }
    global.finish(imported);
    if fields.take_value("templates").is_some() {
        let why = "Go templates are not converted; see the topic «templates»";
        imported.record_omission("templates", why);
    }
    fields.finish(imported);
    Ok(())
}
