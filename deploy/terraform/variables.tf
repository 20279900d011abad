# The variables of the module itself. parameters.tf has those of the template.

variable "template" {
  description = "The file that sam package wrote. It names the code in S3."
  type        = string

  validation {
    condition     = can(yamldecode(file(var.template)).Resources)
    error_message = "template must be the file that sam package wrote."
  }
  validation {
    condition = alltrue([
      for r in values(try(yamldecode(file(var.template)).Resources, {})) :
      try(startswith(try(r.Properties.CodeUri, r.Properties.ContentUri), "s3://"), true)
    ])
    error_message = "template has code that is not in S3. Run sam package, and take the file that it wrote."
  }
}

variable "bucket" {
  description = "The bucket for the template, such as the one that sam package uses. It must be in the stack's region."
  type        = string
}

variable "stack_name" {
  description = "The name of the stack in CloudFormation."
  type        = string
  default     = "guards"
}

variable "parameters" {
  description = "Values for the parameters of template.extra.yaml, by their names."
  type        = map(string)
  default     = {}
}

variable "capabilities" {
  description = "What the template may do. A template.extra.yaml with a role that has a name needs CAPABILITY_NAMED_IAM, too."
  type        = set(string)
  default     = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
}

variable "iam_role_arn" {
  description = "The role with which CloudFormation makes the stack. By default, it uses the permissions of the caller."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags for the stack. CloudFormation gives them to its resources."
  type        = map(string)
  default     = {}
}
