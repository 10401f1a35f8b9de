variable "environment" {
  type = string
}

resource "aws_iam_role" "service" {
  name = "audit-${var.environment}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
    }]
  })
}

output "arn" {
  value = aws_iam_role.service.arn
}
