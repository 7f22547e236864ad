//! Keeps the memory of this process off the disk.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Disables core files, which would contain keys and secrets.
pub(super) fn disable_core_files() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "a core dump of this process would contain its secrets");
    }
}
