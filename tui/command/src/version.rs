//! The version and build information.

use std::sync::LazyLock;

/// Returns the version; for a release build also the commit, its date, the target and the compiler.
pub(crate) fn long_version() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(describe_version);
    &LONG
}

fn describe_version() -> String {
    let (Some(commit), Some(date), Some(target), Some(compiler)) = (
        option_env!("VERGEN_GIT_SHA"),
        option_env!("VERGEN_GIT_COMMIT_DATE"),
        option_env!("VERGEN_CARGO_TARGET_TRIPLE"),
        option_env!("VERGEN_RUSTC_SEMVER"),
    ) else {
        return concat!(env!("CARGO_PKG_VERSION"), " (development build)").to_owned();
    };
    let changed = match option_env!("VERGEN_GIT_DIRTY") {
        Some("true") => ", changed since",
        _ => "",
    };
    // In a build without git, the commit is a placeholder.
    let is_commit = commit.bytes().all(|it| it.is_ascii_hexdigit());
    let origin = if is_commit {
        format!("{} of {date}{changed}", commit.get(..12).unwrap_or(commit))
    } else {
        "unknown commit".to_owned()
    };
    format!(
        "{} ({origin}, {target}, rustc {compiler})",
        env!("CARGO_PKG_VERSION")
    )
}
