//! Import of Alertmanager's configuration: routes become triggers and rules, receivers become
//! destinations, time intervals become calendars.

mod condition;
mod duration;
mod inhibitions;
mod intervals;
mod matcher;
mod receivers;
mod routes;

use serde_json::Value;

use super::{
    fields::{Fields, invalid},
    imported::ImportOutput,
};
use crate::error::ImportError;

pub(crate) fn import(file: Value, imported: &mut ImportOutput) -> Result<(), ImportError> {
    let mut fields = Fields::of("", file)?;
    if !fields.has("route") {
        return Err(invalid(
            "route",
            "is required; expected an Alertmanager configuration file",
        ));
    }
    let mut global = fields.object("global")?;
    let receivers = receivers::read(&mut fields, &mut global, imported)?;
    let mut intervals = intervals::read(&mut fields, imported)?;
    routes::read(&mut fields, &receivers, &mut intervals, imported)?;
    inhibitions::read(&mut fields, imported)?;
    for name in global.names() {
        if name.starts_with("smtp_") {
            global.take(&name);
            let why = "the mail server is set in section `[smtp]` of bellwether.toml";
            imported.leave_out(&global.at(&name), why);
        }
    }
    global.finish(imported);
    if fields.take("templates").is_some() {
        let why = "Go templates are not converted; see the topic «templates»";
        imported.leave_out("templates", why);
    }
    fields.finish(imported);
    Ok(())
}
