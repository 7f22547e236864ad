//! What this process has in memory is for no one else, and no more than it needs.

/// Has the system write no core file of this process, whatever handles those, and let no other program of
/// the user look into its memory: keys, tokens and secrets lie there. What it starts, such as an editor,
/// is not concerned.
#[cfg(target_os = "linux")]
pub(crate) fn keep_to_itself() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    // A kernel that cannot do that does the rest anyway.
    let _refused = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Only Linux can be asked for that.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_to_itself() {}

/// Has the system keep what this process uses in small pages. Large ones make a service quicker, and a console
/// of a few rows some 20 MiB larger. What it starts, such as an editor, inherits that.
#[cfg(target_os = "linux")]
pub(crate) fn keep_small() {
    // A kernel that cannot do that has it larger.
    let _refused = rustix::thread::disable_transparent_huge_pages(true);
}

/// Only Linux can be asked for that.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_small() {}
