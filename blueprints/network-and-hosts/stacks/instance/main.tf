variable "name" {
  type = string
}

variable "image" {
  type = string
}

variable "instance_profile" {
  type    = string
  default = null
}

variable "subnet_id" {
  type = string
}

variable "security_group_id" {
  type = string
}

variable "service_address" {
  type    = string
  default = null
}

resource "aws_instance" "host" {
  ami                    = var.image
  instance_type          = "t3.micro"
  subnet_id              = var.subnet_id
  vpc_security_group_ids = [var.security_group_id]
  iam_instance_profile   = var.instance_profile
  tags                   = { Name = var.name }

  metadata_options {
    http_tokens = "required"
  }

  lifecycle {
    ignore_changes = [ami] # a newer image is no reason to replace the host
  }
}

output "instance_id" {
  value = aws_instance.host.id
}

output "address" {
  value = coalesce(var.service_address, aws_instance.host.private_ip)
}
