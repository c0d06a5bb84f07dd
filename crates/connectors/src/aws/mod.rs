//! Amazon Web Services, by their HTTP interfaces.

mod client;
mod lambda;
mod signature;
mod sns;
mod sqs;

pub(crate) use client::{AwsClient, AwsRequest, AwsService};
pub use lambda::{LambdaClient, LambdaConfig};
pub use sns::{SnsClient, SnsConfig};
pub(crate) use sns::{publish_sms, sms_client};
pub use sqs::{SqsClient, SqsConfig, SqsMessage, SqsQueueType};
