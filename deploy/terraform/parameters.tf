# The parameters of the template, as variables. go generate ./... writes this file from template.yaml.

variable "name_prefix" {
  description = "A prefix for the names of all functions, such as dev-. A second stack in the same account and region needs its own. The template's default is empty."
  type        = string
  default     = null

  validation {
    condition     = var.name_prefix == null ? true : can(regex("^([a-zA-Z0-9_-]{1,20}-)?$", var.name_prefix))
    error_message = "name_prefix must be nothing, or up to 20 letters, digits, hyphens and underscores, and a hyphen."
  }
}

variable "table_name" {
  description = "The name of the table. The table outlives the stack, so a second stack needs another name. The template's default is rateLimit."
  type        = string
  default     = null

  validation {
    condition     = var.table_name == null ? true : can(regex("^[a-zA-Z0-9_.-]{3,255}$", var.table_name))
    error_message = "table_name must be 3 to 255 letters, digits, dots, hyphens and underscores."
  }
}

variable "mode" {
  description = "enforce: refuse requests over the limit. shadow: count and report, but refuse nobody. off: allow everything without a request to the table. The template's default is enforce."
  type        = string
  default     = null

  validation {
    condition     = var.mode == null ? true : contains(["enforce", "shadow", "off"], var.mode)
    error_message = "mode must be enforce, shadow or off."
  }
}

variable "on_outage" {
  description = "What a guard does when the table does not answer in time. allow: each instance decides from its own memory. deny: the guard returns the error Unavailable. The template's default is allow."
  type        = string
  default     = null

  validation {
    condition     = var.on_outage == null ? true : contains(["allow", "deny"], var.on_outage)
    error_message = "on_outage must be allow or deny."
  }
}

variable "on_limit" {
  description = "How a guard refuses. answer: an answer with allowed=false. error: the error RateLimitExceeded. The template's default is answer."
  type        = string
  default     = null

  validation {
    condition     = var.on_limit == null ? true : contains(["answer", "error"], var.on_limit)
    error_message = "on_limit must be answer or error."
  }
}

variable "decision_timeout" {
  description = "How long one decision may take, including all attempts. At most 5s. The template's default is 1s."
  type        = string
  default     = null

  validation {
    condition     = var.decision_timeout == null ? true : can(regex("^([1-9][0-9]{0,2}|[1-4][0-9]{3}|5000)ms$|^([1-4](\\.[0-9]{1,3})?|5)s$", var.decision_timeout))
    error_message = "decision_timeout must be a duration of at most 5s, such as 250ms or 1.5s."
  }
}

variable "bypass_roles" {
  description = "Roles that are always allowed and never counted, separated by commas. Empty means no role. The template's default is admin."
  type        = string
  default     = null

  validation {
    condition     = var.bypass_roles == null ? true : can(regex("^([^,\\s]+(,[^,\\s]+)*)?$", var.bypass_roles))
    error_message = "bypass_roles must be roles separated by commas, without spaces."
  }
}

variable "system_log_level" {
  description = "Which lines Lambda itself writes to the log. WARN: only problems. INFO: also START, END and REPORT for each invocation, about 600 bytes together. The template's default is WARN."
  type        = string
  default     = null

  validation {
    condition     = var.system_log_level == null ? true : contains(["INFO", "WARN"], var.system_log_level)
    error_message = "system_log_level must be INFO or WARN."
  }
}

variable "cleanup_schedule" {
  description = "How often cleanup deletes expired items, every 1 to 30 minutes. A run takes at most 5 minutes, and runs never overlap, unless CleanupConcurrency is 0. With less than 5 minutes, a run that waits a minute for another one goes to CleanupDeadLetterQueue. The template's default is rate(5 minutes)."
  type        = string
  default     = null

  validation {
    condition     = var.cleanup_schedule == null ? true : can(regex("^rate\\((1 minute|([2-9]|[12][0-9]|30) minutes)\\)$", var.cleanup_schedule))
    error_message = "cleanup_schedule must be a rate of 1 to 30 minutes, such as rate(5 minutes)."
  }
}

variable "cleanup_concurrency" {
  description = "The number of instances reserved for cleanup. 1 means that runs never overlap. 0 reserves none, for an account whose quota is too small. Then two runs may overlap, which costs reads but does no harm. The template's default is 1."
  type        = number
  default     = null

  validation {
    condition     = var.cleanup_concurrency == null ? true : contains([0, 1], var.cleanup_concurrency)
    error_message = "cleanup_concurrency must be 0 or 1."
  }
}

variable "point_in_time_recovery" {
  description = "Keep the last 35 days of the table restorable. It holds the counts of all windows, such as a month's, and the live limits. The template's default is true."
  type        = bool
  default     = null
}

variable "deletion_protection" {
  description = "Protect the table from deletion by anybody. The template's default is true."
  type        = bool
  default     = null
}

variable "max_write_units_per_second" {
  description = "The most write units that the table uses in a second, which caps its cost. DynamoDB throttles requests above it, and the guards then decide as OnOutage says. 0 means only the account's own cap. The template's default is 0."
  type        = number
  default     = null

  validation {
    condition     = var.max_write_units_per_second == null ? true : var.max_write_units_per_second >= 0
    error_message = "max_write_units_per_second must be a number of at least 0."
  }
}

variable "max_read_units_per_second" {
  description = "The most read units that the table uses in a second. Each run of cleanup reads the whole table, with 12,800 units for each 100 MB. 0 means only the account's own cap. The template's default is 0."
  type        = number
  default     = null

  validation {
    condition     = var.max_read_units_per_second == null ? true : var.max_read_units_per_second >= 0
    error_message = "max_read_units_per_second must be a number of at least 0."
  }
}

variable "guard_concurrency" {
  description = "The number of instances reserved for each guard, which is also its maximum. With 0, none are reserved, and all guards share the account's instances. The function delayed-jobs always has at most 10 and reserves none. The template's default is 0."
  type        = number
  default     = null

  validation {
    condition     = var.guard_concurrency == null ? true : var.guard_concurrency >= 0 && var.guard_concurrency <= 10000
    error_message = "guard_concurrency must be a number from 0 to 10000."
  }
}

variable "ready_visibility_timeout" {
  description = "How many seconds SQS hides a job of the ready queue from others while your consumer runs it. 180 is 6 times the timeout of a consumer with 30 s. The template's default is 180."
  type        = number
  default     = null

  validation {
    condition     = var.ready_visibility_timeout == null ? true : var.ready_visibility_timeout >= 0 && var.ready_visibility_timeout <= 43200
    error_message = "ready_visibility_timeout must be a number from 0 to 43200."
  }
}

variable "log_retention_days" {
  description = "How many days logs are kept. CloudWatch keeps metrics longer. The template's default is 30."
  type        = number
  default     = null

  validation {
    condition     = var.log_retention_days == null ? true : contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653], var.log_retention_days)
    error_message = "log_retention_days must be 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827 or 3653."
  }
}

variable "alarm_topic_arn" {
  description = "An SNS topic that receives the alarms. Alarms can't be delivered to a topic encrypted with alias/aws/sns. Empty means no topic. The template's default is empty."
  type        = string
  default     = null

  validation {
    condition     = var.alarm_topic_arn == null ? true : can(regex("^(arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[a-zA-Z0-9_-]{1,256})?$", var.alarm_topic_arn))
    error_message = "alarm_topic_arn must be the ARN of an SNS topic, or nothing."
  }
}

variable "alarms" {
  description = "true: create the alarms, for $0.10 a month each. false: create none. The template's default is true."
  type        = bool
  default     = null
}

variable "dashboard" {
  description = "true: create the dashboard, for $3 a month. false: create none. The template's default is true."
  type        = bool
  default     = null
}

variable "metrics" {
  description = "Which metrics the guards write. activity: each for each activity. guard: each only once for a guard. off: none. A metric costs $0.30 a month. All alarms work with each choice. The template's default is activity."
  type        = string
  default     = null

  validation {
    condition     = var.metrics == null ? true : contains(["activity", "guard", "off"], var.metrics)
    error_message = "metrics must be activity, guard or off."
  }
}

variable "url_principal" {
  description = "Who may call the guards by URL, with requests signed for IAM. An account number, or the ARN of one role or user. Empty opens no URL. The template's default is empty."
  type        = string
  default     = null

  validation {
    condition     = var.url_principal == null ? true : can(regex("^([0-9]{12}|arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[a-zA-Z0-9+=,.@_/-]+)?$", var.url_principal))
    error_message = "url_principal must be an account number, or the ARN of a role or user."
  }
}

locals {
  # What is set, by the names in the template. null is not set.
  variables = {
    NamePrefix             = var.name_prefix
    TableName              = var.table_name
    Mode                   = var.mode
    OnOutage               = var.on_outage
    OnLimit                = var.on_limit
    DecisionTimeout        = var.decision_timeout
    BypassRoles            = var.bypass_roles
    SystemLogLevel         = var.system_log_level
    CleanupSchedule        = var.cleanup_schedule
    CleanupConcurrency     = var.cleanup_concurrency
    PointInTimeRecovery    = var.point_in_time_recovery
    DeletionProtection     = var.deletion_protection
    MaxWriteUnitsPerSecond = var.max_write_units_per_second
    MaxReadUnitsPerSecond  = var.max_read_units_per_second
    GuardConcurrency       = var.guard_concurrency
    ReadyVisibilityTimeout = var.ready_visibility_timeout
    LogRetentionDays       = var.log_retention_days
    AlarmTopicArn          = var.alarm_topic_arn
    Alarms                 = var.alarms
    Dashboard              = var.dashboard
    Metrics                = var.metrics
    UrlPrincipal           = var.url_principal
  }
}
