//! Compiles the `.proto` files with protox, which needs no installed `protoc`.

use std::{error::Error, fmt::Write as _, fs, path::PathBuf};

use prost_build::{Service, ServiceGenerator};

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
    let clients = tonic_prost_build::configure().build_server(false);
    prost.service_generator(Box::new(Stubs(clients.service_generator())));
    prost.compile_fds(compiler.file_descriptor_set())?;
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

/// Generates the clients of tonic, and for each service a trait and its `Server`.
struct Stubs(Box<dyn ServiceGenerator>);

impl ServiceGenerator for Stubs {
    fn generate(&mut self, service: Service, code: &mut String) {
        write_server(&service, code).expect("a string can be written");
        self.0.generate(service, code);
    }
}

fn write_server(service: &Service, code: &mut String) -> std::fmt::Result {
    let Service { name, package, .. } = service;
    let (mut methods, mut handlers) = (String::new(), String::new());
    for method in &service.methods {
        let (call, input, output) = (&method.name, &method.input_type, &method.output_type);
        let stream = |message| format!("tonic::codegen::BoxStream<{message}>");
        let (input, output) = (format!("super::{input}"), format!("super::{output}"));
        let (kind, input, output) = match (method.client_streaming, method.server_streaming) {
            (false, false) => ("unary", input, output),
            (false, true) => ("server_streaming", input, stream(output)),
            (true, false) => ("client_streaming", stream(input), output),
            (true, true) => unreachable!("no method streams in both directions"),
        };
        method.comments.append_with_indent(2, &mut methods);
        writeln!(
            methods,
            "        async fn {call}(&self, request: tonic::Request<{input}>)
            -> Result<tonic::Response<{output}>, tonic::Status>;"
        )?;
        let path = format!("/{package}.{}/{}", service.proto_name, method.proto_name);
        writeln!(
            handlers,
            "            .{kind}({path:?}, &service, |it, request| T::{call}(it, request))"
        )?;
    }
    let mut about = String::new();
    service.comments.append_with_indent(1, &mut about);
    writeln!(
        code,
        "
/// The server of `{name}`.
pub mod {module}_server {{
{about}    #[tonic::async_trait]
    pub trait {name}: Send + Sync + 'static {{
{methods}    }}

    /// Creates the server of this service.
    pub fn serve<T: {name}>(service: T) -> crate::server::Server {{
        serve_shared(std::sync::Arc::new(service))
    }}

    /// Creates the server of a service that is also used elsewhere.
    pub fn serve_shared<T: {name}>(service: std::sync::Arc<T>) -> crate::server::Server {{
        crate::server::Server::new({full_name:?})
{handlers}    }}
}}",
        module = snake_case(name),
        full_name = format!("{package}.{}", service.proto_name),
    )
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
