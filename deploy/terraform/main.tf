locals {
  template = yamldecode(file(var.template))
  set      = merge(var.parameters, { for name, value in local.variables : name => tostring(value) if value != null })

  # All parameters, also those with the template's default. So a plan shows each value, and a value that is no longer set
  # becomes the default again.
  values = { for name, p in local.template.Parameters : name => tostring(lookup(local.set, name, try(p.Default, null))) }
}

data "aws_s3_bucket" "this" {
  bucket = var.bucket
}

# CloudFormation takes at most 51,200 bytes in a request, and 1 MB from S3. The key has the hash of the content, so each
# change is a change of the stack.
resource "aws_s3_object" "template" {
  bucket = var.bucket
  key    = "${var.stack_name}/${filesha256(var.template)}.template"
  source = var.template
  tags   = var.tags

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_cloudformation_stack" "guards" {
  name         = var.stack_name
  template_url = "https://${data.aws_s3_bucket.this.bucket_regional_domain_name}/${aws_s3_object.template.key}"
  parameters   = { for name, value in local.values : name => value if value != null }
  capabilities = var.capabilities
  iam_role_arn = var.iam_role_arn
  tags         = var.tags

  lifecycle {
    precondition {
      condition     = length(setsubtract(keys(local.set), keys(local.template.Parameters))) == 0
      error_message = "The template has no parameter ${join(", ", setsubtract(keys(local.set), keys(local.template.Parameters)))}."
    }
    precondition {
      condition     = alltrue([for value in values(local.values) : value != null])
      error_message = "These parameters have no default, so set them: ${join(", ", [for name, value in local.values : name if value == null])}."
    }
  }
}
