//! Tries of triggers: of the last day done immediately, of a longer time never done.

use bellwether_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::State;

type Message = Result<v1::TestTriggerWithProgressResponse, Status>;
/// Closed as soon as the console does not listen any more.
pub(crate) type ProgressSender = mpsc::Sender<Message>;
pub(super) type Told = ReceiverStream<Message>;

pub(super) fn tell(state: &mut State, request: Request<v1::TestTriggerRequest>) -> Response<Told> {
    let span = request.into_inner().time_range;
    let (progress_sender, message) = mpsc::channel(4);
    let progress = v1::TestTriggerWithProgressResponse {
        matched: Some(12),
        matched_by_saved: Some(3),
        scanned: Some(60),
        reached_time: Some(1),
        time_range: span,
        result: None,
    };
    progress_sender.try_send(Ok(progress.clone())).unwrap();
    if span.is_some() {
        state.tries.push(progress_sender);
        return Response::new(ReceiverStream::new(message));
    }
    let result = v1::TestTriggerResponse {
        matched: Some(37),
        matched_by_saved: Some(4),
        scanned: Some(100),
        occurrences: state.events.clone(),
        ..v1::TestTriggerResponse::default()
    };
    let last = v1::TestTriggerWithProgressResponse {
        result: Some(result),
        ..progress
    };
    progress_sender.try_send(Ok(last)).unwrap();
    Response::new(ReceiverStream::new(message))
}
