resource "aws_vpc" "a" {
  cidr_block = "10.1.0.0/16"
  tags       = { Name = "a" }
}
resource "aws_vpc" "b" { cidr_block = "10.2.0.0/16" }
resource "aws_subnet" "a" {
  vpc_id            = aws_vpc.a.id
  cidr_block        = "10.1.1.0/24"
  availability_zone = "us-east-1a"
}
resource "aws_subnet" "b" {
  vpc_id            = aws_vpc.a.id
  cidr_block        = "10.1.2.0/24"
  availability_zone = "us-east-1b"
}
resource "aws_security_group" "a" {
  vpc_id = aws_vpc.a.id
  name   = "a"
  ingress {
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = ["10.0.0.0/8"]
  }
}
resource "aws_security_group" "b" {
  vpc_id = aws_vpc.a.id
  name   = "b"
}
resource "aws_vpc_security_group_ingress_rule" "a" {
  security_group_id = aws_security_group.b.id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  cidr_ipv4         = "10.0.0.0/8"
}
resource "aws_vpc_security_group_egress_rule" "a" {
  security_group_id = aws_security_group.b.id
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}
resource "aws_security_group_rule" "a" {
  security_group_id = aws_security_group.b.id
  type              = "egress"
  protocol          = "tcp"
  from_port         = 80
  to_port           = 80
  cidr_blocks       = ["10.9.0.0/16"]
}
resource "aws_internet_gateway" "a" { vpc_id = aws_vpc.a.id }
resource "aws_egress_only_internet_gateway" "a" { vpc_id = aws_vpc.a.id }
resource "aws_eip" "a" { domain = "vpc" }
resource "aws_nat_gateway" "a" {
  subnet_id     = aws_subnet.a.id
  allocation_id = aws_eip.a.id
}
resource "aws_route_table" "a" { vpc_id = aws_vpc.a.id }
resource "aws_route_table_association" "a" {
  subnet_id      = aws_subnet.a.id
  route_table_id = aws_route_table.a.id
}
resource "aws_route" "a" {
  route_table_id         = aws_route_table.a.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.a.id
}
resource "aws_network_acl" "a" { vpc_id = aws_vpc.a.id }
resource "aws_vpc_endpoint" "a" {
  vpc_id       = aws_vpc.a.id
  service_name = "com.amazonaws.us-east-1.s3"
}
resource "aws_vpc_peering_connection" "a" {
  vpc_id      = aws_vpc.a.id
  peer_vpc_id = aws_vpc.b.id
  auto_accept = true
}
resource "aws_network_interface" "a" { subnet_id = aws_subnet.a.id }
resource "aws_vpc_dhcp_options" "a" { domain_name = "x.internal" }
resource "aws_customer_gateway" "a" {
  bgp_asn    = 65000
  ip_address = "192.0.2.1"
  type       = "ipsec.1"
}
resource "aws_vpn_gateway" "a" {}
resource "aws_s3_bucket" "a" { bucket = "flow-a" }
resource "aws_flow_log" "a" {
  vpc_id               = aws_vpc.a.id
  traffic_type         = "ALL"
  log_destination_type = "s3"
  log_destination      = aws_s3_bucket.a.arn
}
resource "aws_ec2_managed_prefix_list" "a" {
  name           = "a"
  address_family = "IPv4"
  max_entries    = 3
}
resource "aws_ec2_transit_gateway" "a" { description = "a" }
resource "aws_ec2_transit_gateway_vpc_attachment" "a" {
  transit_gateway_id = aws_ec2_transit_gateway.a.id
  vpc_id             = aws_vpc.a.id
  subnet_ids         = [aws_subnet.a.id]
}
resource "aws_alb" "a" {
  name    = "a"
  subnets = [aws_subnet.a.id, aws_subnet.b.id]
}
resource "aws_lb_target_group" "a" {
  name     = "a"
  port     = 80
  protocol = "HTTP"
  vpc_id   = aws_vpc.a.id
}
resource "aws_lb_listener" "a" {
  load_balancer_arn = aws_alb.a.arn
  port              = 80
  protocol          = "HTTP"
  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.a.arn
  }
}
resource "aws_lb_listener_rule" "a" {
  listener_arn = aws_lb_listener.a.arn
  priority     = 5
  action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.a.arn
  }
  condition {
    path_pattern { values = ["/a"] }
  }
}
resource "aws_ebs_volume" "a" {
  availability_zone = "us-east-1a"
  size              = 8
}
resource "aws_ebs_snapshot" "a" { volume_id = aws_ebs_volume.a.id }
resource "aws_instance" "a" {
  ami           = "ami-12c6146b"
  instance_type = "t3.micro"
  subnet_id     = aws_subnet.a.id
}
resource "aws_key_pair" "a" {
  key_name   = "a"
  public_key = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQD3F6tyPEFEzV0LX3X8BsXdMsQz1x2cEikKDEY0aIj41qgxMCP/iteneqXSIFZBp5vizPvaoIR3Um9xK7PGoW8giupGn+EPuxIA4cDM4vzOqOkiMPhz5XK0whEjkVzTo4+S0puvDZuwIsdiW9mxhJc7tgBNL0cYlWSYVkz4G/fslNfRPW5mYAM49f4fhtxPb5ok4Q2Lg9dPKVHO/Bgeu5woMc7RY0p1ej6D4CKFE6lymSDJpW0YHX/wqE9+cfEauh7xZcG0q9t2ta6F6fmX0agvpFyZo8aFbXeUBr7osSCJNgvavWbM/06niWrOvYX2xwWdhXmXSrbX8ZbabVohBK41 a@b"
}
resource "aws_launch_template" "a" { name = "aaa" }
resource "aws_autoscaling_group" "a" {
  name                = "a"
  min_size            = 0
  max_size            = 0
  vpc_zone_identifier = [aws_subnet.a.id]
  launch_template { id = aws_launch_template.a.id }
}
resource "aws_autoscaling_policy" "a" {
  name                   = "a"
  autoscaling_group_name = aws_autoscaling_group.a.name
  scaling_adjustment     = 1
  adjustment_type        = "ChangeInCapacity"
}
resource "aws_ami_from_instance" "a" {
  name               = "a"
  source_instance_id = aws_instance.a.id
}
resource "aws_default_security_group" "a" { vpc_id = aws_vpc.a.id }
resource "aws_default_route_table" "b" { default_route_table_id = aws_vpc.b.default_route_table_id }
resource "aws_default_network_acl" "b" { default_network_acl_id = aws_vpc.b.default_network_acl_id }
