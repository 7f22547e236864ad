//! The field that was probably meant by one that does not exist.

/// How alike two names have to be, from 0 to 1, for one to be taken for the other.
const LIKENESS_MIN: f64 = 0.6;

/// The known field that a name is most like, and how much, from 0 to 1; none when it is like none.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<(f64, &'a str)> {
    let name = name.to_lowercase();
    let alike = known.into_iter().map(|known| {
        let likeness = strsim::normalized_damerau_levenshtein(&name, &known.to_lowercase());
        (likeness, known)
    });
    let near = alike.filter(|(likeness, _)| *likeness >= LIKENESS_MIN);
    near.max_by(|(one, _), (other, _)| one.total_cmp(other))
}
