//! `completions`: shell scripts generated from the definition of the command line. The scripts run
//! `bellwether completions` to complete names.

mod names;

use clap_complete::Shell;

use crate::{
    cli::{Cli, script::CompletionsArguments},
    failure::Failure,
    output,
};

const BASH: &str = r#"
_bellwether_with_names() {
    _bellwether "$@"
    local IFS=$' \t\n' name words word="${COMP_WORDS[COMP_CWORD]}"
    local line="${COMP_LINE:0:COMP_POINT}"
    read -ra words <<< "${line%"$word"}"
    while IFS= read -r name; do
        if [[ "$name" == "$word"* ]]; then
            COMPREPLY+=("$(printf '%q' "$name")")
        fi
    done < <("$1" completions bash -- "${words[@]:1}" 2>/dev/null)
}

"#;

const ZSH: &str = r#"
_bellwether_names() {
    local -a before names
    before=(${(z)LBUFFER})
    [[ $LBUFFER == *' ' ]] || before[-1]=()
    names=(${(f)"$($before[1] completions zsh -- ${before[2,-1]} 2>/dev/null)"})
    compadd -a names
}

"#;

const FISH: &str = r#"
complete -c bellwether -a "(bellwether completions fish -- (commandline -opc)[2..] 2>/dev/null)"
"#;

pub(super) async fn run(arguments: &CompletionsArguments) -> Result<(), Failure> {
    if !arguments.words.is_empty() {
        return Box::pin(names::print_names(&arguments.words)).await;
    }
    let mut text = Vec::new();
    let mut command = Cli::offered_command();
    clap_complete::generate(arguments.shell, &mut command, "bellwether", &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    output::write_output(&match arguments.shell {
        Shell::Bash => with_names_in_bash(&text),
        Shell::Zsh => with_names_in_zsh(&text),
        Shell::Fish => text + FISH,
        _ => text,
    })
}

/// Adds the completion of names, and omits placeholders such as `[NAME]` from the words.
fn with_names_in_bash(text: &str) -> String {
    let start = text.find("\nif [[ \"${BASH_VERSINFO").unwrap_or(text.len());
    let (functions, registration) = text.split_at(start);
    let functions = functions.lines().map(|line| {
        let Some((indent, words)) = line.split_once("opts=\"") else {
            return format!("{line}\n");
        };
        let words = words.trim_end_matches('"').split(' ');
        let words: Vec<_> = words.filter(|word| !word.starts_with(['<', '['])).collect();
        format!("{indent}opts=\"{}\"\n", words.join(" "))
    });
    let registration = registration.replace("-F _bellwether ", "-F _bellwether_with_names ");
    functions.chain([BASH.to_owned(), registration]).collect()
}

/// Completes arguments called `name` with names.
fn with_names_in_zsh(text: &str) -> String {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    for line in &mut lines {
        let is_name = ["':name -- ", "'::name -- "];
        if is_name.iter().any(|start| line.starts_with(start)) {
            *line = line.replace(":_default'", ":_bellwether_names'");
        }
    }
    // The first line declares the command.
    lines.insert(1, ZSH.to_owned());
    lines.join("\n") + "\n"
}
