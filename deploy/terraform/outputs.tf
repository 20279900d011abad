locals {
  outputs   = aws_cloudformation_stack.guards.outputs
  functions = [for arn in values(local.outputs) : arn if can(regex("^arn:[^:]+:lambda:[^:]+:[0-9]+:function:", arn))]
}

output "outputs" {
  description = "All outputs of the stack, by their names in the template. Those of your template.extra.yaml are here, too."
  value       = local.outputs
}

output "function_arns" {
  description = "The ARN of each function, by its name without name_prefix, such as posts-guard."
  value       = { for arn in local.functions : trimprefix(split(":", arn)[6], lookup(local.values, "NamePrefix", "")) => arn }
}

output "invoke_policy_arn" {
  description = "Attach this policy to the role of a backend that invokes the guards."
  value       = lookup(local.outputs, "InvokePolicyArn", null)
}

output "limiter_policy_arn" {
  description = "Attach this policy to the role of an app that decides in its own process, or has an agent beside it."
  value       = lookup(local.outputs, "LimiterPolicyArn", null)
}

output "agent_layer_arns" {
  description = "The layer of the agent for a function, by the architecture: arm64 or x86_64. With the wrong one, each start fails."
  value = {
    arm64  = lookup(local.outputs, "AgentLayerArnArm64", null)
    x86_64 = lookup(local.outputs, "AgentLayerArnX86", null)
  }
}

output "agent_environment" {
  description = "The variables of a function with the layer of the agent. An app that decides in its own process needs those without GUARDS_AGENT."
  value = {
    GUARDS_AGENT             = "http://127.0.0.1:2774"
    GUARDS_TABLE_NAME        = lookup(local.outputs, "TableName", null)
    GUARDS_METRICS_NAMESPACE = lookup(local.outputs, "MetricsNamespace", null)
  }
}

output "table_name" {
  description = "The table."
  value       = lookup(local.outputs, "TableName", null)
}

output "metrics_namespace" {
  description = "The namespace of the metrics in CloudWatch."
  value       = lookup(local.outputs, "MetricsNamespace", null)
}

output "log_group_name" {
  description = "The group of logs of all functions."
  value       = lookup(local.outputs, "LogGroupName", null)
}

output "dashboard_name" {
  description = "The dashboard. null if dashboard is false."
  value       = lookup(local.outputs, "DashboardName", null)
}

output "ready_queue_arn" {
  description = "The queue that gets a delayed job at its time, for the policy of your consumer. null without delayed jobs."
  value       = lookup(local.outputs, "ReadyQueueArn", null)
}

output "ready_queue_url" {
  description = "The URL of the same queue."
  value       = lookup(local.outputs, "ReadyQueueUrl", null)
}

output "delayed_dead_letter_queue_arn" {
  description = "The queue of the delayed jobs that failed too often. null without delayed jobs."
  value       = lookup(local.outputs, "DelayedDeadLetterQueueArn", null)
}
