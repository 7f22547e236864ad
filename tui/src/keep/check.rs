//! `bellwether check`: reads a data folder through and says what is wrong with it.

use std::{io::Write, path::Path};

use bellwether_backend::store::{
    self,
    backup::{BackupError, Source},
    open::{OpenError, Reading},
    verify::Findings,
};
use serde_json::json;

use super::progress::Progress;
use crate::{
    cli::CheckArguments,
    config::Settings,
    failure::{Failure, sentence},
};

/// Reads everything in the data folder, and changes nothing.
///
/// # Errors
/// When the folder cannot be read, is in use, or is not whole.
pub(crate) async fn run(
    arguments: CheckArguments,
    settings: &Settings,
    out: impl Write,
) -> Result<(), Failure> {
    if let Some(folder) = &arguments.backup {
        return of_backup(folder, arguments.json, out);
    }
    let what = settings.data_dir.display().to_string();
    let findings = of_data_folder(settings).await?;
    report(&what, &findings, arguments.json, out)
}

/// Compares a backup with its checksums.
fn of_backup(folder: &Path, as_json: bool, mut out: impl Write) -> Result<(), Failure> {
    let failed = |error: BackupError| Failure::new(sentence(&error));
    let source = Source::open(folder).map_err(failed)?;
    let manifest = source.manifest();
    let bar = Progress::new("checking");
    let verified = source.verify(&|read| bar.show(read, manifest.bytes()));
    drop(bar);
    verified.map_err(failed)?;
    let what = folder.display().to_string();
    let written = if as_json {
        let found = json!({
            "folder": what,
            "whole": true,
            "endTime": manifest.end_time,
            "bytes": manifest.bytes(),
            "hasKeys": manifest.has_keys,
        });
        writeln!(out, "{found}")
    } else {
        let keys = if manifest.has_keys { "with" } else { "without" };
        let (bytes, end_time) = (manifest.bytes(), &manifest.end_time);
        writeln!(
            out,
            "{what} is whole: {bytes} bytes, up to {end_time}, {keys} its keys"
        )
    };
    written.map_err(|error| Failure::new(format!("cannot write the findings: {error}")))
}

async fn of_data_folder(settings: &Settings) -> Result<Findings, Failure> {
    let cache_bytes = settings.backend_config()?.store.cache_bytes;
    let opened = store::open::open_to_read(&settings.data_dir, cache_bytes).await;
    let Reading { store, key_fault } = match opened {
        Ok(reading) => reading,
        Err(error @ OpenError::Damaged { .. }) => {
            let mut findings = Findings::default();
            findings.tell(sentence(&error));
            return Ok(findings);
        }
        Err(error @ OpenError::InUse(_)) => {
            return Err(Failure::new(format!(
                "{error}; stop the service first, or make a backup and check that with \
                 `bellwether check --backup FOLDER`"
            )));
        }
        Err(error) => return Err(Failure::new(sentence(&error))),
    };
    let bar = Progress::new("checking");
    let show = |progress: store::verify::Progress| bar.show(progress.done, progress.total);
    let mut findings = store::verify(&store, &show).await;
    if let Some(fault) = key_fault {
        findings.tell(sentence(&fault));
    }
    Ok(findings)
}

/// Tells what was found, for people or as JSON.
fn report(
    what: &str,
    findings: &Findings,
    as_json: bool,
    mut out: impl Write,
) -> Result<(), Failure> {
    let written = if as_json {
        let found = json!({
            "folder": what,
            "whole": findings.faults == 0,
            "complete": findings.is_complete,
            "records": findings.records,
            "indexEntries": findings.entries,
            "logSteps": findings.log_steps,
            "faults": findings.faults,
            "told": findings.told,
        });
        writeln!(out, "{found}")
    } else {
        for_people(what, findings, &mut out)
    };
    written.map_err(|error| Failure::new(format!("cannot write the findings: {error}")))?;
    match findings.faults {
        0 => Ok(()),
        1 => Err(Failure::new(format!("{what} is not whole: 1 fault"))),
        faults => Err(Failure::new(format!(
            "{what} is not whole: {faults} faults"
        ))),
    }
}

fn for_people(what: &str, findings: &Findings, out: &mut impl Write) -> std::io::Result<()> {
    for fault in &findings.told {
        writeln!(out, "fault: {fault}")?;
    }
    let untold = findings.faults - findings.told.len() as u64;
    if untold > 0 {
        writeln!(out, "and {untold} more faults")?;
    }
    let records: u64 = findings.records.values().sum();
    writeln!(
        out,
        "read {records} records, {} index entries and {} steps of the change log",
        findings.entries, findings.log_steps
    )?;
    for (word, count) in &findings.records {
        writeln!(out, "{count:>12} {word}")?;
    }
    if findings.faults == 0 {
        writeln!(out, "{what} is whole")?;
    }
    Ok(())
}
