//! Silences in documents: those that no document describes are ended, and ended ones stay ended.

use std::collections::HashSet;

use bellwether_proto::v1;

use super::{
    Action, Change, ConfigStage, DefinitionVersion, Document, DocumentErrors, box_resource,
    to_change,
};
use crate::{
    commit::commit,
    domain::{Name, RevisedResource, Silence, SilenceState},
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    limits::SILENCES_MAX,
    resource::{self, PutOutcome, Resource},
    revision,
    silence::wire::draft_from_wire,
    store::{Lane, Stored, audit, engine::Range},
};

impl FromDomain<Silence> for DefinitionVersion {
    fn from_domain(silence: Silence) -> Self {
        Self::Silence(FromDomain::from_domain(silence))
    }
}

impl ConfigStage {
    pub(super) async fn put_silences(
        &self,
        documents: &[Document],
        changes: &mut [Option<Change>],
        failed: &mut DocumentErrors,
    ) -> Result<(), Error> {
        let mut is_any_new = false;
        for (at, document) in documents.iter().enumerate() {
            let DefinitionVersion::Silence(silence) = &document.definition else {
                continue;
            };
            match self.put_silence(silence, document.must_be_new).await {
                Ok(change) => {
                    is_any_new |= matches!(change.action, Action::Created(_));
                    changes[at] = Some(change);
                }
                Err(error) => failed.add(at, document, error)?,
            }
        }
        if is_any_new {
            self.check_silence_count().await?;
        }
        Ok(())
    }

    async fn put_silence(&self, wire: &v1::Silence, must_be_new: bool) -> Result<Change, Error> {
        let mut draft = draft_from_wire(wire.clone(), editor()?);
        let all = self.resources::<Silence>();
        let now_ms = self.clock.now_ms();
        let has_passed = draft.end_ms.is_some_and(|it| it <= now_ms);
        let stored = match Name::parse(&draft.name) {
            Ok(name) => self.store.get::<Silence>(name.as_str().into()).await?,
            Err(_error) => None,
        };
        match stored.map(|it| it.value) {
            None if has_passed && draft.violations.is_empty() => Ok(Change {
                kind: Silence::WORD,
                name: draft.name,
                etag: String::new(),
                action: Action::Unchanged,
                stopped_responses: 0,
            }),
            Some(ended) if ended.state_at(now_ms) == SilenceState::Expired => {
                let is_later = draft.start_ms.is_some_and(|it| it >= ended.end_ms);
                if has_passed || !is_later {
                    return Ok(to_change(PutOutcome::Unchanged(ended)));
                }
                all.delete(&draft.name, &draft.etag, false).await?;
                draft.etag.clear();
                Ok(to_change(all.create_or_update(&draft, true).await?))
            }
            _ => Ok(to_change(all.create_or_update(&draft, must_be_new).await?)),
        }
    }

    pub(super) async fn end_stale_silences(
        &self,
        tag: &str,
        described: &HashSet<(&str, &str)>,
    ) -> Result<Vec<Change>, Error> {
        let now_ms = self.clock.now_ms();
        let mut pages = self.store.pages::<Silence>(Range::with_prefix(&[]));
        let mut ended = Vec::new();
        while let Some(page) = pages.next().await? {
            for Stored { value: silence, .. } in page {
                let is_owned = silence.tags.iter().any(|it| it == tag);
                let is_described = described.contains(&(Silence::WORD, silence.name.as_str()));
                let is_over = silence.state_at(now_ms) == SilenceState::Expired;
                if is_owned && !is_described && !is_over {
                    self.end_silence(&silence, now_ms).await?;
                    ended.push(Change {
                        kind: Silence::WORD,
                        name: silence.name.to_string(),
                        etag: compute_etag(silence.id, silence.revision),
                        action: Action::Deleted(box_resource(silence)),
                        stopped_responses: 0,
                    });
                }
            }
        }
        Ok(ended)
    }

    async fn end_silence(&self, silence: &Silence, now_ms: i64) -> Result<(), Error> {
        let editor = editor()?;
        let decide = async || {
            let mut changes = self.store.new_changes();
            let stored = resource::find::<Silence>(&self.store, silence.name.as_str()).await?;
            let mut next = stored.value.clone();
            next.end_ms = now_ms;
            next.start_ms = next.start_ms.min(now_ms);
            next.last_editor = editor.clone();
            next.revision += 1;
            next.update_ms = now_ms;
            let was = RevisedResource::Silence(stored.value.clone());
            revision::store_revision(&self.store, was, now_ms, false, &mut changes).await?;
            changes.update(&stored, &next);
            Ok((changes, ()))
        };
        commit(&self.store, Lane::Admin, decide).await?;
        Ok(())
    }

    async fn check_silence_count(&self) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        let mut pages = self.store.pages::<Silence>(Range::with_prefix(&[]));
        let mut count = 0;
        while let Some(page) = pages.next().await? {
            let current = page
                .iter()
                .filter(|it| it.value.state_at(now_ms) != SilenceState::Expired);
            count += current.count();
        }
        if count <= SILENCES_MAX {
            return Ok(());
        }
        Err(Error::Exhausted {
            message: format!("limit of {SILENCES_MAX} silences exceeded; end some first"),
            retry_after: None,
        })
    }
}

fn editor() -> Result<Name, Error> {
    let client = audit::current_actor().map_or_else(|| "config".to_owned(), |it| it.client.clone());
    Name::parse(&client).map_err(|why| Error::invalid("name", why))
}
