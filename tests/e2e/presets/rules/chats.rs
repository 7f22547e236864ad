//! The rules of chats.

use serde_json::json;

use super::{
    Rules, SHOWN, assert_buttons, assert_has_summary, fielded, form, posted, with_buttons,
};

pub(super) const RULES: &[Rules] = &[
    Rules {
        file: "discord",
        secret_path: "/api/webhooks/1/canary",
        secret: "",
        accepts: (204, ""),
        wrong: &[
            (404, r#"{"message":"Unknown Channel","code":10003}"#),
            (
                400,
                r#"{"message":"Webhooks posted to forum channels must have a thread_name or thread_id","code":220001}"#,
            ),
        ],
        check: |it, _| {
            let body = posted(
                it,
                "/api/webhooks/1/canary",
                &["content", "allowed_mentions"],
            );
            assert_has_summary(&body["content"], 2_000);
            assert_eq!(body["allowed_mentions"], json!({"parse": []}));
        },
    },
    Rules {
        file: "mattermost",
        secret_path: "/hooks/canary",
        secret: "",
        accepts: (200, "ok"),
        wrong: &[
            (
                400,
                r#"{"id":"web.incoming_webhook.invalid.app_error","message":"Invalid webhook.","status_code":400}"#,
            ),
            (
                400,
                r#"{"id":"web.incoming_webhook.channel.app_error","message":"Couldn't find the channel.","status_code":400}"#,
            ),
        ],
        check: |it, _| assert_has_summary(&posted(it, "/hooks/canary", &["text"])["text"], 16_383),
    },
    Rules {
        file: "rocket-chat",
        secret_path: "/hooks/1/canary",
        secret: "",
        accepts: (200, r#"{"success":true}"#),
        wrong: &[(400, r#"{"success":false,"error":"invalid-channel"}"#)],
        check: |it, _| assert_has_summary(&posted(it, "/hooks/1/canary", &["text"])["text"], 5_000),
    },
    Rules {
        file: "google-chat",
        secret_path: "/v1/spaces/1/messages?key=k&token=canary&messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD",
        secret: "",
        accepts: (200, r#"{"name":"spaces/1/messages/1"}"#),
        wrong: &[(
            400,
            r#"{"error":{"code":400,"status":"NOT_FOUND","message":"Space not found"}}"#,
        )],
        check: |it, _| {
            let path = "/v1/spaces/1/messages?key=k&token=canary&messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD";
            let body = posted(it, path, &["text", "thread"]);
            assert_has_summary(&body["text"], 8_000);
            assert!(body["thread"]["threadKey"].as_str().unwrap().len() > 10);
        },
    },
    Rules {
        file: "slack-webhook",
        secret_path: "/services/T0/B0/canary",
        secret: "",
        accepts: (200, "ok"),
        wrong: &[(400, "channel_is_archived"), (400, "no_team")],
        check: |it, _| {
            let body = posted(it, "/services/T0/B0/canary", &["text", "blocks"]);
            let text = &body["blocks"][0]["text"];
            assert_eq!(text["type"], "plain_text");
            assert_has_summary(&text["text"], 3_000);
        },
    },
    Rules {
        file: "webex",
        secret_path: "/v1/webhooks/incoming/canary",
        secret: "",
        accepts: (204, ""),
        wrong: &[],
        check: |it, _| {
            assert_has_summary(
                &posted(it, "/v1/webhooks/incoming/canary", &["text"])["text"],
                7_000,
            );
        },
    },
    Rules {
        file: "zulip",
        secret_path: "",
        secret: "Basic canary",
        accepts: (200, r#"{"result":"success","msg":"","id":42}"#),
        wrong: &[
            (
                400,
                r#"{"result":"error","msg":"Channel 'ops' does not exist","code":"STREAM_DOES_NOT_EXIST"}"#,
            ),
            (
                400,
                r#"{"result":"error","msg":"Not authorized to send to channel 'ops'","code":"BAD_REQUEST"}"#,
            ),
        ],
        check: |it, _| {
            assert_eq!(it.header("authorization"), "Basic canary");
            let fields = form(it, "/api/v1/messages");
            assert_eq!(
                fields.keys().collect::<Vec<_>>(),
                ["content", "to", "topic", "type"]
            );
            assert_eq!(
                (fields["type"].as_str(), fields["to"].as_str()),
                ("stream", "ops")
            );
            assert_has_summary(&fields["content"].as_str().into(), 10_000);
        },
    },
    Rules {
        file: "telegram",
        secret_path: "/bot1:canary/sendMessage",
        secret: "",
        accepts: (200, r#"{"ok":true,"result":{"message_id":1}}"#),
        wrong: &[
            (
                400,
                r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#,
            ),
            (
                400,
                r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-100}}"#,
            ),
            (
                400,
                r#"{"ok":false,"error_code":400,"description":"Bad Request: not enough rights to send text messages to the chat"}"#,
            ),
            (
                400,
                r#"{"ok":false,"error_code":400,"description":"Bad Request: message thread not found"}"#,
            ),
            (
                400,
                r#"{"ok":false,"error_code":400,"description":"Bad Request: TOPIC_DELETED"}"#,
            ),
        ],
        check: |it, _| {
            let fields = ["chat_id", "text", "link_preview_options"];
            assert_has_summary(
                &posted(it, "/bot1:canary/sendMessage", &fields)["text"],
                4_096,
            );
        },
    },
    Rules {
        file: "matrix",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (200, r#"{"event_id":"$1"}"#),
        wrong: &[(
            400,
            r#"{"errcode":"M_FORBIDDEN","error":"User not in room"}"#,
        )],
        check: |it, _| {
            let room = "/_matrix/client/v3/rooms/!ROOM:example.net/send/m.room.message/";
            assert_eq!(it.method, "PUT");
            assert_eq!(it.path, format!("{room}{}", it.delivery_id()));
            let body = fielded(it, &["msgtype", "body"]);
            assert_eq!(body["msgtype"], "m.text");
            assert_has_summary(&body["body"], 10_000);
        },
    },
    Rules {
        file: "discord-edit",
        secret_path: "/api/webhooks/1/canary?wait=true",
        secret: "",
        accepts: (200, r#"{"id":"11"}"#),
        wrong: &[(404, r#"{"message":"Unknown Channel","code":10003}"#)],
        check: |it, reported| {
            let path = "/api/webhooks/1/canary?wait=true";
            let edit = "/api/webhooks/1/canary/messages/11?wait=true";
            assert_eq!(it.path, reported.choose(path, edit));
            let body = fielded(it, &["content", "allowed_mentions"]);
            assert_has_summary(&body["content"], 2_000);
            assert_eq!(body["allowed_mentions"], json!({"parse": []}));
        },
    },
    Rules {
        file: "telegram-edit",
        secret_path: "/bot1:canary/sendMessage",
        secret: "",
        accepts: (
            200,
            r#"{"ok":true,"result":{"message_id":4,"chat":{"id":-100}}}"#,
        ),
        wrong: &[(
            400,
            r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#,
        )],
        check: |it, reported| {
            let path = reported.choose("/bot1:canary/sendMessage", "/bot1:canary/editMessageText");
            assert_eq!(it.path, path);
            assert_has_summary(&it.json()["text"], 4_096);
        },
    },
    Rules {
        file: "mattermost-bot",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (201, r#"{"id":"p1"}"#),
        wrong: &[(
            403,
            r#"{"id":"api.context.permissions.app_error","status_code":403}"#,
        )],
        check: |it, reported| {
            assert_eq!(it.header("authorization"), "Bearer canary");
            let path = reported.choose("/api/v4/posts", "/api/v4/posts/p1/patch");
            assert_eq!(it.path, path);
            assert_has_summary(&it.json()["message"], 16_383);
        },
    },
    Rules {
        file: "rocket-chat-bot",
        secret_path: "",
        secret: "canary",
        accepts: (200, r#"{"success":true,"message":{"_id":"m1","rid":"r1"}}"#),
        wrong: &[(400, r#"{"success":false,"error":"invalid-channel"}"#)],
        check: |it, reported| {
            assert_eq!(it.header("x-auth-token"), "canary");
            let path = reported.choose("/api/v1/chat.postMessage", "/api/v1/chat.update");
            assert_eq!(it.path, path);
            assert_has_summary(&it.json()["text"], 5_000);
        },
    },
    Rules {
        file: "webex-bot",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (200, r#"{"id":"m1","roomId":"ROOM"}"#),
        wrong: &[],
        check: |it, reported| {
            assert_eq!(it.header("authorization"), "Bearer canary");
            assert_eq!(it.path, reported.choose("/v1/messages", "/v1/messages/m1"));
            assert_eq!(it.method, reported.choose("POST", "PUT"));
            assert_has_summary(&fielded(it, &["roomId", "text"])["text"], 7_439);
        },
    },
    Rules {
        file: "line",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (200, r#"{"sentMessages":[{"id":"1","quoteToken":"q"}]}"#),
        wrong: &[(
            400,
            r#"{"message":"The property, 'to', in the request body is invalid (line: -, column: -)"}"#,
        )],
        check: |it, _| {
            assert_eq!(it.header("authorization"), "Bearer canary");
            let body = posted(it, "/v2/bot/message/push", &["to", "messages"]);
            assert_eq!(body["messages"][0]["type"], "text");
            assert_has_summary(&body["messages"][0]["text"], 5_000);
        },
    },
    Rules {
        file: "threema",
        secret_path: "/send_simple?secret=canary",
        secret: "",
        accepts: (200, "0123456789abcdef"),
        wrong: &[],
        check: |it, _| {
            let fields = form(it, "/send_simple?secret=canary");
            assert_eq!(fields.keys().collect::<Vec<_>>(), ["from", "text", "to"]);
            assert_eq!((fields["from"].len(), fields["to"].len()), (8, 8));
            assert!(fields["text"].contains(SHOWN), "{fields:?}");
            assert!(fields["text"].len() <= 3_500);
        },
    },
    Rules {
        file: "wecom",
        secret_path: "/cgi-bin/webhook/send?key=canary",
        secret: "",
        accepts: (200, r#"{"errcode":0,"errmsg":"ok"}"#),
        wrong: &[(200, r#"{"errcode":93000,"errmsg":"invalid webhook url"}"#)],
        check: |it, _| {
            let body = posted(it, "/cgi-bin/webhook/send?key=canary", &["msgtype", "text"]);
            assert_eq!(body["msgtype"], "text");
            assert_has_summary(&body["text"]["content"], 2_048);
        },
    },
    Rules {
        file: "dingtalk",
        secret_path: "/robot/send?access_token=canary",
        secret: "",
        accepts: (200, r#"{"errcode":0,"errmsg":"ok"}"#),
        wrong: &[
            (200, r#"{"errcode":300001,"errmsg":"token is not exist"}"#),
            (
                200,
                r#"{"errcode":310000,"errmsg":"keywords not in content"}"#,
            ),
        ],
        check: |it, _| {
            let body = posted(
                it,
                "/robot/send?access_token=canary",
                &["msgtype", "text", "at"],
            );
            assert_eq!(body["msgtype"], "text");
            assert_eq!(body["at"], json!({"isAtAll": false}));
            let text = body["text"]["content"].as_str().unwrap();
            assert!(text.starts_with("Alert: "), "{text}");
            assert_has_summary(&body["text"]["content"], 20_000);
        },
    },
    Rules {
        file: "feishu",
        secret_path: "/open-apis/bot/v2/hook/canary",
        secret: "",
        accepts: (200, r#"{"code":0,"msg":"success","data":{}}"#),
        wrong: &[(
            200,
            r#"{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}"#,
        )],
        check: |it, _| {
            let body = posted(
                it,
                "/open-apis/bot/v2/hook/canary",
                &["msg_type", "content"],
            );
            assert_eq!(body["msg_type"], "text");
            assert_has_summary(&body["content"]["text"], 20_000);
        },
    },
    Rules {
        file: "discord-buttons",
        secret_path: "/api/webhooks/1/canary?wait=true",
        secret: "",
        accepts: (200, r#"{"id":"1"}"#),
        wrong: &[(404, r#"{"message":"Unknown Webhook","code":10015}"#)],
        check: |it, reported| {
            let fields = with_buttons(&["content", "allowed_mentions"], "components", reported);
            let body = posted(it, "/api/webhooks/1/canary?wait=true", &fields);
            assert_has_summary(&body["content"], 2_000);
            let buttons = body["components"][0]["components"].as_array();
            assert_buttons(buttons, "custom_id", 100);
        },
    },
    Rules {
        file: "slack-buttons",
        secret_path: "/services/T0/B0/canary",
        secret: "",
        accepts: (200, "ok"),
        wrong: &[(400, "channel_is_archived")],
        check: |it, _| {
            let body = posted(it, "/services/T0/B0/canary", &["text", "blocks"]);
            assert_has_summary(&body["blocks"][0]["text"]["text"], 3_000);
            let buttons = body["blocks"][1]["elements"].as_array();
            assert_buttons(buttons, "value", 2_000);
        },
    },
    Rules {
        file: "telegram-buttons",
        secret_path: "/bot1:canary/sendMessage",
        secret: "",
        accepts: (200, r#"{"ok":true,"result":{"message_id":1}}"#),
        wrong: &[(
            400,
            r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#,
        )],
        check: |it, reported| {
            let fields = ["chat_id", "text", "link_preview_options"];
            let fields = with_buttons(&fields, "reply_markup", reported);
            let body = posted(it, "/bot1:canary/sendMessage", &fields);
            assert_has_summary(&body["text"], 4_096);
            let buttons = body["reply_markup"]["inline_keyboard"][0].as_array();
            assert_buttons(buttons, "callback_data", 64);
        },
    },
];
