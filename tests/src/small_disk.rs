//! A small tmpfs for a test, if the machine permits mounting one.

use std::{
    fs::File,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const FILLER: &str = "filler";

/// A small disk, mounted on a folder until dropped.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Creates the folder and mounts a disk of this size on it; returns `None` if mounting is not
    /// allowed.
    ///
    /// # Panics
    /// Panics if the folder cannot be created.
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

    /// Fills the disk until only this many bytes are free.
    ///
    /// # Panics
    /// Panics if writing fails for a reason other than a full disk.
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

    /// Frees the space taken by [`SmallDisk::fill`].
    ///
    /// # Panics
    /// Panics if the disk was not filled.
    pub fn free(&self) {
        std::fs::remove_file(self.folder.join(FILLER)).unwrap();
    }

    /// Returns the number of free bytes as reported by `df`.
    ///
    /// # Panics
    /// Panics if the output of `df` cannot be read.
    pub fn free_bytes(&self) -> u64 {
        let mut df = Command::new("df");
        df.args(["-B1", "--output=avail"]).arg(&self.folder);
        let reported = String::from_utf8(df.output().unwrap().stdout).unwrap();
        reported.lines().last().unwrap().trim().parse().unwrap()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A lazy unmount: processes with open files keep the memory until they exit.
        drop(Command::new("umount").arg("-l").arg(&self.folder).status());
    }
}
