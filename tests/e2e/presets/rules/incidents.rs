//! The rules of on-call services and issue trackers.

use serde_json::json;

use super::{
    ChangeKind, Rules, assert_has_summary, assert_opsgenie_request, assert_starts_with_summary,
    posted,
};

pub(super) const RULES: &[Rules] = &[
    Rules {
        file: "opsgenie",
        secret_path: "",
        secret: "GenieKey canary",
        accepts: (
            202,
            r#"{"result":"Request will be processed","requestId":"r"}"#,
        ),
        wrong: &[],
        check: |it, reported| assert_opsgenie_request(it, reported, "/v2/alerts"),
    },
    Rules {
        file: "jira-service-management",
        secret_path: "",
        secret: "GenieKey canary",
        accepts: (
            202,
            r#"{"result":"Request will be processed","requestId":"r"}"#,
        ),
        wrong: &[],
        check: |it, reported| {
            assert_opsgenie_request(it, reported, "/jsm/ops/integration/v2/alerts");
        },
    },
    Rules {
        file: "better-stack",
        secret_path: "/api/v1/incoming-webhook/canary",
        secret: "",
        accepts: (200, "{}"),
        wrong: &[],
        check: |it, reported| {
            let fields = [
                "alert_id",
                "title",
                "severity",
                "status",
                "acknowledged",
                "url",
            ];
            let body = posted(it, "/api/v1/incoming-webhook/canary", &fields);
            assert_starts_with_summary(&body["title"], 250);
            assert_eq!(body["status"], reported.choose("open", "closed"));
        },
    },
    Rules {
        file: "incident-io",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (
            202,
            r#"{"status":"success","message":"Event accepted for processing"}"#,
        ),
        wrong: &[],
        check: |it, reported| {
            let fields = [
                "title",
                "description",
                "source_url",
                "deduplication_key",
                "status",
                "metadata",
            ];
            let body = posted(it, "/v2/alert_events/http/SOURCE", &fields);
            assert_starts_with_summary(&body["title"], 250);
            assert_has_summary(&body["description"], 10_000);
            assert_eq!(body["status"], reported.choose("firing", "resolved"));
        },
    },
    Rules {
        file: "splunk-on-call",
        secret_path: "/integrations/generic/20131114/alert/canary/ops",
        secret: "",
        accepts: (200, r#"{"result":"success","entity_id":"e"}"#),
        wrong: &[],
        check: |it, reported| {
            let fields = [
                "entity_id",
                "entity_display_name",
                "message_type",
                "state_message",
                "monitoring_tool",
            ];
            let path = "/integrations/generic/20131114/alert/canary/ops";
            let body = posted(it, path, &fields);
            assert_has_summary(&body["state_message"], 20_480);
            assert_eq!(
                body["message_type"],
                reported.choose("CRITICAL", "RECOVERY")
            );
        },
    },
    Rules {
        file: "grafana-oncall",
        secret_path: "/integrations/v1/formatted_webhook/canary/",
        secret: "",
        accepts: (200, "Ok."),
        wrong: &[],
        check: |it, reported| {
            let fields = [
                "alert_uid",
                "title",
                "state",
                "message",
                "link_to_upstream_details",
            ];
            let body = posted(it, "/integrations/v1/formatted_webhook/canary/", &fields);
            assert_has_summary(&body["message"], 10_000);
            assert_eq!(body["state"], reported.choose("alerting", "ok"));
        },
    },
    Rules {
        file: "squadcast",
        secret_path: "/v2/incidents/api/canary",
        secret: "",
        accepts: (202, ""),
        wrong: &[],
        check: |it, reported| {
            let fields = ["message", "description", "status", "event_id", "tags"];
            let body = posted(it, "/v2/incidents/api/canary", &fields);
            assert_has_summary(&body["description"], 10_000);
            assert_eq!(body["status"], reported.choose("trigger", "resolve"));
        },
    },
    Rules {
        file: "github-issue",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (201, r#"{"number":7}"#),
        wrong: &[],
        check: |it, reported| {
            assert_eq!(it.header("authorization"), "Bearer canary");
            if reported == ChangeKind::Closing {
                assert_eq!(it.path, "/repos/OWNER/REPOSITORY/issues/7");
                return;
            }
            let fields = ["title", "body", "labels"];
            let body = posted(it, "/repos/OWNER/REPOSITORY/issues", &fields);
            assert_starts_with_summary(&body["title"], 256);
            assert_has_summary(&body["body"], 65_536);
            assert_eq!(body["labels"], json!(["critical"]));
        },
    },
    Rules {
        file: "gitlab-issue",
        secret_path: "",
        secret: "canary",
        accepts: (201, r#"{"id":1,"iid":7}"#),
        wrong: &[],
        check: |it, reported| {
            assert_eq!(it.header("private-token"), "canary");
            if reported == ChangeKind::Closing {
                assert_eq!(it.path, "/api/v4/projects/PROJECT/issues/7");
                return;
            }
            let fields = ["title", "description", "labels"];
            let body = posted(it, "/api/v4/projects/PROJECT/issues", &fields);
            assert_starts_with_summary(&body["title"], 255);
            assert_has_summary(&body["description"], 65_536);
        },
    },
    Rules {
        file: "zendesk",
        secret_path: "",
        secret: "Basic canary",
        accepts: (201, r#"{"ticket":{"id":35436}}"#),
        wrong: &[],
        check: |it, reported| {
            assert_eq!(it.header("authorization"), "Basic canary");
            let end = reported.choose("", "/35436");
            assert_eq!(it.path, format!("/api/v2/tickets{end}"));
            let ticket = &it.json()["ticket"];
            assert_has_summary(&ticket["comment"]["body"], 65_536);
            assert_eq!(ticket["comment"]["public"], false);
        },
    },
    Rules {
        file: "jira-issue",
        secret_path: "",
        secret: "Basic canary",
        accepts: (201, r#"{"id":"10000","key":"OPS-24"}"#),
        wrong: &[(
            400,
            r#"{"errorMessages":[],"errors":{"project":"valid project is required"}}"#,
        )],
        check: |it, reported| {
            assert_eq!(it.header("authorization"), "Basic canary");
            if reported == ChangeKind::Closing {
                let path = "/rest/api/2/issue/OPS-24/transitions";
                let body = posted(it, path, &["transition"]);
                assert_eq!(body["transition"], json!({"id": "31"}));
                return;
            }
            let body = posted(it, "/rest/api/2/issue", &["fields"]);
            let fields = &body["fields"];
            assert_eq!(fields["project"], json!({"key": "OPS"}));
            assert_eq!(fields["issuetype"], json!({"name": "Task"}));
            assert_eq!(fields["labels"], json!(["critical"]));
            assert_starts_with_summary(&fields["summary"], 255);
            assert!(!fields["summary"].as_str().unwrap().contains('\n'));
            assert_has_summary(&fields["description"], 32_767);
        },
    },
];
