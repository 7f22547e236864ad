//! Opening the file: only what is known to be whole is opened.

use std::{
    cell::Cell,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::Arc,
};

use redb::{Builder, Database, ReadableDatabase, TableError};

use super::{
    Settings,
    blocks::Blocks,
    cell::ROWS,
    fault::Fault,
    log::{self, Head},
    medium::Medium,
};
use crate::store::engine::EngineError;

/// An engine's file.
#[derive(Debug)]
pub(super) struct File {
    medium: Arc<dyn Medium>,
    settings: Settings,
}

impl File {
    pub(super) fn new(medium: Arc<dyn Medium>, settings: Settings) -> Self {
        Self { medium, settings }
    }

    pub(super) fn settings(&self) -> Settings {
        self.settings
    }

    pub(super) fn medium(&self) -> &dyn Medium {
        self.medium.as_ref()
    }

    /// Opens the file, or makes it when it is empty; answers where its change log ends.
    pub(super) fn open(&self) -> Result<(Database, Head), Fault> {
        let (blocks, is_known) = Blocks::open(Arc::clone(&self.medium)).map_err(from_io)?;
        // redb trusts parts of a file that was closed well. Without sums to compare, a changed byte
        // in them can make it panic; nothing of it is used after that.
        let open = AssertUnwindSafe(|| self.open_blocks(blocks, is_known));
        catch_unwind(open).unwrap_or_else(|_panic| {
            let why = "its allocation tables cannot be read".into();
            Err(EngineError::Corrupt(why).into())
        })
    }

    fn open_blocks(&self, blocks: Blocks, is_known: bool) -> Result<(Database, Head), Fault> {
        let is_verified = Rc::new(Cell::new(is_known));
        let mut builder = Builder::new();
        builder.set_cache_size(self.settings.cache_bytes);
        builder.set_repair_callback({
            // A repair verifies every page.
            let is_verified = Rc::clone(&is_verified);
            move |_session| is_verified.set(true)
        });
        let mut database = builder.create_with_backend(blocks)?;
        if !is_verified.get() && !database.check_integrity()? {
            tracing::warn!("the store was repaired");
        }
        let head = match read_head(&database)? {
            Some(head) => head,
            None => make_table(&database, Head::at(self.settings.first_place))?,
        };
        Ok((database, head))
    }
}

fn read_head(database: &Database) -> Result<Option<Head>, Fault> {
    match database.begin_read()?.open_table(ROWS) {
        Ok(rows) => log::head(&rows).map(Some),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn make_table(database: &Database, head: Head) -> Result<Head, Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    {
        let mut rows = transaction.open_table(ROWS)?;
        if head != Head::default() {
            log::append(&mut rows, head, &[])?;
        }
    }
    transaction.commit()?;
    Ok(head)
}

fn from_io(error: io::Error) -> Fault {
    Fault::File(redb::Error::Io(error))
}
