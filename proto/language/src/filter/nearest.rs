//! Suggests a field for a misspelled one.

/// Minimum similarity for a suggestion, from 0 to 1.
const LIKENESS_MIN: f64 = 0.6;

/// Returns the most similar known field and its similarity, from 0 to 1; `None` if none is similar
/// enough.
pub fn nearest_field<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<(f64, &'a str)> {
    let name = name.to_lowercase();
    let alike = known.into_iter().map(|known| {
        let likeness = strsim::normalized_damerau_levenshtein(&name, &known.to_lowercase());
        (likeness, known)
    });
    let near = alike.filter(|(likeness, _)| *likeness >= LIKENESS_MIN);
    near.max_by(|(one, _), (other, _)| one.total_cmp(other))
}
