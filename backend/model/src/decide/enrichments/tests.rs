//! Tests of the lookup of rows and of invalid tables.

use super::*;
use crate::samples::{self, plain};

fn table(matched: &[&str], csv: &str) -> EnrichmentTable {
    EnrichmentTable {
        match_fields: matched.iter().map(ToString::to_string).collect(),
        csv: csv.into(),
        ..samples::enrichment("a")
    }
}

fn load(matched: &[&str], csv: &str) -> Arc<LoadedEnrichment> {
    Arc::new(LoadedEnrichment::new(table(matched, csv)).unwrap())
}

/// Returns the occurrence of an event with these dimensions.
fn occurrence(dimensions: &[(&str, &str)]) -> Occurrence {
    let pairs = dimensions.iter();
    Occurrence {
        dimensions: pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..plain::occurrence()
    }
}

/// Returns a metadata field after the tables were applied; empty if it is not set.
fn enriched(tables: &Enrichments, mut occurrence: Occurrence, key: &str) -> String {
    tables.apply(&mut occurrence);
    match occurrence.metadata.get(key) {
        Some(Value::Text(text)) => text.clone(),
        None => String::new(),
        Some(other) => format!("{other:?}"),
    }
}

#[test]
fn exact_row_precedes_the_longest_prefix() {
    let csv = "host,team\nweb*,web\nweb-1*,first\nWEB-10,tenth\n*,rest\n\u{c4}RGER*,umlaut";
    let tables = Enrichments::new(vec![load(&["host"], csv)]);
    for (host, team) in [
        ("web-10", "tenth"),
        ("web-100", "first"),
        ("Web-1", "first"),
        ("web", "web"),
        ("we", "rest"),
        ("", "rest"),
        ("\u{e4}rger-1", "umlaut"),
    ] {
        let found = enriched(&tables, occurrence(&[("host", host)]), "team");
        assert_eq!(found, team, "{host}");
    }
    assert_eq!(
        enriched(&tables, occurrence(&[("node", "web")]), "team"),
        ""
    );
}

#[test]
fn every_match_field_must_have_the_value() {
    let csv = "team,site,name\n1,b1,disk full\n2,b1,*\n3,b*,x";
    let tables = Enrichments::new(vec![load(&["name", "site"], csv)]);
    let named = |name: &str, site: &str| Occurrence {
        name: name.into(),
        ..occurrence(&[("site", site)])
    };
    assert_eq!(enriched(&tables, named("Disk full", "b1"), "team"), "1");
    assert_eq!(enriched(&tables, named("other", "b1"), "team"), "2");
    assert_eq!(enriched(&tables, named("other", "b2"), "team"), "");
    // Only the last match column can have a prefix.
    assert_eq!(enriched(&tables, named("x", "b2"), "team"), "");
    assert_eq!(enriched(&tables, named("x", "b*"), "team"), "3");
}

#[test]
fn numbers_and_nested_metadata_can_be_matched() {
    let csv = "metadata.labels.shard,metadata.ok,team\n7,true,odd";
    let matched = ["metadata.labels.shard", "metadata.ok"];
    let tables = Enrichments::new(vec![load(&matched, csv)]);
    let mut found = occurrence(&[("host", "a")]);
    let shard = [("shard".to_owned(), Value::Number(7.0))];
    found.metadata = [
        ("labels".to_owned(), Value::Object(shard.into())),
        ("ok".to_owned(), Value::Bool(true)),
    ]
    .into();
    assert_eq!(enriched(&tables, found, "team"), "odd");
}

#[test]
fn later_table_matches_earlier_values_but_keeps_them() {
    let teams = load(&["host"], "host,team,owner,note\na,db,ana,");
    let next = load(&["team"], "team,owner,lead\ndb,ben,cleo");
    let tables = Enrichments::new(vec![teams, next]);
    let mut found = occurrence(&[("host", "a")]);
    tables.apply(&mut found);
    let text = |text: &str| Value::Text(text.into());
    let expected = [
        ("lead".to_owned(), text("cleo")),
        ("owner".to_owned(), text("ana")),
        ("team".to_owned(), text("db")),
    ];
    assert_eq!(found.metadata, expected.into());
    found.remove_enriched();
    assert!(found.metadata.is_empty() && found.enriched.is_empty());
}

#[test]
fn senders_dimension_or_metadata_takes_precedence() {
    let loaded = load(&["host"], "host,team,site,owner\na,db,b1,ana");
    let name = loaded.table.name.clone();
    let tables = Enrichments::default().with_table(loaded);
    let mut found = occurrence(&[("host", "a"), ("team", "web")]);
    found.metadata.insert("site".into(), Value::Null);
    let applied = tables.apply_traced(&mut found, &name).unwrap();
    assert_eq!(applied.values, [("owner".to_owned(), "ana".to_owned())]);
    let kept: Vec<_> = applied.kept.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(kept, ["team", "site"]);
    assert_eq!(applied.row.line, 2);
    assert_eq!(found.metadata["site"], Value::Null);
    assert_eq!(found.enriched, ["owner"]);
}

#[test]
fn values_beyond_the_total_size_are_omitted() {
    let big = "x".repeat(ENRICHMENT_CELL_BYTES_MAX);
    let names: Vec<_> = (0..19).map(|at| format!("f{at}")).collect();
    let csv = format!("host,{}\na,{}", names.join(","), vec![big; 19].join(","));
    let tables = Enrichments::new(vec![load(&["host"], &csv)]);
    let mut found = occurrence(&[("host", "a")]);
    tables.apply(&mut found);
    assert_eq!(found.enriched.len(), 15);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn invalid_table_is_rejected_with_line_and_column() {
    let many = |count: usize| {
        let rows: Vec<_> = (0..count).map(|at| format!("h{at},t\n")).collect();
        format!("host,team\n{}", rows.concat())
    };
    let prefixes: Vec<_> = (1..=65)
        .map(|at| format!("{}*,t\n", "h".repeat(at)))
        .collect();
    let prefixes = format!("host,team\n{}", prefixes.concat());
    let columns: Vec<_> = (0..20).map(|at| format!(",c{at}")).collect();
    let wide = columns.concat();
    let table_of: [(&[&str], &str, &str); 20] = [
        (&[], "host,team\na,b", "has 0 fields; expected 1 to 4"),
        (&["severity"], "severity,team\na,b", "cannot be `severity`"),
        (&["dimensions."], "a,b", "has no key after the dot"),
        (&["host"], "", "a row with the names of the columns"),
        (
            &["host"],
            "node,team\na,b",
            "line 1: has no column `host` to match",
        ),
        (&["host"], "host\na", "line 1: has no column to set"),
        (
            &["host"],
            "host,host\na,b",
            "line 1: column `host`: occurs twice",
        ),
        (&["host"], "host,\na,b", "line 1: column ``: has no name"),
        (
            &["host"],
            "host,a.b\na,b",
            "line 1: column `a.b`: a metadata field",
        ),
        (
            &["host"],
            "host,source\na,b",
            "line 1: column `source`: is reserved",
        ),
        (
            &["host"],
            "host,severity\na,b",
            "line 1: column `severity`: is a field",
        ),
        (
            &["host"],
            &format!("host{wide}\na"),
            "line 1: has 21 columns",
        ),
        (
            &["host"],
            "host,team\na,b\n\nb\n",
            "line 4: has 1 cells; expected 2",
        ),
        (
            &["host"],
            "host,team\na,b\n,c\n",
            "line 3: column `host`: is empty",
        ),
        (
            &["host"],
            "host,team\na,b\nA,c\n",
            "line 3: matches the same values as line 2",
        ),
        (
            &["host"],
            "host,team\na*,b\nA*,c\n",
            "line 3: matches the same values as line 2",
        ),
        (
            &["host"],
            "host,team\na,\"b\n",
            "line 2: a quote is not closed",
        ),
        (
            &["host"],
            &format!("host,team\na,{}", "x".repeat(1025)),
            "line 2: column `team`: is 1025",
        ),
        (&["host"], &many(10_001), "has more than 10000 rows"),
        (&["host"], &prefixes, "of more than 64 different lengths"),
    ];
    for (matched, csv, error) in table_of {
        let violations = LoadedEnrichment::new(table(matched, csv)).unwrap_err();
        let first = &violations[0];
        assert!(first.description.contains(error), "{error}: {violations:?}");
        let field = if first.field == "csv" {
            "csv"
        } else {
            "matchFields"
        };
        assert!(first.field.starts_with(field), "{violations:?}");
    }
    assert_eq!(load(&["host"], &many(10_000)).row_count(), 10_000);
    let rows = vec!["only\n"; 100].concat();
    let errors = LoadedEnrichment::new(table(&["host"], &format!("host,team\n{rows}")));
    assert_eq!(errors.unwrap_err().len(), ENRICHMENT_ERRORS_MAX);
    let large = format!("host,team\na,{}", "x".repeat(ENRICHMENT_BYTES_MAX));
    let errors = LoadedEnrichment::new(table(&["host"], &large)).unwrap_err();
    assert!(errors[0].description.contains("the limit is 1048576"));
}
