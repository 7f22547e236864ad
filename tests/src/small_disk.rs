//! A separate small disk for a test: memory that is mounted, where the machine lets us.

use std::{
    fs::File,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const FILLER: &str = "filler";

/// A small disk, mounted on a folder until this is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts one of that size on a folder, which is made; none where the machine does not let us.
    ///
    /// # Panics
    /// When the folder cannot be made.
    pub fn mount(folder: &Path, mebibytes: u32) -> Option<Self> {
        std::fs::create_dir_all(folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args([
            "-t",
            "tmpfs",
            "-o",
            &format!("size={mebibytes}m,mode=700"),
            "tmpfs",
        ]);
        mount.arg(folder).stderr(Stdio::null());
        let is_mounted = mount.status().is_ok_and(|status| status.success());
        is_mounted.then(|| Self {
            folder: folder.to_owned(),
        })
    }

    /// Fills it until only so many bytes are free.
    ///
    /// # Panics
    /// When it cannot be written for another reason than that it is full.
    pub fn fill(&self, free_bytes: u64) {
        let path = self.folder.join(FILLER);
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        while self.free_bytes() > free_bytes {
            let room = self.free_bytes() - free_bytes;
            let block = vec![1; usize::try_from(room.min(1024 * 1024)).unwrap()];
            match file.write_all(&block) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return,
                Err(error) => panic!("the disk cannot be filled: {error}"),
            }
        }
    }

    /// Frees what [`SmallDisk::fill`] took.
    ///
    /// # Panics
    /// When nothing was taken.
    pub fn free(&self) {
        std::fs::remove_file(self.folder.join(FILLER)).unwrap();
    }

    /// Bytes that are free, as `df` tells them.
    ///
    /// # Panics
    /// When `df` tells nothing.
    pub fn free_bytes(&self) -> u64 {
        let mut df = Command::new("df");
        df.args(["-B1", "--output=avail"]).arg(&self.folder);
        let told = String::from_utf8(df.output().unwrap().stdout).unwrap();
        told.lines().last().unwrap().trim().parse().unwrap()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whatever still has a file open there keeps the memory until it ends.
        drop(Command::new("umount").arg("-l").arg(&self.folder).status());
    }
}
