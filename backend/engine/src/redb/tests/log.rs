//! Tests of torn, stale and corrupted log frames.

use super::{
    super::{Medium, batch::Batch, file::Generation, wal::Wal},
    SimulatedDisk,
};

const LIFE: u64 = 7;
/// Offset of the first frame, after the mark.
const START: usize = 512;

/// Returns rows for a frame, with a length that depends on the position.
fn rows(position: u64) -> Vec<u8> {
    let mut batch = Batch::default();
    let length = usize::try_from(position * 97 % 1_500).unwrap();
    batch.add_sealed(&position.to_be_bytes(), &vec![1; length]);
    batch.into_bytes()
}

fn append(wal: &mut Wal, positions: impl IntoIterator<Item = u64>) {
    for position in positions {
        wal.begin_frame(position);
        wal.push(&rows(position));
        wal.end_frame();
        wal.append().unwrap();
    }
}

/// Returns a log with reused files: they still contain frames of another generation, and frames
/// that are already in the tree. File 1 has the frames 21 to 30; file 0 has 31 to 33, then older
/// ones.
fn log_with_reused_files() -> (SimulatedDisk, Wal) {
    let disk = SimulatedDisk::default();
    let mut wal = Wal::open(&disk, 64 * 1024).unwrap();
    wal.start_generation(LIFE - 1).unwrap();
    append(&mut wal, 1..=45);
    wal.switch_file();
    append(&mut wal, 46..=90);
    wal.start_generation(LIFE).unwrap();
    append(&mut wal, 1..=20);
    wal.switch_file();
    append(&mut wal, 21..=30);
    wal.switch_file();
    append(&mut wal, 31..=32);
    (disk, wal)
}

fn life(number: u64) -> Generation {
    Generation {
        number,
        is_marked: true,
    }
}

/// Returns the frames after position 20, or `None` if the log is damaged.
fn read(disk: &SimulatedDisk) -> Option<Vec<Vec<u8>>> {
    let medium: &dyn Medium = disk;
    let wal = Wal::open(medium, 64 * 1024).unwrap();
    let frames = wal.read(life(LIFE), 20).ok()?;
    Some(frames.into_iter().map(|frame| frame.rows).collect())
}

fn through(last: u64) -> Vec<Vec<u8>> {
    (21..=last).map(rows).collect()
}

/// Returns the content of file 0.
fn image(disk: &SimulatedDisk) -> Vec<u8> {
    let mut image = Vec::new();
    disk.edit_bytes(1, |file| image.clone_from(file));
    image
}

#[test]
fn frames_are_read_in_order_despite_stale_data() {
    let (disk, mut wal) = log_with_reused_files();
    assert_eq!(read(&disk), Some(through(32)));
    append(&mut wal, [33]);
    assert_eq!(read(&disk), Some(through(33)));
    let medium: &dyn Medium = &disk;
    let other = Wal::open(medium, 64 * 1024).unwrap();
    let without_marks = Generation {
        number: LIFE + 1,
        is_marked: false,
    };
    assert!(other.read(without_marks, 0).unwrap().is_empty());
    assert!(other.read(life(LIFE), 33).unwrap().is_empty());
}

#[test]
fn log_ends_before_a_torn_frame() {
    let (disk, mut wal) = log_with_reused_files();
    let before = image(&disk);
    append(&mut wal, [33]);
    let after = image(&disk);
    let start = (0..before.len()).find(|at| before[*at] != after[*at]);
    let start = start.unwrap() / 512 * 512;
    let end = start + 24 + rows(33).len();
    for cut in start..end {
        // The frame is incomplete unless the missing part is equal to the previous content.
        let torn = [&after[..cut], &before[cut..]].concat();
        let expected = if torn[start..end] == after[start..end] {
            33
        } else {
            32
        };
        disk.edit_bytes(1, |file| *file = torn);
        assert_eq!(
            read(&disk),
            Some(through(expected)),
            "cut at {}",
            cut - start
        );
    }
    // Sectors may reach the disk in any order.
    for missing in (start..end).step_by(512) {
        let mut torn = after.clone();
        let sector = missing..missing + 512;
        torn[sector.clone()].copy_from_slice(&before[sector]);
        disk.edit_bytes(1, |file| *file = torn);
        assert_eq!(
            read(&disk),
            Some(through(32)),
            "without {}",
            missing - start
        );
    }
}

#[test]
fn changed_bit_is_detected_except_in_last_frame() {
    let (disk, mut wal) = log_with_reused_files();
    append(&mut wal, [33]);
    let frame_bytes = |position| (24 + rows(position).len()).next_multiple_of(512);
    let second = START + frame_bytes(31);
    let third = second + frame_bytes(32);
    for (start, length, expected) in [
        (START, 24 + rows(31).len(), None),
        (second, 24 + rows(32).len(), None),
        (third, 24 + rows(33).len(), Some(through(32))),
    ] {
        for at in start..start + length {
            disk.edit_bytes(1, |file| file[at] ^= 1 << (at % 8));
            assert_eq!(read(&disk), expected, "byte {at}");
            disk.edit_bytes(1, |file| file[at] ^= 1 << (at % 8));
        }
    }
    assert_eq!(read(&disk), Some(through(33)));
    // The same in the other file, which has the earlier frames.
    for at in START..START + 24 + rows(21).len() {
        disk.edit_bytes(2, |file| file[at] ^= 1);
        assert_eq!(read(&disk), None, "byte {at} of the other file");
        disk.edit_bytes(2, |file| file[at] ^= 1);
    }
}
