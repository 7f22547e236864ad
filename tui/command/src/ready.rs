//! Addresses of a running service: the ready line, and notes in the data and runtime folders.

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    net::SocketAddr,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use bellwether_backend::store::open::is_in_use;
use bellwether_process::plain_file;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::config::Settings;

/// The runtime folder of the packaged service, which exists only while it runs.
pub(crate) const RUNTIME_DIR: &str = "/run/bellwether";
const ADDRESS_FILE: &str = "addresses.json";
const NOTE_BYTES_MAX: u64 = 4 * 1024;
const DRAFT_FILE: &str = "addresses.json.new";
const PRIVATE: u32 = 0o600;
const READABLE_BY_GROUP: u32 = 0o640;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    pub(crate) fn new(
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

    pub(crate) fn ready_line(&self) -> String {
        serde_json::to_string(self).expect("texts are JSON")
    }

    /// Writes the addresses to files from which commands find this service. The file in the data
    /// folder is for the service's own user; the file in the runtime folder, if there is one, is
    /// for the service's group.
    pub(crate) fn write_notes(&self, settings: &Settings) {
        let mut written = write(&settings.data_dir, self, PRIVATE);
        if let Some(folder) = settings.runtime_dirs.first() {
            let shared = || {
                let shared = SharedNote {
                    data_dir: std::path::absolute(&settings.data_dir)?,
                    addresses: self.clone(),
                };
                write(folder, &shared, READABLE_BY_GROUP)
            };
            written = written.and(shared());
        }
        if let Err(error) = written {
            tracing::warn!(%error, "other commands may be unable to find this service");
        }
    }

    pub(crate) fn remove_shared_note(settings: &Settings) {
        if let Some(folder) = settings.runtime_dirs.first() {
            // An error is ignored: the service manager also removes the folder.
            drop(fs::remove_file(folder.join(ADDRESS_FILE)));
        }
    }

    /// Reads the addresses of the last service that used the data folder; it may no longer run.
    pub(crate) fn read_note(settings: &Settings) -> Option<Self> {
        let shared = || {
            let note = SharedNote::find(settings)?;
            (note.data_dir == settings.data_dir).then_some(note.addresses)
        };
        read(&settings.data_dir).or_else(shared)
    }

    /// Returns a gRPC address at which the service can be reached from this machine.
    fn local_grpc(&self) -> Option<String> {
        self.grpc.as_deref().map(to_loopback)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct SharedNote {
    data_dir: PathBuf,
    #[serde(flatten)]
    addresses: Addresses,
}

impl SharedNote {
    fn find(settings: &Settings) -> Option<Self> {
        let folders = settings.runtime_dirs.iter().map(PathBuf::as_path);
        let mut folders = folders.chain([Path::new(RUNTIME_DIR)]);
        folders.find_map(read)
    }
}

/// Recreates the file on each write, so that a symbolic link with its name is not followed.
fn write(folder: &Path, note: &impl Serialize, mode: u32) -> io::Result<()> {
    let draft = folder.join(DRAFT_FILE);
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create_new(true).mode(PRIVATE);
    let mut file = options.open(&draft)?;
    // Regardless of the umask.
    file.set_permissions(Permissions::from_mode(mode))?;
    serde_json::to_writer(&file, note)?;
    file.write_all(b"\n")?;
    fs::rename(draft, folder.join(ADDRESS_FILE))
}

fn read<Note: DeserializeOwned>(folder: &Path) -> Option<Note> {
    let text = plain_file::read_text(&folder.join(ADDRESS_FILE), NOTE_BYTES_MAX).ok()?;
    serde_json::from_str(&text).ok()
}

/// A service that listens on all interfaces is reachable on loopback.
fn to_loopback(address: &str) -> String {
    let address = address.replace("//0.0.0.0:", "//127.0.0.1:");
    address.replace("//[::]:", "//[::1]:")
}

/// Returns whether a running service is configured. If none is, configures the service that this
/// machine shares with all users, unless another data folder is configured or the user runs a
/// separate service.
pub(crate) fn find_service(settings: &mut Settings) -> bool {
    let is_configured = settings.connect.is_some();
    let Some(note) = SharedNote::find(settings) else {
        return is_configured;
    };
    let address = note.addresses.local_grpc();
    let is_other = match &settings.connect {
        Some(connect) => address.as_ref() != Some(connect),
        None => address.is_none() || is_in_use(&settings.data_dir),
    };
    let is_other_folder = settings.is_set("data_dir") && settings.data_dir != note.data_dir;
    if is_other || is_other_folder {
        return is_configured;
    }
    settings.connect = address;
    settings.data_dir = note.data_dir;
    true
}

/// Returns the gRPC address of the service that uses the data folder now.
pub(crate) fn running_service(settings: &Settings) -> Option<String> {
    let note = Addresses::read_note(settings)?;
    note.local_grpc().filter(|_| is_in_use(&settings.data_dir))
}

/// Returns the gRPC address to connect to: the configured one, else that of the service that uses
/// the data folder, else the default.
pub(crate) fn grpc_address(settings: &Settings) -> String {
    let noted = || Addresses::read_note(settings)?.local_grpc();
    let named = settings.connect.clone().or_else(noted);
    named.unwrap_or_else(|| {
        let listen = settings.grpc_listen.unwrap_or(Settings::GRPC_LISTEN);
        let scheme = match settings.tls.cert {
            Some(_) => "https",
            None => "http",
        };
        to_loopback(&format!("{scheme}://{listen}"))
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
                Addresses::new("http", address(8480), address(8481), None),
                r#"{"ready":true,"rest":"http://127.0.0.1:8480","grpc":"http://127.0.0.1:8481"}"#,
            ),
            (
                Addresses::new("http", None, address(8481), None),
                r#"{"ready":true,"grpc":"http://127.0.0.1:8481"}"#,
            ),
            (
                Addresses::new("https", address(8480), None, address(9464)),
                r#"{"ready":true,"rest":"https://127.0.0.1:8480","metrics":"https://127.0.0.1:9464"}"#,
            ),
        ];
        for (ready, line) in cases {
            assert_eq!(ready.ready_line(), line);
        }
    }

    const MODE: u32 = 0o777;

    fn folder_settings(folder: &Path) -> Settings {
        Settings {
            data_dir: folder.to_owned(),
            ..Settings::default()
        }
    }

    #[test]
    fn service_address_is_read_from_its_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let settings = folder_settings(folder.path());
        assert_eq!(grpc_address(&settings), "http://127.0.0.1:8481");

        let address = SocketAddr::from(([127, 0, 0, 1], 4711));
        let ready = Addresses::new("http", None, Some(address), None);
        ready.write_notes(&settings);
        assert_eq!(Addresses::read_note(&settings), Some(ready));
        let mode = fs::metadata(folder.path().join(ADDRESS_FILE)).unwrap();
        assert_eq!(mode.permissions().mode() & MODE, 0o600);
        assert_eq!(grpc_address(&settings), "http://127.0.0.1:4711");

        for (listens, reached) in [
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::]:1", "http://[::1]:1"),
        ] {
            let ready = Addresses::new("http", None, listens.parse().ok(), None);
            ready.write_notes(&settings);
            assert_eq!(grpc_address(&settings), reached);
        }
    }

    #[test]
    fn service_of_the_machine_is_found_unless_another_is_configured() {
        let folders: [_; 3] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
        let [service, runtime, own] = folders.each_ref().map(|it| it.path().to_owned());
        let serving = Settings {
            runtime_dirs: vec![runtime.clone()],
            ..folder_settings(&service)
        };
        let address = SocketAddr::from(([0, 0, 0, 0], 4711));
        Addresses::new("http", None, Some(address), None).write_notes(&serving);
        let mode = fs::metadata(runtime.join(ADDRESS_FILE)).unwrap();
        assert_eq!(mode.permissions().mode() & MODE, 0o640);

        let user = Settings {
            runtime_dirs: vec![runtime],
            ..folder_settings(&own)
        };
        let found = |settings: &Settings| {
            let mut settings = settings.clone();
            let is_found = find_service(&mut settings);
            (is_found, settings.connect, settings.data_dir)
        };
        let here = Some("http://127.0.0.1:4711".to_owned());
        let expected = (true, here.clone(), service.clone());
        assert_eq!(found(&user), expected);
        let named = |connect: Option<String>| Settings {
            connect,
            ..user.clone()
        };
        assert_eq!(found(&named(here)), expected);
        let other = Some("http://127.0.0.1:1".to_owned());
        assert_eq!(found(&named(other.clone())), (true, other, own.clone()));

        let lock = fs::File::create(own.join("lock")).unwrap();
        lock.lock().unwrap();
        assert_eq!(found(&user), (false, None, own.clone()));
        drop(lock);
        let given = |folder: &Path| {
            let mut settings = user.clone();
            settings.data_dir = folder.to_owned();
            settings.given.push(crate::config::ConfiguredValue {
                key: "data_dir",
                shown: String::new(),
                source: crate::config::SettingSource::Flag("--data-dir".into()),
            });
            settings
        };
        assert_eq!(found(&given(&own)), (false, None, own));
        assert_eq!(found(&given(&service)), expected);
    }
}
