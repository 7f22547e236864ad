//! Saved views: service, validation and storage.

use bellwether_language::filter::{self, TimeReference};
use bellwether_proto::v1::{self, view_service_server::ViewService};
use tonic::async_trait;

use crate::{
    domain::{Query, SavedView, SortField},
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    limits::{VIEW_COLUMN_CHARACTERS_MAX, VIEW_COLUMNS_MAX, VIEWS_MAX},
    matching::{self, field::Field},
    resource::{AuthoredResource, Origin, Resources, resource},
    serve::serve,
    store::Changes,
    validate::Violations,
    wire::time::timestamp,
};

pub type SavedViews = Resources<SavedView>;

resource!(SavedView, v1::View, "view", |_| None);

#[derive(Debug)]
pub struct ViewApi {
    pub views: SavedViews,
}

#[async_trait]
impl ViewService for ViewApi {
    serve! {
        views of view;
        create_view(CreateViewRequest) -> CreateViewResponse;
        list_views(ListViewsRequest) -> ListViewsResponse { views };
        get_view(GetViewRequest) -> GetViewResponse;
        update_view(UpdateViewRequest) -> UpdateViewResponse;
        delete_view(DeleteViewRequest) -> DeleteViewResponse, |it| it.force;
    }
}

impl AuthoredResource for SavedView {
    type Draft = v1::View;
    type View = v1::View;

    async fn from_draft(
        all: &SavedViews,
        draft: &v1::View,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut violations = Violations::default();
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        check_filter(&draft.filter, all.clock.now_ms(), &mut violations);
        let sort = SortField::from_word(&draft.sort);
        let sort = sort.map_err(|message| violations.add("sort", message));
        if let Some(Err(message)) = grouping_field(draft).map(Field::parse_shared) {
            violations.add("groupBy", message);
        }
        check_columns(&draft.columns, &mut violations);
        all.check_room(stored, VIEWS_MAX).await?;
        let view = name.zip(sort.ok()).map(|(name, sort)| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            filter: draft.filter.trim().to_owned(),
            sort,
            ascending: draft.ascending,
            includes_closed: draft.includes_closed,
            group_by: grouping_field(draft).map(str::to_owned),
            columns: draft.columns.clone(),
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(view)?, all.store.new_changes()))
    }
}

impl FromDomain<SavedView> for v1::View {
    fn from_domain(view: SavedView) -> Self {
        Self {
            name: view.name.to_string(),
            description: view.description,
            tags: view.tags,
            filter: view.filter,
            sort: view.sort.as_str().to_owned(),
            ascending: view.ascending,
            includes_closed: view.includes_closed,
            group_by: view.group_by.unwrap_or_default(),
            columns: view.columns,
            create_time: Some(timestamp(view.create_ms)),
            update_time: Some(timestamp(view.update_ms)),
            etag: compute_etag(view.id, view.revision),
        }
    }
}

fn grouping_field(draft: &v1::View) -> Option<&str> {
    Some(draft.group_by.trim()).filter(|it| !it.is_empty())
}

/// Checks a filter, which is stored as text but must be valid when saved.
fn check_filter(text: &str, now_ms: i64, violations: &mut Violations) {
    if text.trim().is_empty() {
        return;
    }
    let parsed = match filter::parse(text, Some(&TimeReference::in_utc(now_ms))) {
        Ok(parsed) => parsed,
        Err(error) => return violations.add("filter", error.to_string()),
    };
    let query = Query {
        clause: parsed.clause.clone(),
    };
    for violation in matching::compile(&query).err().into_iter().flatten() {
        let at = parsed.position(&violation.field);
        let message = violation.description;
        violations.add("filter", filter::FilterError { at, message }.to_string());
    }
}

fn check_columns(columns: &[String], violations: &mut Violations) {
    if columns.len() > VIEW_COLUMNS_MAX {
        let count = columns.len();
        let message = format!("has {count} titles; the limit is {VIEW_COLUMNS_MAX}");
        return violations.add("columns", message);
    }
    for (at, title) in columns.iter().enumerate() {
        let characters = title.chars().count();
        if !(1..=VIEW_COLUMN_CHARACTERS_MAX).contains(&characters) {
            let message =
                format!("has {characters} characters; expected 1 to {VIEW_COLUMN_CHARACTERS_MAX}");
            violations.add(format!("columns[{at}]"), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{clock::ManualClock, samples};

    fn sample_views() -> SavedViews {
        let clock = Arc::new(ManualClock::starting_at(samples::START_MS));
        SavedViews::new(crate::store::Store::in_memory(), clock)
    }

    #[tokio::test]
    async fn view_round_trips_and_errors_name_the_field() {
        let views = sample_views();
        let draft = v1::View {
            name: "databases".into(),
            filter: " host=db-* since=2h ".into(),
            sort: "severity".into(),
            group_by: "host".into(),
            columns: vec!["Seen".into()],
            ..v1::View::default()
        };
        let made = views.create(&draft, false).await.unwrap();
        assert_eq!(made.resource.filter, "host=db-* since=2h");
        assert_eq!(made.resource.sort, SortField::Severity);
        assert_eq!(made.resource.group_by.as_deref(), Some("host"));
        assert_eq!(views.get("databases").await.unwrap(), made.view);

        let wrong = v1::View {
            name: "wrong".into(),
            filter: "host=a severity>=loud".into(),
            sort: "count".into(),
            group_by: "summary".into(),
            columns: vec![String::new()],
            ..draft
        };
        let Err(Error::Invalid(violations)) = views.create(&wrong, false).await else {
            panic!("it was accepted");
        };
        let fields: Vec<_> = violations.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, ["filter", "sort", "groupBy", "columns[0]"]);
        let place = &violations[0].description;
        assert!(place.starts_with("at character 8: "), "{place}");
        let unread = v1::View {
            name: "unread".into(),
            filter: "(host=a".into(),
            ..v1::View::default()
        };
        assert!(views.create(&unread, false).await.is_err());
    }
}
