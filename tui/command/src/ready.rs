//! Addresses of a running service: the ready line, and a note in the data folder.

use std::path::Path;
use std::{
    fs,
    io::{self, Write},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
};

use bellwether_process::plain_file;
use serde::{Deserialize, Serialize};

use crate::config::Settings;

const ADDRESS_FILE: &str = "addresses.json";
const NOTE_BYTES_MAX: u64 = 4 * 1024;
const DRAFT_FILE: &str = "addresses.json.new";

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Addresses {
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grpc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
}

impl Addresses {
    pub(crate) fn at(
        scheme: &str,
        rest: Option<SocketAddr>,
        grpc: Option<SocketAddr>,
        metrics: Option<SocketAddr>,
    ) -> Self {
        let url = |address: SocketAddr| format!("{scheme}://{address}");
        Self {
            ready: true,
            rest: rest.map(url),
            grpc: grpc.map(url),
            metrics: metrics.map(url),
        }
    }

    pub(crate) fn line(&self) -> String {
        serde_json::to_string(self).expect("texts are JSON")
    }

    /// Recreates the file on each write, so that a symbolic link with its name is not followed.
    fn write(&self, data_dir: &Path) -> io::Result<()> {
        let (note, draft) = (data_dir.join(ADDRESS_FILE), data_dir.join(DRAFT_FILE));
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(self.line().as_bytes())?;
        file.write_all(b"\n")?;
        fs::rename(draft, note)
    }

    pub(crate) fn write_note(&self, data_dir: &Path) {
        if let Err(error) = self.write(data_dir) {
            tracing::warn!(%error, "other commands cannot find this service by its data folder");
        }
    }
}

impl Addresses {
    /// Reads the addresses of the last service that used the data folder; it may no longer run.
    pub(crate) fn read_note(data_dir: &Path) -> Option<Self> {
        let text = plain_file::read_text(&data_dir.join(ADDRESS_FILE), NOTE_BYTES_MAX).ok()?;
        serde_json::from_str(&text).ok()
    }
}

/// Returns the gRPC address to connect to: the configured one, else that of the service that uses
/// the data folder, else the default.
pub(crate) fn grpc_address(settings: &Settings) -> String {
    // A service that listens on all interfaces is reachable on loopback.
    let from_here = |address: String| {
        let address = address.replace("//0.0.0.0:", "//127.0.0.1:");
        address.replace("//[::]:", "//[::1]:")
    };
    let noted = || Some(from_here(Addresses::read_note(&settings.data_dir)?.grpc?));
    let named = settings.connect.clone().or_else(noted);
    named.unwrap_or_else(|| {
        let listen = settings.grpc_listen.unwrap_or(Settings::GRPC_LISTEN);
        format!("http://{listen}")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn ready_line_lists_the_running_parts() {
        let address = |port| Some(SocketAddr::from(([127, 0, 0, 1], port)));
        let cases = [
            (
                Addresses::at("http", address(8480), address(8481), None),
                r#"{"ready":true,"rest":"http://127.0.0.1:8480","grpc":"http://127.0.0.1:8481"}"#,
            ),
            (
                Addresses::at("http", None, address(8481), None),
                r#"{"ready":true,"grpc":"http://127.0.0.1:8481"}"#,
            ),
            (
                Addresses::at("https", address(8480), None, address(9464)),
                r#"{"ready":true,"rest":"https://127.0.0.1:8480","metrics":"https://127.0.0.1:9464"}"#,
            ),
        ];
        for (ready, line) in cases {
            assert_eq!(ready.line(), line);
        }
    }

    #[test]
    fn service_address_is_read_from_its_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            data_dir: folder.path().to_owned(),
            ..Settings::default()
        };
        assert_eq!(grpc_address(&settings), "http://127.0.0.1:8481");

        let address = SocketAddr::from(([127, 0, 0, 1], 4711));
        let ready = Addresses::at("http", None, Some(address), None);
        ready.write_note(folder.path());
        assert_eq!(Addresses::read_note(folder.path()), Some(ready));
        let mode = fs::metadata(folder.path().join(ADDRESS_FILE)).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        assert_eq!(grpc_address(&settings), "http://127.0.0.1:4711");

        for (listens, reached) in [
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::]:1", "http://[::1]:1"),
        ] {
            let ready = Addresses::at("http", None, listens.parse().ok(), None);
            ready.write_note(folder.path());
            assert_eq!(grpc_address(&settings), reached);
        }
    }
}
