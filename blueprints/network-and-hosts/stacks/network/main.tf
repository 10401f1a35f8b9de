variable "name" {
  type = string
}

variable "cidr" {
  type = string
}

variable "clients" {
  type = string
}

variable "port" {
  type = number
}

resource "aws_vpc" "main" {
  cidr_block           = var.cidr
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = { Name = var.name }
}

resource "aws_subnet" "hosts" {
  vpc_id                  = aws_vpc.main.id
  cidr_block              = var.cidr
  map_public_ip_on_launch = true # the host asks SSM for its work
  tags                    = { Name = var.name }
}

resource "aws_internet_gateway" "main" {
  vpc_id = aws_vpc.main.id
  tags   = { Name = var.name }
}

resource "aws_route_table" "hosts" {
  vpc_id = aws_vpc.main.id
  tags   = { Name = var.name }

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.main.id
  }
}

resource "aws_route_table_association" "hosts" {
  subnet_id      = aws_subnet.hosts.id
  route_table_id = aws_route_table.hosts.id
}

resource "aws_security_group" "hosts" {
  name        = var.name
  description = "The service, for its clients"
  vpc_id      = aws_vpc.main.id

  ingress {
    from_port   = var.port
    to_port     = var.port
    protocol    = "tcp"
    cidr_blocks = [var.clients]
  }

  egress {
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

output "subnet_id" {
  value = aws_subnet.hosts.id
}

output "security_group_id" {
  value = aws_security_group.hosts.id
}
