//! `bellwether backup`: backs up a running service, or a data folder that is not in use.

use std::io::Write;

use bellwether_backend::{
    limits::BACKUP_MESSAGE_BYTES_MAX,
    store::LogPosition,
    store::{
        self, Kind,
        backup::{
            BackupEnd, BackupError, BackupFolder, BackupRecord, Keys, Manifest, Reader, Step,
        },
        open::OpenError,
    },
};
use bellwether_proto::v1::{
    ReadBackupRequest, ReadBackupResponse, StoredRecord, backup_service_client::BackupServiceClient,
};
use bellwether_tui::api::CallError;
use tonic::{Code, Status, Streaming};

use super::progress::Progress;
use crate::{cli::BackupArguments, clients, config::Settings, failure::Failure, ready};

pub(crate) async fn run_backup(
    arguments: BackupArguments,
    settings: &Settings,
    mut out: impl Write,
) -> Result<(), Failure> {
    let keys = key_source(&arguments, settings)?;
    let mut target =
        BackupFolder::open(&arguments.folder).map_err(|error| backup_failure(&error))?;
    let goes_on = target.resume_position().is_some();
    let end = match open_source(&arguments, settings, &target).await? {
        Source::Service(mut service) => service.copy(&mut target).await?,
        Source::Folder(mut reader) => from_folder(&mut reader, &mut target).await?,
    };
    let manifest = target
        .finish(end, keys)
        .map_err(|error| backup_failure(&error))?;
    print_summary(&arguments, &manifest, goes_on, &mut out)
        .map_err(|error| Failure::new(format!("failed to write the output: {error}")))
}

fn key_source<'a>(
    arguments: &BackupArguments,
    settings: &'a Settings,
) -> Result<Keys<'a>, Failure> {
    if !arguments.with_keys {
        return Ok(Keys::LeftOut);
    }
    let file = settings.data_dir.join("secret.key");
    if file.exists() {
        return Ok(Keys::Of(&settings.data_dir));
    }
    Err(Failure::new(format!(
        "--with-keys: there is no {}; the keys are never sent over the wire, so run this on the \
         machine with the data folder, or use --without-keys",
        file.display()
    )))
}

fn print_summary(
    arguments: &BackupArguments,
    manifest: &Manifest,
    goes_on: bool,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let folder = arguments.folder.display();
    if goes_on {
        writeln!(out, "resumed the interrupted backup")?;
    }
    writeln!(
        out,
        "{folder} contains all data up to {}: {} bytes",
        manifest.end_time,
        manifest.bytes()
    )?;
    if manifest.has_keys {
        writeln!(
            out,
            "it includes the keys: anyone with this backup can read its secrets; keep it safe"
        )
    } else {
        writeln!(
            out,
            "the keys are NOT included: keep a copy of `secret.key` elsewhere; the backup cannot \
             be restored without it"
        )
    }
}

enum Source {
    Service(Box<Service>),
    Folder(Box<Reader>),
}

/// Connects to the configured service, or opens the data folder if no service uses it.
async fn open_source(
    arguments: &BackupArguments,
    settings: &Settings,
    target: &BackupFolder,
) -> Result<Source, Failure> {
    let own = settings.connect.is_none().then(|| settings.store_config());
    // A store in a database is backed up through a service that uses it.
    if let Some(config) = own.transpose()?.filter(|it| it.database.is_none()) {
        let cache_bytes = config.store.cache_bytes;
        match store::open::open_read_only(&settings.data_dir, cache_bytes).await {
            Ok(reading) => {
                let reader = Reader::start(reading.store, target.resume_position()).await;
                let reader = reader.map_err(|error| backup_failure(&error))?;
                return Ok(Source::Folder(Box::new(reader)));
            }
            Err(OpenError::InUse(_) | OpenError::NoStore(_)) => {}
            Err(error) => return Err(Failure::from_error(&error)),
        }
    }
    let address = ready::grpc_address(settings);
    let service = clients::connect_without_timeout(&address, settings).await?;
    Ok(Source::Service(Box::new(Service {
        client: BackupServiceClient::new(service)
            .max_decoding_message_size(BACKUP_MESSAGE_BYTES_MAX),
        bytes_per_second: arguments.rate.unwrap_or(0).saturating_mul(1024 * 1024),
    })))
}

async fn from_folder(reader: &mut Reader, target: &mut BackupFolder) -> Result<BackupEnd, Failure> {
    let bar = Progress::new("backing up");
    let total = reader
        .row_count()
        .await
        .map_err(|error| backup_failure(&error))?;
    let mut done = 0;
    let mut end = None;
    while let Some(step) = reader
        .next()
        .await
        .map_err(|error| backup_failure(&error))?
    {
        done += estimate_rows(&step);
        bar.print(done, total);
        end = step.end.clone().or(end);
        target.add(step).map_err(|error| backup_failure(&error))?;
    }
    end.ok_or_else(|| Failure::new("the stream ended before the backup was complete"))
}

/// Estimates the number of rows that a step of the backup stands for, including index entries.
fn estimate_rows(step: &Step) -> u64 {
    let rows = |record: &BackupRecord| match record.kind {
        Kind::Occurrence => 5,
        Kind::Delivery => 8,
        _ => 1,
    };
    step.records.iter().map(rows).sum()
}

struct Service {
    client: BackupServiceClient<clients::Connection>,
    bytes_per_second: u64,
}

impl Service {
    /// Resumes at the position of the target; starts over if the service has changed too much
    /// since.
    async fn copy(&mut self, target: &mut BackupFolder) -> Result<BackupEnd, Failure> {
        let bar = Progress::new("backing up");
        loop {
            match self.read(target, &bar).await? {
                ReadOutcome::Whole(end) => return Ok(end),
                ReadOutcome::Overtaken if target.resume_position().is_some() => {
                    target
                        .restart_backup()
                        .map_err(|error| backup_failure(&error))?;
                }
                ReadOutcome::Overtaken => {
                    return Err(Failure::new(
                        "the store changes faster than the backup reads it; raise --rate, or \
                         retry at a quieter time",
                    ));
                }
            }
        }
    }

    async fn read(
        &mut self,
        target: &mut BackupFolder,
        bar: &Progress,
    ) -> Result<ReadOutcome, Failure> {
        let request = ReadBackupRequest {
            place: target.resume_position().unwrap_or_default().to_vec(),
            bytes_per_second: self.bytes_per_second,
        };
        let mut steps: Streaming<_> = match self.client.read_backup(request).await {
            Ok(steps) => steps.into_inner(),
            Err(status) if status.code() == Code::Aborted => return Ok(ReadOutcome::Overtaken),
            Err(status) => return Err(status.into()),
        };
        let (mut done, mut total, mut end) = (0, 0, None);
        loop {
            let step = match steps.message().await {
                Ok(Some(step)) => step,
                Ok(None) => break,
                Err(status) if status.code() == Code::Aborted => return Ok(ReadOutcome::Overtaken),
                Err(status) => return Err(interruption_failure(&status)),
            };
            total = total.max(step.row_count);
            let step = parse_step(step)?;
            done += estimate_rows(&step);
            bar.print(done, total);
            end = step.end.clone().or(end);
            target.add(step).map_err(|error| backup_failure(&error))?;
        }
        end.map(ReadOutcome::Whole).ok_or_else(|| {
            interruption_failure(&Status::unavailable("the service aborted the backup"))
        })
    }
}

enum ReadOutcome {
    Whole(BackupEnd),
    Overtaken,
}

fn parse_step(step: ReadBackupResponse) -> Result<Step, Failure> {
    if step.proof.is_empty() {
        return Err(Failure::new(
            "the service is older than this program and does not authenticate its data; make the \
             backup with the program of its version",
        ));
    }
    let to_record = |record: StoredRecord| {
        let kind = u8::try_from(record.kind).ok().and_then(Kind::from_number);
        let kind = kind.ok_or_else(|| {
            let number = record.kind;
            Failure::new(format!(
                "the service is newer than this program: it stores records of kind {number}; make \
                 the backup with the program of its version"
            ))
        })?;
        Ok(BackupRecord {
            kind,
            key: record.key,
            value: record.value,
            attempts: record.attempts,
        })
    };
    Ok(Step {
        records: step
            .records
            .into_iter()
            .map(to_record)
            .collect::<Result<_, Failure>>()?,
        place: step.place,
        end: step.end.map(|end| BackupEnd {
            identity: end.identity,
            place: LogPosition::from_number(end.place),
            time: end.time,
        }),
        proof: step.proof,
    })
}

fn interruption_failure(status: &Status) -> Failure {
    let error = CallError::from(status.clone());
    Failure::new(format!(
        "the backup was interrupted ({}); rerun the command to resume it",
        error.message
    ))
}

fn backup_failure(error: &BackupError) -> Failure {
    Failure::from_error(error)
}
