use fieldline_connectors::ConnectorConfig;
use fieldline_connectors::aws::{
    LambdaClient, LambdaConfig, SnsClient, SnsConfig, SqsClient, SqsConfig, SqsMessage,
};
use fieldline_connectors::egress::Egress;
use fieldline_connectors::sms::{SmsClient, SmsProviderConfig};
use fieldline_testkit::fakes::aws::{SECRET, is_signed};
use fieldline_testkit::fakes::pairs;
use fieldline_testkit::fakes::server::{FakeHttpServer, answer};
use serde_json::json;

#[tokio::test]
async fn sqs_messages_are_signed_and_complete() {
    let server = FakeHttpServer::start(|_| {
        let body = json!({"MessageId": "m-1", "MD5OfMessageBody": "b", "MD5OfMessageAttributes": "a"});
        answer(200, &[("x-amzn-RequestId", "r-1")], &body.to_string())
    })
    .await;
    let url = format!("{}/123456789012/queue", server.url);
    let mut configuration = json!({
        "queueType": "STANDARD", "delaySeconds": 5, "messageAttributes": {"k": "v"}, "region": "eu-central-1",
        "accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET, "queueUrlPattern": url,
    });
    let client = SqsClient::new(&SqsConfig::from_json(&configuration).unwrap(), &Egress::open()).unwrap();
    let attributes = pairs(&[("k", "v")]);
    let message = SqsMessage {
        queue_url: &url,
        body: r#"{"t":"ü"}"#,
        attributes: &attributes,
        deduplication_id: "d",
        group_id: "g",
    };
    let outcome = client.send(&message).await.unwrap();
    let expected = [
        ("messageId", "m-1"),
        ("requestId", "r-1"),
        ("messageBodyMd5", "b"),
        ("messageAttributesMd5", "a"),
    ];
    assert_eq!(outcome.metadata, pairs(&expected));
    let request = server.last();
    is_signed(&request, "eu-central-1", "sqs");
    assert_eq!(request.header("x-amz-target"), "AmazonSQS.SendMessage");
    assert_eq!(
        request.json(),
        json!({
            "QueueUrl": url, "MessageBody": "{\"t\":\"ü\"}", "DelaySeconds": 5,
            "MessageAttributes": {"k": {"DataType": "String", "StringValue": "v"}},
        })
    );

    configuration["queueType"] = json!("FIFO");
    let client = SqsClient::new(&SqsConfig::from_json(&configuration).unwrap(), &Egress::open()).unwrap();
    client.send(&message).await.unwrap();
    let body = server.last().json();
    assert_eq!(
        (&body["MessageDeduplicationId"], &body["MessageGroupId"]),
        (&json!("d"), &json!("g"))
    );
    assert!(body.get("DelaySeconds").is_none());
}

#[tokio::test]
async fn sqs_refusals_keep_the_words_of_the_service() {
    let refusal = json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no such queue"});
    let server = FakeHttpServer::always(400, refusal).await;
    let configuration = json!({"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET});
    let client = SqsClient::new(&SqsConfig::from_json(&configuration).unwrap(), &Egress::open()).unwrap();
    let url = format!("{}/q", server.url);
    let message = SqsMessage {
        queue_url: &url,
        body: "x",
        attributes: &[],
        deduplication_id: "",
        group_id: "",
    };
    let error = client.send(&message).await.unwrap_err();
    let expected =
        "no such queue (Service: AmazonSQS; Status Code: 400; Error Code: QueueDoesNotExist; Request ID: )";
    assert_eq!(error.metadata, pairs(&[("error", expected)]));
}

const PUBLISHED: &str = "<PublishResponse><PublishResult><MessageId>m-2</MessageId></PublishResult>\
                         <ResponseMetadata><RequestId>r-2</RequestId></ResponseMetadata></PublishResponse>";

#[tokio::test]
async fn sns_publishes_to_topics_and_phones() {
    let server = FakeHttpServer::start(|_| answer(200, &[], PUBLISHED)).await;
    let keys = json!({"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET, "region": "us-east-1"});
    let client = SnsClient::with_endpoint(
        &SnsConfig::from_json(&keys).unwrap(),
        Some(&server.url),
        &Egress::open(),
    )
    .unwrap();
    let outcome = client
        .send("arn:aws:sns:us-east-1:1:T", "a & b = ü")
        .await
        .unwrap();
    assert_eq!(
        outcome.metadata,
        pairs(&[("messageId", "m-2"), ("requestId", "r-2")])
    );
    let request = server.last();
    is_signed(&request, "us-east-1", "sns");
    let expected = [
        ("Action", "Publish"),
        ("Version", "2010-03-31"),
        ("TopicArn", "arn:aws:sns:us-east-1:1:T"),
        ("Message", "a & b = ü"),
    ];
    assert_eq!(request.form(), pairs(&expected));

    let mut provider = keys.clone();
    provider["type"] = json!("AWS_SNS");
    let provider = SmsProviderConfig::from_json(&provider).unwrap();
    let sms = SmsClient::with_endpoint(&provider, Some(&server.url), &Egress::open()).unwrap();
    let (segments, _) = sms.send("+4912345, +4967890", "\"line\\nline\"").await.unwrap();
    assert_eq!((segments, server.count()), (2, 3));
    let request = server.last();
    is_signed(&request, "us-east-1", "sns");
    let form = request.form();
    assert!(form.contains(&("PhoneNumber".to_owned(), "+4967890".to_owned())));
    assert!(form.contains(&("Message".to_owned(), "line\nline".to_owned())));
    let error = sms.send("12345", "x").await.unwrap_err();
    assert!(error.message.contains("E.164"), "{error}");
}

#[tokio::test]
async fn lambda_results_become_the_body() {
    let server = FakeHttpServer::start(|request| {
        let headers = [("x-amzn-RequestId", "r-3"), ("X-Amz-Function-Error", "Unhandled")];
        if request.body.contains("bad") {
            answer(200, &headers, r#"{"errorMessage":"oops"}"#)
        } else {
            answer(200, &headers[..1], r#"{"ok":1}"#)
        }
    })
    .await;
    let mut configuration = json!({
        "accessKey": "AKIDEXAMPLE", "secretKey": SECRET, "region": "us-east-1", "functionName": "f",
        "tellFailureIfFuncThrowsExc": true,
    });
    let config = LambdaConfig::from_json(&configuration).unwrap();
    let client = LambdaClient::with_endpoint(&config, Some(&server.url), &Egress::open()).unwrap();
    let function = "arn:aws:lambda:us-east-1:1:function:f";
    let outcome = client.send(function, " ", r#"{"t":1}"#).await.unwrap();
    assert_eq!(outcome.body.as_deref(), Some(r#"{"ok":1}"#));
    assert_eq!(outcome.metadata, pairs(&[("requestId", "r-3")]));
    let request = server.last();
    is_signed(&request, "us-east-1", "lambda");
    assert_eq!(
        request.target,
        "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aus-east-1%3A1%3Afunction%3Af/invocations?Qualifier=%24LATEST"
    );
    assert_eq!(
        (request.header("x-amz-invocation-type"), request.body.as_str()),
        ("RequestResponse", r#"{"t":1}"#)
    );

    let error = client.send("f", "v1", "\"bad\"").await.unwrap_err();
    assert_eq!(
        error.metadata,
        pairs(&[("error", r#"{"errorMessage":"oops"}"#), ("requestId", "r-3")])
    );
    configuration["tellFailureIfFuncThrowsExc"] = json!(false);
    let config = LambdaConfig::from_json(&configuration).unwrap();
    let client = LambdaClient::with_endpoint(&config, Some(&server.url), &Egress::open()).unwrap();
    let outcome = client.send("f", "v1", "\"bad\"").await.unwrap();
    assert_eq!(outcome.body.as_deref(), Some(r#"{"errorMessage":"oops"}"#));
}
