//! Definitions in the database that were modified by another program.

use std::fmt::Write as _;

use bellwether_tests::{process, rest::Rest};
use serde_json::json;

use super::{Database, assert_refused, serve};
use crate::samples;

/// Creates one definition of each kind, and returns their tables.
async fn one_of_each(rest: &Rest) -> Vec<&'static str> {
    let clause = json!({"equals": {"field": "host", "stringVal": "a"}});
    let query = json!({"clause": clause});
    let window = json!({"dtstart": "2027-01-04T08:00:00", "endTimeOfDay": "18:00"});
    let drafts = [
        ("notification/triggers", samples::trigger("disk", "disk")),
        (
            "notification/destinations",
            samples::webhook("hook", "http://127.0.0.1:9/"),
        ),
        (
            "notification/rules",
            samples::rule("page", "disk", "hook", ""),
        ),
        (
            "notification/silences",
            json!({
                "name": "patch", "reason": "a patch", "query": query,
                "span": {"endTime": samples::in_seconds(600)},
            }),
        ),
        (
            "notification/inhibitions",
            json!({
                "name": "dead", "sourceFilter": "name=down", "targetFilter": "name=full",
                "equal": [{"source": "host"}],
            }),
        ),
        (
            "notification/calendars",
            json!({"name": "office", "timeZone": "UTC", "windows": [window]}),
        ),
        (
            "intake/mappings",
            json!({"name": "page", "event": {"name": "{{a}}", "dimensions": {"host": "{{b}}"}}}),
        ),
        ("views", json!({"name": "ours", "filter": "host=a"})),
    ];
    for (path, draft) in drafts {
        rest.post(&format!("/v1/{path}"), &draft).await.ok();
    }
    // An earlier revision stays stored while an event exists that was decided with it.
    let event = samples::event("idle", "a", "SEVERITY_INFO", "nothing to do");
    let body = samples::events(&[event]);
    rest.post("/v1/data-receiver/events", &body).await.ok();
    let mut edited = samples::trigger("disk", "disk");
    edited["description"] = json!("edited");
    let one = "/v1/notification/triggers/disk";
    rest.put(one, &edited).await.ok();
    vec![
        "trigger",
        "destination",
        "rule",
        "silence",
        "inhibition",
        "calendar",
        "mapping",
        "saved_view",
        "settings",
        "revision",
    ]
}

/// A row of a table. Its value begins with a checksum over the number of the record's kind, the key
/// and the rest of the value.
struct StoredRow {
    key: Vec<u8>,
    cell: Vec<u8>,
}

impl StoredRow {
    /// Returns the cell with a modified value; `with_checksum` simulates an attacker who knows the
    /// checksum.
    fn forged(&self, with_checksum: bool, forge: fn(&mut Vec<u8>)) -> Vec<u8> {
        let (sum, value) = self.cell.split_at(4);
        let sum_of = |kind: u8, value: &[u8]| {
            let sum = crc32c::crc32c_append(crc32c::crc32c(&[kind]), &self.key);
            crc32c::crc32c_append(sum, value).to_be_bytes()
        };
        let kind = (0..=u8::MAX).find(|kind| sum_of(*kind, value) == sum);
        let kind = kind.expect("the checksum matches its documentation");
        let mut forged = value.to_vec();
        forge(&mut forged);
        let sum = if with_checksum {
            sum_of(kind, &forged).to_vec()
        } else {
            sum.to_vec()
        };
        [sum, forged].concat()
    }

    fn write(&self, database: &Database, table: &str, cell: &[u8]) {
        let [key, cell] = [&self.key, cell].map(hex);
        database.server.execute(&format!(
            "UPDATE bellwether.{table} SET value = '\\x{cell}' WHERE key = '\\x{key}'"
        ));
    }
}

fn rows(database: &Database, table: &str) -> Vec<StoredRow> {
    let read = format!("SELECT encode(key, 'hex'), encode(value, 'hex') FROM bellwether.{table}");
    let found = database.server.execute(&read);
    let rows = found.lines().map(|line| {
        let (key, cell) = line.split_once('|').unwrap();
        let [key, cell] = [key, cell].map(unhex);
        StoredRow { key, cell }
    });
    rows.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
    bytes.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_definition_is_reported_and_not_used() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut world = database.world();
    let tables = one_of_each(&world.rest()).await;
    let address = format!("http://{}", world.service().address("grpc"));
    let key_file = world.data_dir().join("admin.key");
    let check = || {
        let mut command = process::command(world.folder(), ["check", "--connect", &address]);
        command.arg("--key-file").arg(&key_file);
        let ended = process::run(command);
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        (ended.status.success(), said)
    };
    let (is_whole, said) = check();
    assert!(is_whole, "{said}");
    let forgeries: [fn(&mut Vec<u8>); 2] = [
        |value| *value.last_mut().unwrap() ^= 1,
        // A value in the format from before values were authenticated.
        |value| drop(value.splice(..37, [1])),
    ];
    let stored: Vec<_> = tables.iter().map(|it| (*it, rows(&database, it))).collect();
    for (with_checksum, forge) in [
        (true, forgeries[0]),
        (true, forgeries[1]),
        (false, forgeries[0]),
    ] {
        for (table, rows) in &stored {
            for row in rows {
                row.write(&database, table, &row.forged(with_checksum, forge));
            }
        }
        let (is_whole, said) = check();
        assert!(!is_whole, "{said}");
        for (table, _) in &stored {
            let word = table.trim_start_matches("saved_");
            let is_reported = said.lines().any(|line| {
                if with_checksum {
                    line.contains(&format!("{word} "))
                        && line.contains("was not written by this service")
                } else {
                    line.contains(&format!("checksum mismatch in a {word}"))
                }
            });
            assert!(is_reported, "{table}: {said}");
        }
        for (table, rows) in &stored {
            for row in rows {
                row.write(&database, table, &row.cell);
            }
        }
    }
    let (is_whole, said) = check();
    assert!(is_whole, "{said}");
    assert!(world.terminate().success());
    let (_, rules) = stored.iter().find(|(table, _)| *table == "rule").unwrap();
    rules[0].write(&database, "rule", &rules[0].forged(true, forgeries[0]));
    assert_refused(serve(&world.data_dir()), "was not written by this service");
}
