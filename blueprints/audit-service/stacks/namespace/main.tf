variable "environment" {
  type = string
}

resource "aws_service_discovery_http_namespace" "service" {
  name = "audit-${var.environment}"
}

output "name" {
  value = aws_service_discovery_http_namespace.service.name
}
