//! Records the commit, its date, the target and the compiler in release builds.

use std::{env, error::Error};

use vergen_gitcl::{CargoBuilder, Emitter, GitclBuilder, RustcBuilder};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("PROFILE").is_none_or(|profile| profile != "release") {
        // Debug builds do not record a commit, so that a new commit does not trigger a rebuild.
        return Ok(());
    }
    // Unknown when built from an archive without git.
    let git = GitclBuilder::default()
        .sha(true)
        .commit_date(true)
        .dirty(true)
        .build()?;
    Emitter::default()
        .quiet()
        .add_instructions(&CargoBuilder::default().target_triple(true).build()?)?
        .add_instructions(&RustcBuilder::default().semver(true).build()?)?
        .add_instructions(&git)?
        .emit()?;
    Ok(())
}
