//! Hands a release the facts of its build: commit, its date, target and compiler.

use std::{env, error::Error};

use vergen_gitcl::{CargoBuilder, Emitter, GitclBuilder, RustcBuilder};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("PROFILE").is_none_or(|profile| profile != "release") {
        // Nothing is built again for each commit while a user works on it.
        return Ok(());
    }
    // Out of an archive, without git, they are reported to be unknown.
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
