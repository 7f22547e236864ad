//! `bellwether check`: verifies a data folder, a backup or a running service.

use std::{io::Write, path::Path};

use bellwether_backend::{
    rpc::convert::check::findings_to_wire,
    store::{
        self,
        backup::{Source, Trust},
        open::{OpenError, ReadOnlyStore},
        restore::{Restore, RestoreError, RestoreReport, rehearse},
        verify::Findings,
    },
};
use bellwether_language::text;
use bellwether_proto::v1::{
    CheckFindings, CheckStoreRequest, check_service_client::CheckServiceClient,
};
use jiff::Timestamp;
use serde_json::json;
use tonic::{Code, Status};

use super::progress::Progress;
use crate::{
    cli::CheckArguments,
    clients,
    config::Settings,
    failure::{Failure, to_sentence},
    output, ready,
};

/// Verifies everything in the data folder, without changes. If a running service is named or uses
/// the folder, the service verifies the data instead.
pub(crate) async fn run_check(
    arguments: CheckArguments,
    settings: &Settings,
    out: impl Write,
) -> Result<(), Failure> {
    if let Some(folder) = &arguments.backup {
        let key_file = arguments.secret_key.as_deref();
        return check_backup(folder, key_file, arguments.json, out).await;
    }
    if settings.connect.is_none()
        && let Some(findings) = check_data_folder(settings).await?
    {
        let what = settings.data_dir.display().to_string();
        return report_findings(("folder", &what), &findings, arguments.json, out);
    }
    let address = ready::grpc_address(settings);
    let findings = check_service(&address, settings).await?;
    report_findings(("service", &address), &findings, arguments.json, out)
}

/// Restores a backup into memory; without its keys, verifies only its checksums.
async fn check_backup(
    folder: &Path,
    key_file: Option<&Path>,
    as_json: bool,
    mut out: impl Write,
) -> Result<(), Failure> {
    let mut source = Source::open(folder).map_err(|error| Failure::from_error(&error))?;
    let keys = source
        .read_keys(key_file)
        .map_err(|error| Failure::from_error(&error))?;
    let is_proven = keys.is_some() && source.manifest().has_proofs();
    let restored = if keys.is_some() {
        let restored = rehearse_restore(folder, key_file).await;
        Some(restored.map_err(|error| Failure::from_error(&error))?)
    } else {
        let bytes = source.manifest().bytes();
        let bar = Progress::new("checking");
        let verified = source.verify(Trust::Checksums, &|read| bar.print(read, bytes));
        verified.map_err(|error| Failure::from_error(&error))?;
        None
    };
    let records = restored.map(|it| it.findings.records.values().sum::<u64>());
    let manifest = source.manifest();
    let what = folder.display().to_string();
    let written = if as_json {
        let found = json!({
            "folder": what,
            "whole": true,
            "endTime": manifest.end_time,
            "bytes": manifest.bytes(),
            "hasKeys": manifest.has_keys,
            "proven": is_proven,
            "restorable": records.is_some(),
            "records": records,
        });
        writeln!(out, "{}", output::escape_controls(&found.to_string()))
    } else {
        let keys = if manifest.has_keys { "with" } else { "without" };
        let (bytes, end_time) = (manifest.bytes(), &manifest.end_time);
        let restored = match records {
            Some(records) => format!("restored into memory and verified: {records} records"),
            None => {
                "cannot verify whether it can be restored or was modified: name the `secret.key` \
                of its service with --secret-key"
                    .to_owned()
            }
        };
        let mut lines = vec![
            format!("{what} is intact: {bytes} bytes, up to {end_time}, {keys} keys"),
            restored,
        ];
        if is_proven {
            lines.push("verified with its keys: unmodified".to_owned());
        } else if !manifest.has_proofs() {
            lines.push("not authenticated: created by an earlier version".to_owned());
        }
        writeln!(out, "{}", lines.join("\n"))
    };
    written.map_err(|error| Failure::new(format!("failed to write the findings: {error}")))
}

async fn rehearse_restore(
    folder: &Path,
    key_file: Option<&Path>,
) -> Result<RestoreReport, RestoreError> {
    let how = Restore {
        from: folder,
        key_file,
        // Accepts the backup, because the findings report that it is not authenticated.
        accept_unproven: true,
        hold_due_by_ms: None,
        now_ms: Timestamp::now().as_millisecond(),
    };
    let bar = Progress::new("checking");
    rehearse(&how, &|_stage, done, total| bar.print(done, total)).await
}

/// Verifies the data folder; `None` if a service uses it, or the store is in a database.
async fn check_data_folder(settings: &Settings) -> Result<Option<CheckFindings>, Failure> {
    let config = settings.store_config()?;
    if config.database.is_some() {
        return Ok(None);
    }
    let cache_bytes = config.store.cache_bytes;
    let opened = store::open::open_read_only(&settings.data_dir, cache_bytes).await;
    let ReadOnlyStore { store, key_error } = match opened {
        Ok(reading) => reading,
        Err(error @ (OpenError::Damaged { .. } | OpenError::Incomplete { .. })) => {
            let mut findings = Findings::default();
            findings.add_error(to_sentence(&error));
            return Ok(Some(findings_to_wire(findings)));
        }
        Err(OpenError::InUse(_)) => return Ok(None),
        Err(error) => return Err(Failure::from_error(&error)),
    };
    let bar = Progress::new("checking");
    let show = |progress: store::verify::Progress| bar.print(progress.done, progress.total);
    let mut findings = store::verify(&store, &show).await;
    if let Some(error) = key_error {
        findings.add_error(to_sentence(&error));
    }
    Ok(Some(findings_to_wire(findings)))
}

async fn check_service(address: &str, settings: &Settings) -> Result<CheckFindings, Failure> {
    let service = clients::connect_without_timeout(address, settings).await?;
    let bar = Progress::new("checking");
    let mut service = CheckServiceClient::new(service);
    let checking = service.check_store(CheckStoreRequest {}).await;
    let mut text = checking.map_err(check_failure)?.into_inner();
    while let Some(progress) = text.message().await.map_err(check_failure)? {
        bar.print(progress.done, progress.total);
        if let Some(findings) = progress.findings {
            return Ok(findings);
        }
    }
    Err(Failure::unreachable("the service aborted the check"))
}

fn check_failure(status: Status) -> Failure {
    match status.code() {
        Code::Unimplemented => Failure::new(
            "the service is older than this program and cannot check itself: stop it first, or make \
             a backup and check that with `bellwether check --backup FOLDER`",
        ),
        _ => status.into(),
    }
}

fn report_findings(
    (kind, what): (&str, &str),
    findings: &CheckFindings,
    as_json: bool,
    mut out: impl Write,
) -> Result<(), Failure> {
    let written = if as_json {
        let found = json!({
            kind: what,
            "whole": findings.faults == 0,
            "complete": findings.is_complete,
            "records": findings.records,
            "indexEntries": findings.entries,
            "logSteps": findings.log_steps,
            "faults": findings.faults,
            "told": findings.told,
        });
        writeln!(out, "{}", output::escape_controls(&found.to_string()))
    } else {
        write_text(what, findings, &mut out)
    };
    written.map_err(|error| Failure::new(format!("failed to write the findings: {error}")))?;
    match findings.faults {
        0 => Ok(()),
        1 => Err(Failure::new(format!("{what} is not intact: 1 error"))),
        errors => Err(Failure::new(format!(
            "{what} is not intact: {errors} errors"
        ))),
    }
}

fn write_text(what: &str, findings: &CheckFindings, out: &mut impl Write) -> std::io::Result<()> {
    for error in &findings.told {
        writeln!(out, "fault: {}", text::escape_invisible(error, false))?;
    }
    let unlisted = findings.faults - findings.told.len() as u64;
    if unlisted > 0 {
        writeln!(out, "and {unlisted} more errors")?;
    }
    let records: u64 = findings.records.values().sum();
    writeln!(
        out,
        "read {records} records, {} index entries and {} change log steps",
        findings.entries, findings.log_steps
    )?;
    for (word, count) in &findings.records {
        writeln!(out, "{count:>12} {word}")?;
    }
    if findings.faults == 0 {
        writeln!(out, "{what} is intact")?;
    }
    Ok(())
}
