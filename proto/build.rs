//! Compiles the `.proto` files with protox, so that no `protoc` has to be installed.

use std::{error::Error, fs, path::PathBuf};

const FILES: [&str; 26] = [
    "bellwether/options/options.proto",
    "bellwether/v1/audit.proto",
    "bellwether/v1/backup.proto",
    "bellwether/v1/calendar.proto",
    "bellwether/v1/check.proto",
    "bellwether/v1/client.proto",
    "bellwether/v1/config.proto",
    "bellwether/v1/delivery.proto",
    "bellwether/v1/destination.proto",
    "bellwether/v1/event.proto",
    "bellwether/v1/event_management.proto",
    "bellwether/v1/hold.proto",
    "bellwether/v1/group.proto",
    "bellwether/v1/inhibition.proto",
    "bellwether/v1/intake_mapping.proto",
    "bellwether/v1/overview.proto",
    "bellwether/v1/link.proto",
    "bellwether/v1/pending.proto",
    "bellwether/v1/rule.proto",
    "bellwether/v1/settings.proto",
    "bellwether/v1/sign_in.proto",
    "bellwether/v1/silence.proto",
    "bellwether/v1/template.proto",
    "bellwether/v1/trigger.proto",
    "bellwether/v1/view.proto",
    "zenoss/cloud/data_receiver.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    for folder in ["bellwether", "google", "zenoss"] {
        println!("cargo:rerun-if-changed={folder}");
    }
    let mut compiler = protox::Compiler::new(["."])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(FILES)?;

    // The encoded set keeps the `google.api.http` options; the typed one drops them.
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let out = PathBuf::from(out);
    fs::write(
        out.join("descriptors.bin"),
        compiler.encode_file_descriptor_set(),
    )?;

    let mut prost = tonic_prost_build::Config::new();
    // Sorted maps make the wire, and so every answer and test, the same from run to run.
    prost.btree_map(["."]);
    // A message that knows its name finds its tables for JSON.
    prost.enable_type_names();
    tonic_prost_build::configure()
        .compile_fds_with_config(compiler.file_descriptor_set(), prost)?;
    Ok(())
}
