//! The table of all keys, for the documentation and `bellwether --keys`.

use std::fmt::Write;

use super::{
    ACTIONS, Keymap,
    actions::{ActionPlace, Entry, Requirement},
    setting::notation::write_keys,
};
use crate::data::Label;

const HEAD: &str = "\
# Keys of the console

Change any key in `bellwether.toml`, by the name of its action:

```toml
[keys]
top = \"ctrl-x t\"                 # a sequence of two keys
bottom = [\"G\", \"ctrl-x e\"]      # several
copy = []                        # none

[keys.events]                    # only in the list of events
mark = [\"space\", \"m\"]
```

Conflicting keys are reported together when the console starts. `ctrl-c` always quits, and help has a key on every
screen. In the console, `?` lists and runs the actions of the screen; `:` finds all others.
";

const TAIL: &str = "
## Fixed keys

| where | keys |
|---|---|
| text fields | as in a shell: `ctrl-a` `ctrl-e` start and end, `alt-b` `alt-f` words, `ctrl-w` `ctrl-u` `ctrl-k` delete |
| questions | `y` yes, `n` or `esc` no, `tab` switches, `enter` chooses the marked answer, `j` `k` scroll |
| help and `:` | `up` `down` `ctrl-p` `ctrl-n` choose, `tab` completes, `enter` runs it, `esc` leaves |
| silence | `e` this event, `b` its name on its host, `h` the host, `a` the name, `f` all matches; `1` `2` `8` hours, `0` until 08:00, `o` any end; `r` the reason; `enter` the marked choice, `esc` leaves |
| filter line | `up` `down` earlier filters; `tab` completes a field or a value of events |
| copy menu | `i` id, `r` row, `j` JSON, `c` curl, `b` command, `enter` the marked one, `esc` leaves |
| choices | `left` `right` choose; letters open a list and search it, `enter` chooses, `esc` leaves |
| lists of names | `enter` or letters open the list, letters search it; `space` selects, `enter` confirms, `esc` leaves |
";

impl Keymap {
    /// Returns all actions as a Markdown document: each with its name, its keys in the notation of
    /// configuration files, its places, and the required role.
    #[must_use]
    pub fn reference_text(&self) -> String {
        let mut out = HEAD.to_owned();
        out.push_str("\n| keys | what it does | name | where | role |\n|---|---|---|---|---|\n");
        for entry in ACTIONS.iter() {
            let (keys, title) = (self.all_keys(entry), entry.title);
            let name = entry.action.name();
            let places: Vec<String> = entry.places.iter().map(|place| place.name()).collect();
            let role = match entry.need {
                Requirement::None => "",
                Requirement::Role(role) | Requirement::Write(role) => role.label(),
            };
            let places = places.join(", ");
            let row = format!("| {keys} | {title} | `{name}` | {places} | {role} |");
            let _infallible = writeln!(out, "{row}");
        }
        out.push_str(TAIL);
        out
    }

    fn all_keys(&self, entry: &Entry) -> String {
        let code = |keys: &[_]| format!("`{}`", write_keys(keys).replace('|', "\\|"));
        let first = self.keys_everywhere(entry.action).map(code);
        let mut all: Vec<String> = first.collect();
        for place in ActionPlace::iter() {
            for keys in self.keys_bound_in(entry.action, place) {
                all.push(format!("{} ({})", code(keys), place.name()));
            }
        }
        all.join(" ")
    }
}
