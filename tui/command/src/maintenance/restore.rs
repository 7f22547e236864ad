//! `bellwether restore`: restores a backup into a data folder or a database.

use std::{io::Write, path::Path};

use bellwether_backend::store::restore::{Restore, RestoreReport, Stage, restore};
use jiff::Timestamp;

use super::progress::Progress;
use crate::{cli::RestoreArguments, config::Settings, failure::Failure};

pub(crate) async fn run_restore(
    arguments: RestoreArguments,
    settings: &Settings,
    mut out: impl Write,
) -> Result<(), Failure> {
    let config = settings.store_config()?;
    let now_ms = Timestamp::now().as_millisecond();
    let how = Restore {
        from: &arguments.folder,
        key_file: arguments.secret_key.as_deref(),
        accept_unproven: arguments.accept_unproven,
        hold_due_by_ms: arguments.hold_deliveries.then_some(now_ms),
        now_ms,
    };
    let bars = [
        (Stage::Reading, Progress::new("reading")),
        (Stage::Filling, Progress::new("filling")),
        (Stage::Checking, Progress::new("checking")),
    ];
    let show = |stage, done, total| {
        for (_, bar) in bars.iter().filter(|(of, _)| *of == stage) {
            bar.print(done, total);
        }
    };
    let restored = restore(&config.location(), &how, &show).await;
    drop(bars);
    let restored = restored.map_err(|error| Failure::from_error(&error))?;
    let into = match &config.database {
        Some(database) => format!("schema {} of the database", database.schema),
        None => config.data_dir.display().to_string(),
    };
    let key = config.database.as_ref().map(|it| &*it.secret_key_file);
    print_summary(&into, key, &restored, &mut out)
        .map_err(|error| Failure::new(format!("failed to write the output: {error}")))
}

fn print_summary(
    into: &str,
    key_file: Option<&Path>,
    restored: &RestoreReport,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let records: u64 = restored.findings.records.values().sum();
    writeln!(
        out,
        "{into} contains the store as of {}: {records} records, all verified",
        restored.end_time
    )?;
    let RestoreReport {
        waiting,
        held,
        is_quiet,
        ..
    } = restored;
    if *held > 0 {
        writeln!(out, "{held} deliveries are held until you resend them")?;
    }
    if *is_quiet {
        writeln!(
            out,
            "the service starts in quiet mode: nothing is sent until `bellwether quiet off`"
        )?;
    } else if *waiting > 0 {
        writeln!(
            out,
            "{waiting} deliveries resume at the next start; those delivered after the backup are \
             delivered again, with the same ids"
        )?;
    }
    if let Some(key_file) = key_file {
        let key_file = key_file.display();
        writeln!(out, "{key_file} encrypts its secrets; every node needs it")?;
        writeln!(out, "existing API keys remain valid")?;
    } else if !restored.has_admin_key {
        writeln!(
            out,
            "the backup has no `admin.key`; existing API keys remain valid"
        )?;
    }
    Ok(())
}
