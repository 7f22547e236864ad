//! The modules of a package and their dependencies, read from the sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree;

/// The path of a module from the root of the package; empty for the root.
type Path = Vec<String>;

/// The modules of a package, without tests.
#[derive(Debug)]
pub struct Modules(BTreeMap<Path, Module>);

#[derive(Debug, Default)]
struct Module {
    file: String,
    code: String,
    /// Items of other modules that it re-exports, by name.
    exports: BTreeMap<String, Path>,
}

/// Sibling modules that depend on each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cycle {
    /// The modules, as `outer::inner`, sorted.
    pub modules: Vec<String>,
    /// Files of the cycle, each with the modules on which it depends.
    pub arrows: Vec<String>,
}

impl Modules {
    /// Reads the modules below this folder, whose root is `lib.rs` or `main.rs`.
    pub fn of(folder: &str) -> Self {
        let mut modules = BTreeMap::new();
        for (file, text) in tree::files("rs") {
            let inside = file
                .strip_prefix(folder)
                .and_then(|rest| rest.strip_prefix('/'));
            let Some(path) = inside.and_then(|inside| inside.strip_suffix(".rs")) else {
                continue;
            };
            // A binary in the folder of a library is a separate package.
            if path.starts_with("bin/") {
                continue;
            }
            let path = if ["lib", "main"].contains(&path) {
                ""
            } else {
                path
            };
            let path = path.split('/').filter(|name| !name.is_empty());
            let module = Module {
                file: file.clone(),
                code: without_tests(&text),
                exports: BTreeMap::new(),
            };
            modules.insert(path.map(str::to_owned).collect::<Path>(), module);
        }
        let tests: Vec<Path> = modules
            .iter()
            .flat_map(|(path, module)| tests_of(path, &module.code))
            .collect();
        modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
        let mut modules = Self(modules);
        modules.read_exports();
        modules
    }

    /// Returns the cycles among sibling modules. A dependency between a module and its children is
    /// not a cycle.
    pub fn cycles(&self) -> Vec<Cycle> {
        let mut levels: BTreeMap<Path, BTreeMap<(String, String), BTreeSet<String>>> =
            BTreeMap::new();
        for (level, from, to, file) in self.dependencies() {
            let arrows = levels.entry(level).or_default();
            arrows.entry((from, to)).or_default().insert(file);
        }
        let mut circles = BTreeSet::new();
        for (level, arrows) in &levels {
            let reach = |start: &str| {
                let mut reached = BTreeSet::new();
                let mut next = vec![start];
                while let Some(from) = next.pop() {
                    for (_, to) in arrows.keys().filter(|(one, _)| one == from) {
                        if reached.insert(to.as_str()) {
                            next.push(to);
                        }
                    }
                }
                reached
            };
            let names: BTreeSet<&str> = arrows.keys().map(|(from, _)| from.as_str()).collect();
            for name in &names {
                let reached = reach(name);
                if !reached.contains(name) {
                    continue;
                }
                let members: BTreeSet<_> = names
                    .iter()
                    .copied()
                    .filter(|other| reached.contains(other) && reach(other).contains(name))
                    .collect();
                let within = arrows.iter().filter(|((from, to), _)| {
                    members.contains(from.as_str()) && members.contains(to.as_str())
                });
                let within = within.flat_map(|((_, to), files)| {
                    files
                        .iter()
                        .map(move |file| format!("{file} looks into {to}"))
                });
                let full = |name: &&str| {
                    let names = level.iter().map(String::as_str).chain([*name]);
                    names.collect::<Vec<_>>().join("::")
                };
                circles.insert(Cycle {
                    modules: members.iter().map(full).collect(),
                    arrows: within.collect(),
                });
            }
        }
        circles.into_iter().collect()
    }

    /// Returns the files that use an item of a module through a re-export of the package root,
    /// which they should not depend on, each with the name of the item.
    pub fn detours(&self) -> Vec<(String, String)> {
        let Some(root) = self.0.get(&Path::new()) else {
            return Vec::new();
        };
        let mut detours = Vec::new();
        for (path, module) in self.0.iter().filter(|(path, _)| !path.is_empty()) {
            for seen in paths(&module.code, path) {
                let is_module = |name: &String| self.0.contains_key(std::slice::from_ref(name));
                let name = seen.first();
                let name = name.filter(|it| root.exports.contains_key(*it) && !is_module(it));
                if let Some(name) = name {
                    detours.push((module.file.clone(), name.clone()));
                }
            }
        }
        detours
    }

    /// Returns every dependency between sibling modules: the parent, both modules, and the file.
    fn dependencies(&self) -> Vec<(Path, String, String, String)> {
        let mut dependencies = Vec::new();
        for (path, module) in &self.0 {
            for seen in paths(&module.code, path) {
                let seen = self.resolved(&seen, 0);
                let shared = path
                    .iter()
                    .zip(&seen)
                    .take_while(|(one, other)| one == other)
                    .count();
                if let (Some(from), Some(to)) = (path.get(shared), seen.get(shared)) {
                    let level = path[..shared].to_vec();
                    dependencies.push((level, from.clone(), to.clone(), module.file.clone()));
                }
            }
        }
        dependencies
    }

    fn resolved(&self, path: &[String], depth: usize) -> Path {
        let mut here = Path::new();
        for name in path {
            let below: Path = here.iter().cloned().chain([name.clone()]).collect();
            if self.0.contains_key(&below) {
                here = below;
                continue;
            }
            let exported = self
                .0
                .get(&here)
                .and_then(|module| module.exports.get(name));
            return match exported {
                Some(target) if depth < 10 => self.resolved(target, depth + 1),
                _ => here,
            };
        }
        here
    }

    fn read_exports(&mut self) {
        let known: BTreeSet<Path> = self.0.keys().cloned().collect();
        for (path, module) in &mut self.0 {
            for statement in module.code.split("pub").skip(1) {
                let statement = statement.trim_start();
                // `pub use`, or `pub(crate) use`.
                let statement = match statement.strip_prefix('(') {
                    Some(scoped) => scoped.split_once(')').map_or("", |(_, rest)| rest),
                    None => statement,
                };
                let Some(used) = statement.trim_start().strip_prefix("use ") else {
                    continue;
                };
                let used = used.split(';').next().unwrap_or_default();
                let mut trees = Vec::new();
                read_tree(used, &Path::new(), &mut trees);
                for (named, name) in trees {
                    let below: Path = path.iter().chain(named.first()).cloned().collect();
                    let target = absolute(&named, path).or_else(|| {
                        let inside = known.contains(&below);
                        inside.then(|| path.iter().chain(&named).cloned().collect())
                    });
                    if let Some(target) = target {
                        module.exports.insert(name, target);
                    }
                }
            }
        }
    }
}

fn without_tests(text: &str) -> String {
    let code = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn tests_of(path: &[String], code: &str) -> Vec<Path> {
    let mut tests = Vec::new();
    for declared in code.split("#[cfg(test)]\n").skip(1) {
        let declared = declared.lines().next().unwrap_or_default();
        let words: Vec<_> = declared.trim_end_matches(';').split_whitespace().collect();
        if let [.., "mod", name] = words[..] {
            tests.push(path.iter().cloned().chain([name.to_owned()]).collect());
        }
    }
    tests
}

/// Returns the paths in code that start at the package root or an enclosing module.
fn paths(code: &str, here: &[String]) -> Vec<Path> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            let inside_another =
                |character: char| character.is_alphanumeric() || "_:$".contains(character);
            if before.is_some_and(inside_another) {
                continue;
            }
            let mut trees = Vec::new();
            read_tree(&code[at..], &Path::new(), &mut trees);
            found.extend(trees.iter().filter_map(|(named, _)| absolute(named, here)));
        }
    }
    found
}

/// Converts a path that begins with `crate`, `self` or `super` to one from the root.
fn absolute(named: &[String], here: &[String]) -> Option<Path> {
    let (first, mut rest) = named.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Path::new(),
        "self" => here.to_vec(),
        "super" => here[..here.len().checked_sub(1)?].to_vec(),
        _ => return None,
    };
    while let Some((name, after)) = rest.split_first() {
        if name != "super" {
            break;
        }
        base.pop()?;
        rest = after;
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

/// Parses a use tree such as `a::{b, c::d as e}` into paths and names. Returns the rest of the
/// text.
fn read_tree<'a>(text: &'a str, before: &Path, found: &mut Vec<(Path, String)>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut list) = text.strip_prefix('{') {
        loop {
            list = read_tree(list, before, found).trim_start();
            match list.chars().next() {
                Some(',') => list = &list[1..],
                Some('}') => return &list[1..],
                _ => return list,
            }
        }
    }
    let text = text.strip_prefix("r#").unwrap_or(text);
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let end = text
        .find(|character| !is_part(character))
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return rest;
    }
    let path: Path = before.iter().cloned().chain([name.to_owned()]).collect();
    if let Some(inside) = rest.strip_prefix("::") {
        return read_tree(inside, &path, found);
    }
    // `a::{self}` is `a`.
    let whole = if name == "self" && !before.is_empty() {
        before.clone()
    } else {
        path
    };
    let mut goes_by = whole.last().cloned().unwrap_or_default();
    let mut rest = rest;
    if let Some(alias) = rest.trim_start().strip_prefix("as ") {
        let end = alias
            .find(|character| !is_part(character))
            .unwrap_or(alias.len());
        alias[..end].clone_into(&mut goes_by);
        rest = &alias[end..];
    }
    found.push((whole, goes_by));
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        text.split("::").map(str::to_owned).collect()
    }

    #[test]
    fn use_paths_are_expanded() {
        let code = "use crate::{domain::{Name, Tag as Label}, store};\nuse super::page;\n\
                    fn f() -> crate::ops::Answer<super::super::T> {}\nlet x = $crate::no;";
        let mut found = paths(code, &path("ops::intake"));
        found.sort();
        let expected = [
            "T",
            "domain::Name",
            "domain::Tag",
            "ops::Answer",
            "ops::page",
            "store",
        ];
        assert_eq!(found, expected.map(path));
    }
}
