//! Opening the file, after verifying that it is intact.

use std::{
    cell::Cell,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::{Builder, Database, ReadableDatabase, TableDefinition, TableError, WriteTransaction};

use super::{
    Settings,
    blocks::{BlockFile, Blocks, ChecksumSource},
    cell::ROWS,
    error::Failure,
    log::{self, Head, Names},
    medium::Medium,
    view::TableRows,
};
use crate::error::EngineError;

#[derive(Debug)]
pub(super) struct File {
    medium: Arc<dyn Medium>,
    settings: Settings,
    was_open: AtomicBool,
}

#[derive(Debug)]
pub(super) struct OpenedFile {
    pub(super) database: Database,
    /// The end of the change log in the file.
    pub(super) head: Head,
    /// The generation of the store whose log frames are valid.
    pub(super) life: Generation,
    pub(super) blocks: Arc<Blocks>,
}

impl File {
    pub(super) fn new(medium: Arc<dyn Medium>, settings: Settings) -> Self {
        Self {
            medium,
            settings,
            was_open: AtomicBool::new(false),
        }
    }

    pub(super) fn settings(&self) -> Settings {
        self.settings
    }

    pub(super) fn medium(&self) -> &dyn Medium {
        self.medium.as_ref()
    }

    pub(super) fn open(&self) -> Result<OpenedFile, Failure> {
        // When reopened after an error, the file is scanned regardless of the journal.
        let is_first = !self.was_open.swap(true, Ordering::Relaxed);
        if is_first {
            let (blocks, known) = self.blocks(true)?;
            match self.open_blocks(blocks, known) {
                Err(error) if known == ChecksumSource::Noted => {
                    tracing::warn!(?error, "the checksum journal is unusable");
                }
                opened => return opened,
            }
        }
        let (blocks, known) = self.blocks(false)?;
        self.open_blocks(blocks, known)
    }

    fn blocks(&self, by_journal: bool) -> Result<(Blocks, ChecksumSource), Failure> {
        Blocks::open(Arc::clone(&self.medium), by_journal).map_err(from_io)
    }

    fn open_blocks(&self, blocks: Blocks, known: ChecksumSource) -> Result<OpenedFile, Failure> {
        // redb trusts parts of a cleanly closed file, and can panic on a corrupted byte there if no
        // checksums are known. The database is not used after a panic.
        let open = AssertUnwindSafe(|| self.open_database(Arc::new(blocks), known));
        catch_unwind(open).unwrap_or_else(|_panic| {
            let why = "its allocation tables are unreadable".into();
            Err(EngineError::Corrupt(why).into())
        })
    }

    fn open_database(
        &self,
        blocks: Arc<Blocks>,
        known: ChecksumSource,
    ) -> Result<OpenedFile, Failure> {
        let is_verified = Rc::new(Cell::new(known != ChecksumSource::Not));
        let mut builder = Builder::new();
        builder.set_cache_size(self.settings.cache_bytes);
        builder.set_repair_callback({
            // A repair verifies every page.
            let is_verified = Rc::clone(&is_verified);
            move |_session| is_verified.set(true)
        });
        let mut database = builder.create_with_backend(BlockFile(Arc::clone(&blocks)))?;
        if !is_verified.get() && !database.check_integrity()? {
            tracing::warn!("the store was repaired");
        }
        let head = match read_head(&database)? {
            Some(head) => head,
            None => make_table(&database, Head::at_position(self.settings.first_position))?,
        };
        blocks.begin_journal();
        let life = read_generation(&database)?;
        Ok(OpenedFile {
            database,
            head,
            life,
            blocks,
        })
    }
}

fn read_head(database: &Database) -> Result<Option<Head>, Failure> {
    match database.begin_read()?.open_table(ROWS) {
        Ok(rows) => log::log_head(&TableRows(&rows)).map(Some),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The table whose single row is the number of the current generation.
const LIFE: TableDefinition<'static, (), u64> = TableDefinition::new("life");
/// The number of the last generation whose log has marks. Earlier versions leave it unchanged.
const MARKED: TableDefinition<'static, (), u64> = TableDefinition::new("marked life");
/// Means that no frame of the log is valid, because all of its rows are in the tree.
pub(super) const NO_GENERATION: u64 = 0;

/// A generation of the store, from opening to closing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Generation {
    /// The number, or [`NO_GENERATION`].
    pub(super) number: u64,
    /// Whether both log files begin with a mark of the generation.
    pub(super) is_marked: bool,
}

fn read_generation(database: &Database) -> Result<Generation, Failure> {
    let transaction = database.begin_read()?;
    let read = |table| match transaction.open_table(table) {
        Ok(life) => Ok::<_, Failure>(life.get(())?.map_or(NO_GENERATION, |life| life.value())),
        Err(TableError::TableDoesNotExist(_)) => Ok(NO_GENERATION),
        Err(error) => Err(error.into()),
    };
    let number = read(LIFE)?;
    Ok(Generation {
        number,
        is_marked: read(MARKED)? == number,
    })
}

/// Makes the frames of a generation valid once the transaction commits. The log must already have
/// been started for that generation.
pub(super) fn set_generation(transaction: &WriteTransaction, life: u64) -> Result<(), Failure> {
    transaction.open_table(LIFE)?.insert((), life)?;
    transaction.open_table(MARKED)?.insert((), life)?;
    Ok(())
}

fn make_table(database: &Database, head: Head) -> Result<Head, Failure> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    {
        let mut rows = transaction.open_table(ROWS)?;
        if head != Head::default() {
            let (key, cell) = log::log_row(head, &Names::default());
            rows.insert(key.as_slice(), cell.as_slice())?;
        }
    }
    transaction.commit()?;
    Ok(head)
}

fn from_io(error: io::Error) -> Failure {
    Failure::File(redb::Error::Io(error))
}
