//! A store's file opened read-only. Writes stay in memory.
//!
//! A store that was not closed properly is repaired when it is opened. Here, the repair stays in
//! memory.

use std::{
    collections::HashMap,
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bellwether_process::plain_file;
use redb::StorageBackend;

use super::{
    disk::CHECKSUMS,
    folder::{Folder, LOGS},
};
use crate::{engine::redb::Medium, limits::STORE_CHECKSUM_BYTES_MAX};

const BLOCK_BYTES: usize = 4096;

/// The store of a folder, read-only; writes are discarded.
#[derive(Debug)]
pub(super) struct Overlay {
    folder: Arc<Folder>,
    is_draft: bool,
}

impl Overlay {
    pub(super) fn new(folder: Arc<Folder>) -> Self {
        let is_draft = false;
        Self { folder, is_draft }
    }

    pub(super) fn for_draft(folder: Arc<Folder>) -> Self {
        let is_draft = true;
        Self { folder, is_draft }
    }
}

impl Medium for Overlay {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let path = if self.is_draft {
            self.folder.unfinished_path()
        } else {
            self.folder.store_path()
        };
        let file = plain_file::open_file(&path)?;
        Ok(Box::new(LayeredFile::new(Some(file))?))
    }

    fn log_name(&self, number: usize) -> String {
        LOGS[number].into()
    }

    fn open_log(&self, number: usize) -> io::Result<Box<dyn StorageBackend>> {
        if self.is_draft {
            return Ok(Box::new(LayeredFile::new(None)?));
        }
        let file = match plain_file::open_file(&self.folder.path().join(LOGS[number])) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Box::new(LayeredFile::new(file)?))
    }

    fn checksums(&self) -> Option<Vec<u8>> {
        plain_file::read_file(
            &self.folder.path().join(CHECKSUMS),
            STORE_CHECKSUM_BYTES_MAX,
        )
        .ok()
    }
}

#[derive(Debug)]
struct LayeredFile {
    file: Option<File>,
    layers: Mutex<Layers>,
}

#[derive(Debug)]
struct Layers {
    length: u64,
    /// The length up to which the underlying file is still visible.
    below: u64,
    written: HashMap<u64, Vec<u8>>,
}

impl LayeredFile {
    fn new(file: Option<File>) -> io::Result<Self> {
        let metadata = file.as_ref().map(File::metadata).transpose()?;
        let file_bytes = metadata.map_or(0, |metadata| metadata.len());
        let layers = Mutex::new(Layers {
            length: file_bytes,
            below: file_bytes,
            written: HashMap::new(),
        });
        Ok(Self { file, layers })
    }

    fn read_base_file(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let file = self.file.as_ref();
        file.map_or(Ok(()), |file| file.read_exact_at(out, offset))
    }

    fn lock_layers(&self) -> MutexGuard<'_, Layers> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_block(&self, layers: &Layers, number: u64) -> io::Result<Vec<u8>> {
        if let Some(written) = layers.written.get(&number) {
            return Ok(written.clone());
        }
        let mut block = vec![0; BLOCK_BYTES];
        let start = number * BLOCK_BYTES as u64;
        let seen = layers.below.saturating_sub(start).min(BLOCK_BYTES as u64);
        let seen = usize::try_from(seen).map_err(io::Error::other)?;
        self.read_base_file(&mut block[..seen], start)?;
        Ok(block)
    }
}

/// Splits a range at block boundaries: block, offset in it, length.
fn split_blocks(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let place = usize::try_from(at % BLOCK_BYTES as u64).unwrap_or_default();
        let bytes = (BLOCK_BYTES - place).min(length - done);
        done += bytes;
        (bytes > 0).then_some((at / BLOCK_BYTES as u64, place, bytes))
    })
}

impl StorageBackend for LayeredFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock_layers().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let layers = self.lock_layers();
        let end = offset + out.len() as u64;
        if end > layers.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if layers.written.is_empty() && end <= layers.below {
            drop(layers);
            return self.read_base_file(out, offset);
        }
        let mut rest = out;
        for (number, place, bytes) in split_blocks(offset, rest.len()) {
            let (part, after) = rest.split_at_mut(bytes);
            part.copy_from_slice(&self.read_block(&layers, number)?[place..place + bytes]);
            rest = after;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut layers = self.lock_layers();
        layers.below = layers.below.min(length);
        layers
            .written
            .retain(|number, _| number * (BLOCK_BYTES as u64) < length);
        layers.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut layers = self.lock_layers();
        let mut rest = data;
        for (number, place, bytes) in split_blocks(offset, data.len()) {
            let (part, after) = rest.split_at(bytes);
            let mut block = self.read_block(&layers, number)?;
            block[place..place + bytes].copy_from_slice(part);
            layers.written.insert(number, block);
            rest = after;
        }
        Ok(())
    }
}
