//! Pipelined transactions: all statements are sent before the first response arrives.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::time::timeout;
use tokio_postgres::{Error, Row, Statement, types::ToSql};

use super::{
    error::{self, CommitErrorKind},
    plan::Call,
    query::Query,
    session::Session,
};
use crate::{
    change::ApplyResult, error::EngineError, limits::STORE_COMMIT_TIME_MAX, position::LogPosition,
};

#[derive(Debug)]
pub(super) enum Outcome {
    Committed(ApplyResult),
    RolledBack(CommitErrorKind),
    Doubt(String),
}

type StatementResponse = Result<Vec<Row>, Error>;
type SendFuture<'a> = Pin<Box<dyn Future<Output = StatementResponse> + Send + 'a>>;

pub(super) async fn send_statements(session: &Session, calls: &[Call<'_>]) -> Outcome {
    let mut statements = Vec::with_capacity(calls.len());
    for call in calls {
        match session.prepare(call.query).await {
            Ok(statement) => statements.push(statement),
            // Not even BEGIN was sent.
            Err(error) => return Outcome::RolledBack(error::classify(&error)),
        }
    }
    let warnings = session.warning_count();
    let answers = timeout(
        STORE_COMMIT_TIME_MAX,
        await_transaction(session, calls, &statements),
    );
    let Ok(answers) = answers.await else {
        return Outcome::Doubt("the database did not respond to a commit".into());
    };
    classify_outcome(calls, answers, || session.warning_count() != warnings)
}

async fn await_transaction(
    session: &Session,
    calls: &[Call<'_>],
    statements: &[Statement],
) -> Vec<StatementResponse> {
    let client = &session.client;
    let simple = |text: &'static str| -> SendFuture<'_> {
        Box::pin(async move {
            client.batch_execute(text).await?;
            Ok(Vec::new())
        })
    };
    let parameters: Vec<Vec<&(dyn ToSql + Sync)>> = calls
        .iter()
        .map(|call| {
            let parameters = call.parameters.iter();
            parameters.map(|it| &**it as &(dyn ToSql + Sync)).collect()
        })
        .collect();
    let mut sent = vec![simple("BEGIN")];
    for (statement, parameters) in statements.iter().zip(&parameters) {
        sent.push(Box::pin(client.query(statement, parameters)));
    }
    let mut sent = PendingStatements::new(sent);
    // A failure to send is known immediately. The other statements must then not be committed.
    let is_whole = poll_fn(|cx| Poll::Ready(sent.poll_all(cx))).await;
    sent.push(simple(if is_whole { "COMMIT" } else { "ROLLBACK" }));
    poll_fn(|cx| {
        sent.poll_all(cx);
        sent.poll_responses()
    })
    .await
}

/// Statements whose responses are pending, in the order they were sent.
struct PendingStatements<'a> {
    sent: Vec<SendFuture<'a>>,
    answers: Vec<Option<StatementResponse>>,
}

impl<'a> PendingStatements<'a> {
    fn new(sent: Vec<SendFuture<'a>>) -> Self {
        let answers = sent.iter().map(|_| None).collect();
        Self { sent, answers }
    }

    fn push(&mut self, sent: SendFuture<'a>) {
        self.sent.push(sent);
        self.answers.push(None);
    }

    /// Sends the statements that were not sent yet. Returns false if anything has failed so far.
    fn poll_all(&mut self, cx: &mut Context<'_>) -> bool {
        for (sent, answer) in self.sent.iter_mut().zip(&mut self.answers) {
            if answer.is_none()
                && let Poll::Ready(found) = sent.as_mut().poll(cx)
            {
                *answer = Some(found);
            }
        }
        let mut answers = self.answers.iter().flatten();
        answers.all(Result::is_ok)
    }

    fn poll_responses(&mut self) -> Poll<Vec<StatementResponse>> {
        if self.answers.iter().any(Option::is_none) {
            return Poll::Pending;
        }
        Poll::Ready(self.answers.drain(..).flatten().collect())
    }
}

fn classify_outcome(
    calls: &[Call<'_>],
    answers: Vec<StatementResponse>,
    warned: impl Fn() -> bool,
) -> Outcome {
    let mut rows = Vec::with_capacity(answers.len());
    for answer in answers {
        match answer {
            Ok(found) => rows.push(found),
            // The first error decides: later ones only report that the transaction was aborted.
            Err(error) => {
                return match error::classify(&error) {
                    CommitErrorKind::Lost => Outcome::Doubt(error::describe(&error)),
                    other => Outcome::RolledBack(other),
                };
            }
        }
    }
    if warned() {
        return Outcome::Doubt("the database sent a warning during a commit".into());
    }
    let answered = |query| {
        let at = calls.iter().position(|call| call.query == query)?;
        let number: i64 = rows.get(at + 1)?.first()?.try_get(0).ok()?;
        u64::try_from(number).ok()
    };
    match (answered(Query::Version), answered(Query::Step)) {
        (Some(version), Some(position)) => Outcome::Committed(ApplyResult {
            position: LogPosition::from_number(position),
            version,
        }),
        _ => Outcome::Doubt("the database returned no commit position".into()),
    }
}

impl Outcome {
    pub(super) fn session_is_usable(&self) -> bool {
        !matches!(
            self,
            Self::Doubt(_) | Self::RolledBack(CommitErrorKind::Lost)
        )
    }

    pub(super) fn rejection_error(meaning: CommitErrorKind) -> EngineError {
        match meaning {
            CommitErrorKind::Refused(error) => error,
            CommitErrorKind::Unexpected => EngineError::conflict(),
            CommitErrorKind::Passing => {
                EngineError::Unavailable("the database is busy with other writers".into())
            }
            CommitErrorKind::Lost => EngineError::Unavailable("the database is unreachable".into()),
        }
    }
}
