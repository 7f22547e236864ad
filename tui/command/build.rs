//! Records the commit, its date, the target and the compiler in release builds.

use std::{env, error::Error};

use vergen_gitcl::{CargoBuilder, Emitter, GitclBuilder, RustcBuilder};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("PROFILE").is_none_or(|profile| profile != "release") {
        // Debug builds skip this, so that a commit does not trigger a rebuild.
        return Ok(());
    }
    // Built from an archive without git, these are reported as unknown.
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
