//! Runs the operator's editor on a file that only this user can read.

use std::{
    fs,
    io::{self, Read, Write},
    process::Command,
};

const TEXT_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) fn edit(editor: &str, stem: &str, text: &str) -> Result<String, String> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| format!("failed to {what}: {error}")
    };
    let mut file = tempfile::Builder::new()
        .prefix(&format!("bellwether-{stem}-"))
        .suffix(".json")
        .tempfile()
        .map_err(failed("create a temporary file"))?;
    file.write_all(text.as_bytes())
        .map_err(failed("write the text"))?;
    file.flush().map_err(failed("write the text"))?;
    let mut words = editor.split_whitespace();
    let program = words.next().ok_or("no editor is set; set $EDITOR")?;
    let status = Command::new(program)
        .args(words)
        .arg(file.path())
        .status()
        .map_err(failed(&format!("run the editor `{program}`")))?;
    if !status.success() {
        return Err(format!(
            "the editor `{program}` exited with {status}; nothing was changed"
        ));
    }
    let edited = fs::File::open(file.path()).map_err(failed("read the text back"))?;
    let mut text = String::new();
    edited
        .take(TEXT_BYTES)
        .read_to_string(&mut text)
        .map_err(failed("read the text back"))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edited_text_is_returned() {
        assert_eq!(edit("sed -i s/a/b/", "x", "a\n").unwrap(), "b\n");
        assert_eq!(edit("true", "x", "a\n").unwrap(), "a\n");
    }

    #[test]
    fn editor_failure_is_reported() {
        assert!(
            edit("false", "x", "a")
                .unwrap_err()
                .contains("nothing was changed")
        );
        assert!(
            edit("no-such-editor-here", "x", "a")
                .unwrap_err()
                .contains("no-such-editor-here")
        );
        assert!(edit(" ", "x", "a").is_err());
    }
}
