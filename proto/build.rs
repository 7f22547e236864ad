//! Compiles the `.proto` files with protox, which needs no installed `protoc`.

use std::{error::Error, fs, path::PathBuf};

/// Folders with the `.proto` files to compile. Files that they import are included.
const FOLDERS: [&str; 3] = ["bellwether/options", "bellwether/v1", "zenoss/cloud"];

fn main() -> Result<(), Box<dyn Error>> {
    for folder in [
        "bellwether",
        "google",
        "zenoss",
        "src/json/tests/kinds.proto",
    ] {
        println!("cargo:rerun-if-changed={folder}");
    }
    let mut compiler = protox::Compiler::new(["."])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(files()?)?;

    // `encode_file_descriptor_set` keeps the `google.api.http` options; `file_descriptor_set` drops
    // them.
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let out = PathBuf::from(out);
    fs::write(
        out.join("descriptors.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    // These descriptors are used only by tests, but are compiled here: if protox were a
    // dev-dependency, `cargo test` would use other features than `cargo build`.
    let mut kinds = protox::Compiler::new(["src/json/tests"])?;
    kinds.include_imports(true).open_file("kinds.proto")?;
    fs::write(out.join("kinds.bin"), kinds.encode_file_descriptor_set())?;

    let mut prost = tonic_prost_build::Config::new();
    // Sorted maps make the wire bytes reproducible, and with them every response and test.
    prost.btree_map(["."]);
    // The full name of a message selects its JSON tables.
    prost.enable_type_names();
    tonic_prost_build::configure()
        .codec_path("crate::repair::Codec")
        .compile_fds_with_config(compiler.file_descriptor_set(), prost)?;
    Ok(())
}

/// Returns the `.proto` files, sorted, so that the generated code is reproducible.
fn files() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "proto") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
