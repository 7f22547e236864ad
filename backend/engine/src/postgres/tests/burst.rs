//! Tests of errors that must roll back a transaction whose COMMIT is already sent.

use super::{
    super::{
        Address,
        burst::{self, Outcome},
        error::CommitErrorKind,
        plan::{self, Token},
        query::Query,
        session::{Role, Session},
        set::EncodedSet,
    },
    fresh, open,
};
use crate::{
    Engine,
    change::{Action, ApplyResult, Change, Expect, Lane},
    kind::Kind,
};

const TOKEN: Token = Token {
    writer: [7; 16],
    epoch: 1,
    batch: 1,
};

fn insert(kind: Kind, key: &[u8]) -> Change {
    Change::new(kind, key, Expect::Absent, Action::Put(key.to_vec()))
}

async fn registered(address: &Address) -> Session {
    let session = Session::open(address, Role::Writer).await.unwrap();
    let statement = session.prepare(Query::Register).await.unwrap();
    let (writer, node) = (&TOKEN.writer[..], None::<&[u8]>);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&writer, &node];
    session.client.query(&statement, &parameters).await.unwrap();
    session
}

async fn send(session: &Session, token: Token, set: crate::ChangeSet) -> Outcome {
    let set = EncodedSet::new(set).unwrap();
    burst::send_statements(session, &plan::plan(&[&set], token)).await
}

fn with_new(other: Change) -> crate::ChangeSet {
    vec![insert(Kind::Occurrence, b"new"), other].into()
}

/// Returns sets that must not be committed after the rule `r` has been created.
fn wrong(made: ApplyResult) -> [(&'static str, Token, crate::ChangeSet); 6] {
    let fine = || with_new(insert(Kind::Delivery, b"d"));
    let rule = |expect, action| with_new(Change::new(Kind::Rule, b"r", expect, action));
    let other = Expect::Version(made.version + 1);
    let put = || Action::Put(vec![1]);
    let epoch = Token { epoch: 0, ..TOKEN };
    let writer = Token {
        writer: [8; 16],
        ..TOKEN
    };
    let behind = crate::ChangeSet {
        rests_on: Some(made.position.previous()),
        ..fine()
    };
    [
        ("an old epoch", epoch, fine()),
        ("a writer that is not there", writer, fine()),
        ("a fence behind", TOKEN, behind),
        ("another version", TOKEN, rule(other, put())),
        ("what is there", TOKEN, rule(Expect::Absent, put())),
        ("a checked version", TOKEN, rule(other, Action::Check)),
    ]
}

#[tokio::test]
async fn stale_epoch_fence_or_expectation_rolls_back_the_set() {
    let Some(address) = fresh().await else { return };
    let engine = open(&address).await;
    let session = registered(&address).await;
    let defines = Change {
        defines: true,
        ..insert(Kind::Rule, b"r")
    };
    let made = engine.apply(Lane::Admin, vec![defines].into()).await;
    let made = made.unwrap();
    for (what, token, set) in wrong(made) {
        let outcome = send(&session, token, set).await;
        let is_rolled_back = matches!(outcome, Outcome::RolledBack(CommitErrorKind::Unexpected));
        assert!(is_rolled_back, "{what}: {outcome:?}");
        let rows = engine.get(Kind::Occurrence, &[b"new".to_vec()]).await;
        assert_eq!(rows.unwrap(), [None], "{what}");
        assert_eq!(engine.log_head().await.unwrap(), made.position, "{what}");
    }
    let fine = send(&session, TOKEN, with_new(insert(Kind::Delivery, b"d"))).await;
    assert!(matches!(fine, Outcome::Committed(it) if it.position == made.position.next()));
}
