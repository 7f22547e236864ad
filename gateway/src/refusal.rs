//! Responses for a list whose items were all rejected. Over REST, such a response is an error, so
//! that a client that checks only the status notices it. It has the usual members in addition to
//! those of an error.

use bellwether_proto::{
    cloud::EventStatusResult,
    v1::{AnnotateResponse, SetStatusResponse},
};
use prost::Message as _;
use serde_json::{Map, Value};
use tonic::Code;

pub(crate) fn all_rejected_message(grpc_path: &str, answer: &[u8]) -> Option<String> {
    match grpc_path {
        "/zenoss.cloud.DataReceiverService/PutEvents" => {
            let result = EventStatusResult::decode(answer).ok()?;
            (result.failed > 0 && result.succeeded == 0).then_some(result.message)
        }
        "/bellwether.v1.EventManagementService/Annotate" => {
            let results = AnnotateResponse::decode(answer).ok()?.annotation_responses;
            let results = results.into_iter().map(|it| (it.success, it.error));
            all_failed_message("annotations", results)
        }
        "/bellwether.v1.EventManagementService/SetStatus" => {
            let results = SetStatusResponse::decode(answer).ok()?.status_responses;
            let results = results.into_iter().map(|it| (it.success, it.error));
            all_failed_message("statuses", results)
        }
        _ => None,
    }
}

fn all_failed_message(
    list: &str,
    results: impl ExactSizeIterator<Item = (Option<bool>, String)>,
) -> Option<String> {
    let total = results.len();
    let mut errors = Vec::with_capacity(total);
    for (success, error) in results {
        if success != Some(false) {
            return None;
        }
        errors.push(error);
    }
    let first = errors.first()?;
    Some(format!(
        "{total} of {total} {list} were rejected; {list}[0]: {first}"
    ))
}

pub(crate) fn refusal_body(answer: &[u8], message: String) -> Vec<u8> {
    let mut members: Map<String, Value> = serde_json::from_slice(answer).unwrap_or_default();
    members.insert("code".into(), i32::from(Code::InvalidArgument).into());
    members.insert("message".into(), message.into());
    Value::Object(members).to_string().into()
}

#[cfg(test)]
mod tests {
    use bellwether_proto::v1::AnnotationResult;

    use super::*;

    #[test]
    fn list_is_rejected_only_if_every_entry_fails() {
        let put = "/zenoss.cloud.DataReceiverService/PutEvents";
        for (failed, succeeded, expected) in [(1, 0, true), (1, 1, false), (0, 0, false)] {
            let result = EventStatusResult {
                failed,
                succeeded,
                message: "a sentence".into(),
                ..EventStatusResult::default()
            };
            let found = all_rejected_message(put, &result.encode_to_vec());
            assert_eq!(found.is_some(), expected, "{failed} {succeeded}");
        }
        let annotate = "/bellwether.v1.EventManagementService/Annotate";
        for (successes, expected) in [
            (&[Some(false), Some(false)][..], true),
            (&[Some(false), Some(true)], false),
            (&[], false),
        ] {
            let results = successes.iter().map(|success| AnnotationResult {
                success: *success,
                ..AnnotationResult::default()
            });
            let answer = AnnotateResponse {
                annotation_responses: results.collect(),
            };
            let found = all_rejected_message(annotate, &answer.encode_to_vec());
            assert_eq!(found.is_some(), expected, "{successes:?}");
        }
        assert_eq!(
            all_rejected_message("/bellwether.v1.RuleService/GetRule", &[]),
            None
        );
    }
}
