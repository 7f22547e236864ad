//! Protection and size of this process's memory.

/// Disables core dumps of this process, and access to its memory by other programs of the user: it
/// contains keys, tokens and secrets. Child processes, such as an editor, are not affected.
#[cfg(target_os = "linux")]
pub(crate) fn disable_core_dumps() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    // An error is ignored: the process works without this protection.
    let _refused = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn disable_core_dumps() {}

/// Disables transparent huge pages for this process. They speed up a service, but make a console
/// with a few rows some 20 MiB larger. Child processes, such as an editor, inherit the setting.
#[cfg(target_os = "linux")]
pub(crate) fn disable_huge_pages() {
    // An error is ignored: the process only uses more memory.
    let _refused = rustix::thread::disable_transparent_huge_pages(true);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn disable_huge_pages() {}
