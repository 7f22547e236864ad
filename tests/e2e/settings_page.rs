//! The page of all settings is generated from the annotated settings file.

use bellwether_tests::tree;

const FILE: &str = "tui/command/bellwether.default.toml";
const PAGE: &str = "docs/settings.md";
/// If set, the test writes the page instead of comparing it.
const UPDATE: &str = "BELLWETHER_UPDATE_SETTINGS";

const HEAD: &str = "# Settings

Every setting with its meaning and its default or, if it has no default, an example. Put settings into
`bellwether.toml`, below the heading of their section:

```sh
bellwether --default-config > bellwether.toml     # every setting, as a comment
bellwether config check                           # every setting in effect, and its source
```

| source | example |
|---|---|
| flag | `--rest-listen 127.0.0.1:8480`; `bellwether --help` lists those that have one |
| variable | `BELLWETHER_DELIVERY_TIMEOUT=15s`; separate the items of a list with commas |
| variable with a file | `BELLWETHER_SMTP_PASSWORD_FILE=/run/secrets/smtp` |
| file | `timeout = \"15s\"` in the section `[delivery]` |

Flags override variables, and variables override the file. The file is the one given by `--config` or
`BELLWETHER_CONFIG`. On Linux the default is `~/.config/bellwether/bellwether.toml`, else
`/etc/bellwether/bellwether.toml`. Durations need a unit: `ms`, `s`, `m`, `h` or `d`. Sizes are in bytes, or in `KiB`,
`MiB` or `GiB`.

`just settings` generates this page from [the annotated file](../tui/command/bellwether.default.toml).

## General

These settings are at the beginning of the file, before the first section.
";

/// Returns the page for the annotated file. Its blocks are separated by empty lines; the first one
/// is about the file itself.
fn page(file: &str) -> String {
    let mut page = HEAD.to_owned();
    let mut section = "";
    for block in file.split("\n\n").skip(1) {
        let (mut text, mut code) = (String::new(), String::new());
        let mut names = Vec::new();
        for line in block.lines() {
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']');
                page.extend(["\n## [", section, "]\n"]);
            } else if let Some(name) = setting_name(line) {
                names.push(name);
                code.extend([&line[2..], "\n"]);
            } else if let Some(example) = line.strip_prefix("#   ") {
                if example.starts_with('[') {
                    page.extend(["\n## ", example, "\n"]);
                }
                code.extend([example, "\n"]);
            } else {
                text.extend([line.trim_start_matches('#').trim_start(), "\n"]);
            }
        }
        let in_section = !section.is_empty() && !names.is_empty();
        for name in names {
            let (section, dot) = if in_section { (section, ".") } else { ("", "") };
            page.extend(["\n### ", section, dot, name, "\n"]);
        }
        page.extend(["\n", text.trim_end(), "\n\n```toml\n"]);
        if in_section {
            page.extend(["[", section, "]\n"]);
        }
        page.extend([&code, "```\n"]);
    }
    page
}

/// Returns the name of the setting on a line such as `# timeout = "15s"`.
fn setting_name(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("# ")?.split_once(" = ")?;
    let is_name = name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    is_name.then_some(name)
}

#[test]
fn settings_page_matches_the_annotated_file() {
    let read = |path| std::fs::read_to_string(tree::root().join(path)).unwrap();
    let generated = page(&read(FILE));
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(tree::root().join(PAGE), &generated).unwrap();
    }
    assert!(
        read(PAGE) == generated,
        "{PAGE} differs from {FILE}; `just settings` rewrites it"
    );
}
