//! What this process has in memory stays there.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Has the system write no core file of this process, which would hold its keys and secrets.
pub(super) fn write_no_core_files() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "a core file of this process would hold its secrets");
    }
}
