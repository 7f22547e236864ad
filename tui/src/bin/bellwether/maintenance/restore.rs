//! `bellwether restore`: makes a data folder of a backup.

use std::io::Write;

use bellwether_backend::store::restore::{Restore, Restored, Stage, restore};
use jiff::Timestamp;

use super::progress::Progress;
use crate::{
    cli::RestoreArguments,
    config::Settings,
    failure::{Failure, sentence},
};

/// Restores a backup into the data folder of the settings.
///
/// # Errors
/// When the backup or the folder cannot be used; the folder holds no store then.
pub(crate) async fn run(
    arguments: RestoreArguments,
    settings: &Settings,
    mut out: impl Write,
) -> Result<(), Failure> {
    let config = settings.backend_config()?;
    if config.database.is_some() {
        return Err(Failure::usage(
            "store.url: a backup is restored into a data folder, not into a database; leave it out \
             and name the folder with --data-dir",
        ));
    }
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
            bar.show(done, total);
        }
    };
    let restored = restore(&config, &how, &show).await;
    drop(bars);
    let restored = restored.map_err(|error| Failure::new(sentence(&error)))?;
    tell(settings, &restored, &mut out)
        .map_err(|error| Failure::new(format!("cannot write the answer: {error}")))
}

fn tell(settings: &Settings, restored: &Restored, out: &mut impl Write) -> std::io::Result<()> {
    let records: u64 = restored.findings.records.values().sum();
    writeln!(
        out,
        "{} holds the store as it was at {}: {records} records, all of them read again",
        settings.data_dir.display(),
        restored.end_time
    )?;
    let Restored { waiting, held, .. } = restored;
    if *held > 0 {
        writeln!(
            out,
            "{held} deliveries are held until somebody sends them again"
        )?;
    }
    if *waiting > 0 {
        writeln!(
            out,
            "{waiting} deliveries go on with the next start; those that arrived after the backup \
             was made arrive once more, under the same ids"
        )?;
    }
    if !restored.has_admin_key {
        writeln!(
            out,
            "no `admin.key` was in the backup: the keys of its clients open the service as before"
        )?;
    }
    Ok(())
}
