//! Protection and size of this process's memory.

/// Disables core dumps of this process, whatever collects them, and access of the user's other
/// programs to its memory, which contains keys, tokens and secrets. Child processes, such as an
/// editor, are not affected.
#[cfg(target_os = "linux")]
pub(crate) fn keep_to_itself() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    // A kernel that refuses this is no reason not to run.
    let _refused = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Only Linux supports this.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_to_itself() {}

/// Disables transparent huge pages for this process. They speed up a service, but make a console
/// with a few rows some 20 MiB larger. Child processes, such as an editor, inherit that.
#[cfg(target_os = "linux")]
pub(crate) fn keep_small() {
    // Without it, the process is only larger.
    let _refused = rustix::thread::disable_transparent_huge_pages(true);
}

/// Only Linux supports this.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_small() {}
