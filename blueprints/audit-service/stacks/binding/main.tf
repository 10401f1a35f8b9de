variable "environment" {
  type = string
}

variable "image" {
  type = string
}

variable "namespace" {
  type = string
}

variable "role_arn" {
  type = string
}

variable "endpoint" {
  type = string
}

locals {
  told = {
    image     = var.image
    namespace = var.namespace
    role      = var.role_arn
    database  = var.endpoint
  }
}

resource "aws_ssm_parameter" "told" {
  for_each = local.told

  name  = "/audit/${var.environment}/${each.key}"
  type  = "String"
  value = each.value
}
