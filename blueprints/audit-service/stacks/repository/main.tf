variable "environment" {
  type = string
}

resource "aws_ecr_repository" "service" {
  name                 = "audit-${var.environment}"
  image_tag_mutability = "IMMUTABLE"
}

output "url" {
  value = aws_ecr_repository.service.repository_url
}
