# __generated__ by Terraform
# Please review these resources and move them into your main configuration files.

# __generated__ by Terraform
resource "aws_db_instance" "x" {
  allocated_storage                     = 20
  allow_major_version_upgrade           = null
  apply_immediately                     = null
  auto_minor_version_upgrade            = true
  availability_zone                     = "us-east-1a"
  backup_retention_period               = 0
  backup_target                         = null
  backup_window                         = "13:14-13:44"
  ca_cert_identifier                    = "rds-ca-default"
  character_set_name                    = null
  copy_tags_to_snapshot                 = false
  custom_iam_instance_profile           = null
  customer_owned_ip_enabled             = false
  database_insights_mode                = null
  db_name                               = null
  db_subnet_group_name                  = null
  dedicated_log_volume                  = false
  delete_automated_backups              = true
  deletion_protection                   = false
  domain                                = null
  domain_auth_secret_arn                = null
  domain_dns_ips                        = []
  domain_fqdn                           = null
  domain_iam_role_name                  = null
  domain_ou                             = null
  enabled_cloudwatch_logs_exports       = []
  engine                                = "postgres"
  engine_lifecycle_support              = null
  engine_version                        = "9.3.3"
  final_snapshot_identifier             = null
  iam_database_authentication_enabled   = false
  identifier                            = "db-a"
  identifier_prefix                     = null
  instance_class                        = "db.t3.micro"
  iops                                  = 0
  kms_key_id                            = null
  license_model                         = "general-public-license"
  maintenance_window                    = "wed:06:38-wed:07:08"
  manage_master_user_password           = null
  master_user_secret_kms_key_id         = null
  max_allocated_storage                 = 0
  monitoring_interval                   = 0
  monitoring_role_arn                   = null
  multi_az                              = false
  nchar_character_set_name              = null
  network_type                          = null
  option_group_name                     = "default:postgres-9-3"
  parameter_group_name                  = "default.postgres9.3"
  password                              = null # sensitive
  password_wo                           = null # sensitive
  password_wo_version                   = null
  performance_insights_enabled          = false
  performance_insights_kms_key_id       = null
  performance_insights_retention_period = 0
  port                                  = 5432
  publicly_accessible                   = false
  replica_mode                          = null
  replicate_source_db                   = null
  skip_final_snapshot                   = true
  snapshot_identifier                   = null
  storage_encrypted                     = false
  storage_throughput                    = 0
  storage_type                          = "gp2"
  tags                                  = {}
  tags_all                              = {}
  timezone                              = null
  upgrade_storage_config                = null
  username                              = "admin1"
  vpc_security_group_ids                = ["sg-525002f1f5245e3a5"]
}

# __generated__ by Terraform from "http://127.0.0.1:43275/123456789012/jobs-a"
resource "aws_sqs_queue_policy" "x" {
  policy = jsonencode({
    Statement = [{
      Action    = "sqs:SendMessage"
      Effect    = "Allow"
      Principal = "*"
      Resource  = "arn:aws:sqs:us-east-1:123456789012:jobs-a"
    }]
    Version = "2012-10-17"
  })
  queue_url = "http://127.0.0.1:43275/123456789012/jobs-a"
}

# __generated__ by Terraform from "sg-0cf00a5f2745417de"
resource "aws_security_group" "x" {
  description = "d"
  egress      = []
  ingress = [{
    cidr_blocks      = ["10.0.0.0/8"]
    description      = ""
    from_port        = 22
    ipv6_cidr_blocks = []
    prefix_list_ids  = []
    protocol         = "tcp"
    security_groups  = []
    self             = false
    to_port          = 22
  }]
  name                   = "group-a"
  name_prefix            = null
  revoke_rules_on_delete = null
  tags                   = {}
  tags_all               = {}
  vpc_id                 = "vpc-bafcd44a6c9755c5a"
}

# __generated__ by Terraform from "eipalloc-7ec8dcb853af16fb3"
resource "aws_eip" "x" {
  address                   = null
  associate_with_private_ip = null
  customer_owned_ipv4_pool  = null
  domain                    = "vpc"
  instance                  = null
  ipam_pool_id              = null
  network_border_group      = null
  network_interface         = null
  public_ipv4_pool          = null
  tags                      = {}
  tags_all                  = {}
}

# __generated__ by Terraform
resource "aws_launch_template" "x" {
  default_version                      = 1
  description                          = null
  disable_api_stop                     = false
  disable_api_termination              = false
  ebs_optimized                        = null
  image_id                             = "ami-12c6146b"
  instance_initiated_shutdown_behavior = null
  instance_type                        = "t3.micro"
  kernel_id                            = null
  key_name                             = null
  name                                 = "lt-a"
  name_prefix                          = null
  ram_disk_id                          = null
  security_group_names                 = []
  tags                                 = {}
  tags_all                             = {}
  update_default_version               = null
  user_data                            = "ZWNobyBoaQ=="
  vpc_security_group_ids               = []
}

# __generated__ by Terraform
resource "aws_sns_topic" "x" {
  application_failure_feedback_role_arn    = null
  application_success_feedback_role_arn    = null
  application_success_feedback_sample_rate = 0
  archive_policy                           = null
  content_based_deduplication              = false
  delivery_policy                          = null
  display_name                             = null
  fifo_throughput_scope                    = null
  fifo_topic                               = false
  firehose_failure_feedback_role_arn       = null
  firehose_success_feedback_role_arn       = null
  firehose_success_feedback_sample_rate    = 0
  http_failure_feedback_role_arn           = null
  http_success_feedback_role_arn           = null
  http_success_feedback_sample_rate        = 0
  kms_master_key_id                        = null
  lambda_failure_feedback_role_arn         = null
  lambda_success_feedback_role_arn         = null
  lambda_success_feedback_sample_rate      = 0
  name                                     = "top-a"
  name_prefix                              = null
  policy = jsonencode({
    Id = "__default_policy_ID"
    Statement = [{
      Action = ["SNS:GetTopicAttributes", "SNS:SetTopicAttributes", "SNS:AddPermission", "SNS:RemovePermission", "SNS:DeleteTopic", "SNS:Subscribe", "SNS:ListSubscriptionsByTopic", "SNS:Publish"]
      Condition = {
        StringEquals = {
          "AWS:SourceOwner" = "123456789012"
        }
      }
      Effect = "Allow"
      Principal = {
        AWS = "*"
      }
      Resource = "arn:aws:sns:us-east-1:123456789012:top-a"
      Sid      = "__default_statement_ID"
    }]
    Version = "2008-10-17"
  })
  signature_version                = 0
  sqs_failure_feedback_role_arn    = null
  sqs_success_feedback_role_arn    = null
  sqs_success_feedback_sample_rate = 0
  tags                             = {}
  tags_all                         = {}
  tracing_config                   = null
}

# __generated__ by Terraform
resource "aws_ssm_parameter" "x" {
  allowed_pattern  = null
  arn              = "arn:aws:ssm:us-east-1:123456789012:parameter/p/a"
  data_type        = "text"
  description      = null
  insecure_value   = null
  key_id           = "alias/aws/ssm"
  name             = "/p/a"
  overwrite        = null
  tags             = {}
  tags_all         = {}
  tier             = "Standard"
  type             = "SecureString"
  value            = null # sensitive
  value_wo         = null # sensitive
  value_wo_version = null
}

# __generated__ by Terraform
resource "aws_subnet" "x" {
  assign_ipv6_address_on_creation                = false
  availability_zone                              = "us-east-1d"
  availability_zone_id                           = "use1-az4"
  cidr_block                                     = "10.5.1.0/24"
  customer_owned_ipv4_pool                       = null
  enable_dns64                                   = false
  enable_lni_at_device_index                     = 0
  enable_resource_name_dns_a_record_on_launch    = false
  enable_resource_name_dns_aaaa_record_on_launch = false
  ipv6_cidr_block                                = null
  ipv6_native                                    = false
  map_customer_owned_ip_on_launch                = false
  map_public_ip_on_launch                        = false
  outpost_arn                                    = null
  private_dns_hostname_type_on_launch            = "ip-name"
  tags                                           = {}
  tags_all                                       = {}
  vpc_id                                         = "vpc-bafcd44a6c9755c5a"
}

# __generated__ by Terraform
resource "aws_route53_record" "x" {
  allow_overwrite                  = null
  health_check_id                  = null
  multivalue_answer_routing_policy = false
  name                             = "www"
  records                          = ["10.0.0.1"]
  set_identifier                   = null
  ttl                              = 60
  type                             = "A"
  zone_id                          = "LSIWZOVLZHBAVMOP85425V"
}

# __generated__ by Terraform from "role-a"
resource "aws_iam_role" "x" {
  assume_role_policy = jsonencode({
    Statement = [{
      Action = "sts:AssumeRole"
      Effect = "Allow"
      Principal = {
        Service = "ec2.amazonaws.com"
      }
    }]
    Version = "2012-10-17"
  })
  description           = null
  force_detach_policies = false
  max_session_duration  = 3600
  name                  = "role-a"
  name_prefix           = null
  path                  = "/"
  permissions_boundary  = null
  tags                  = {}
  tags_all              = {}
}

# __generated__ by Terraform from "/app/a"
resource "aws_cloudwatch_log_group" "x" {
  kms_key_id        = null
  log_group_class   = null
  name              = "/app/a"
  name_prefix       = null
  retention_in_days = 7
  skip_destroy      = false
  tags              = {}
  tags_all          = {}
}

# __generated__ by Terraform from "rule-a"
resource "aws_cloudwatch_event_rule" "x" {
  description         = null
  event_bus_name      = "default"
  event_pattern       = null
  force_destroy       = false
  name                = "rule-a"
  name_prefix         = null
  role_arn            = null
  schedule_expression = "rate(5 minutes)"
  state               = "ENABLED"
  tags                = {}
  tags_all            = {}
}

# __generated__ by Terraform from "role-a:inl"
resource "aws_iam_role_policy" "x" {
  name        = "inl"
  name_prefix = null
  policy = jsonencode({
    Statement = [{
      Action   = "s3:ListBucket"
      Effect   = "Allow"
      Resource = "arn:aws:s3:::bucket-a-1"
    }]
    Version = "2012-10-17"
  })
  role = "role-a"
}

# __generated__ by Terraform
resource "aws_lambda_function" "x" {
  architectures                      = ["x86_64"]
  code_signing_config_arn            = null
  description                        = null
  filename                           = null
  function_name                      = "fn-a"
  handler                            = "x.y"
  image_uri                          = null
  kms_key_arn                        = null
  layers                             = []
  memory_size                        = 128
  package_type                       = "Zip"
  publish                            = null
  replace_security_groups_on_destroy = null
  replacement_security_group_ids     = null
  reserved_concurrent_executions     = -1
  role                               = "arn:aws:iam::123456789012:role/role-a"
  runtime                            = "python3.12"
  s3_bucket                          = null
  s3_key                             = null
  s3_object_version                  = null
  skip_destroy                       = false
  source_code_hash                   = null
  tags                               = {}
  tags_all                           = {}
  timeout                            = 3
  environment {
    variables = {
      A = "b"
    }
  }
  ephemeral_storage {
    size = 512
  }
  tracing_config {
    mode = "PassThrough"
  }
}

# __generated__ by Terraform from "http://127.0.0.1:43275/123456789012/jobs-a"
resource "aws_sqs_queue" "x" {
  content_based_deduplication       = false
  deduplication_scope               = null
  delay_seconds                     = 0
  fifo_queue                        = false
  fifo_throughput_limit             = null
  kms_data_key_reuse_period_seconds = 300
  kms_master_key_id                 = null
  max_message_size                  = 262144
  message_retention_seconds         = 345600
  name                              = "jobs-a"
  name_prefix                       = null
  policy = jsonencode({
    Statement = [{
      Action    = "sqs:SendMessage"
      Effect    = "Allow"
      Principal = "*"
      Resource  = "arn:aws:sqs:us-east-1:123456789012:jobs-a"
    }]
    Version = "2012-10-17"
  })
  receive_wait_time_seconds = 0
  redrive_allow_policy      = null
  redrive_policy            = null
  sqs_managed_sse_enabled   = true
  tags = {
    Team    = "x$${y}"
    "k:a b" = "v\"q"
  }
  tags_all = {
    Team    = "x$${y}"
    "k:a b" = "v\"q"
  }
  visibility_timeout_seconds = 30
}

# __generated__ by Terraform
resource "aws_lb" "x" {
  client_keep_alive                                            = null
  customer_owned_ipv4_pool                                     = null
  desync_mitigation_mode                                       = null
  dns_record_client_routing_policy                             = "any_availability_zone"
  drop_invalid_header_fields                                   = null
  enable_cross_zone_load_balancing                             = false
  enable_deletion_protection                                   = false
  enable_http2                                                 = null
  enable_tls_version_and_cipher_suite_headers                  = null
  enable_waf_fail_open                                         = null
  enable_xff_client_port                                       = null
  enable_zonal_shift                                           = false
  enforce_security_group_inbound_rules_on_private_link_traffic = null
  idle_timeout                                                 = null
  internal                                                     = true
  ip_address_type                                              = "ipv4"
  load_balancer_type                                           = "network"
  name                                                         = "lb-a"
  name_prefix                                                  = null
  preserve_host_header                                         = null
  security_groups                                              = []
  subnets                                                      = ["subnet-79ccc193a3de96bc1"]
  tags                                                         = {}
  tags_all                                                     = {}
  xff_header_processing_mode                                   = null
  access_logs {
    bucket  = ""
    enabled = false
    prefix  = null
  }
  subnet_mapping {
    allocation_id        = null
    ipv6_address         = null
    private_ipv4_address = null
    subnet_id            = "subnet-79ccc193a3de96bc1"
  }
}

# __generated__ by Terraform
resource "aws_dynamodb_table" "x" {
  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = false
  hash_key                    = "id"
  name                        = "tab-a"
  range_key                   = null
  read_capacity               = 0
  restore_date_time           = null
  restore_source_name         = null
  restore_source_table_arn    = null
  restore_to_latest_time      = null
  stream_enabled              = false
  stream_view_type            = null
  table_class                 = "STANDARD"
  tags                        = {}
  tags_all                    = {}
  write_capacity              = 0
  attribute {
    name = "id"
    type = "S"
  }
  point_in_time_recovery {
    enabled                 = false
    recovery_period_in_days = 0
  }
  ttl {
    attribute_name = null
    enabled        = false
  }
}

# __generated__ by Terraform from "LSIWZOVLZHBAVMOP85425V"
resource "aws_route53_zone" "x" {
  comment           = "Managed by Terraform"
  delegation_set_id = null
  force_destroy     = null
  name              = "example.org"
  tags              = {}
  tags_all          = {}
}

# __generated__ by Terraform
resource "aws_kms_key" "x" {
  bypass_policy_lockout_safety_check = null
  custom_key_store_id                = null
  customer_master_key_spec           = "SYMMETRIC_DEFAULT"
  deletion_window_in_days            = null
  description                        = "k"
  enable_key_rotation                = false
  is_enabled                         = true
  key_usage                          = "ENCRYPT_DECRYPT"
  multi_region                       = false
  policy = jsonencode({
    Id = "key-default-1"
    Statement = [{
      Action = "kms:*"
      Effect = "Allow"
      Principal = {
        AWS = "arn:aws:iam::123456789012:root"
      }
      Resource = "*"
      Sid      = "Enable IAM User Permissions"
    }]
    Version = "2012-10-17"
  })
  rotation_period_in_days = 0
  tags                    = {}
  tags_all                = {}
  xks_key_id              = null
}

# __generated__ by Terraform
resource "aws_instance" "x" {
  ami                                  = "ami-12c6146b"
  associate_public_ip_address          = true
  availability_zone                    = "us-east-1d"
  disable_api_stop                     = false
  disable_api_termination              = false
  ebs_optimized                        = false
  enable_primary_ipv6                  = null
  get_password_data                    = false
  hibernation                          = false
  host_id                              = null
  host_resource_group_arn              = null
  iam_instance_profile                 = null
  instance_initiated_shutdown_behavior = "stop"
  instance_type                        = "t3.micro"
  ipv6_address_count                   = 0
  ipv6_addresses                       = []
  key_name                             = null
  monitoring                           = false
  placement_group                      = null
  placement_partition_number           = 0
  private_ip                           = "10.5.1.4"
  secondary_private_ips                = []
  security_groups                      = []
  source_dest_check                    = true
  subnet_id                            = "subnet-79ccc193a3de96bc1"
  tags = {
    Name = "vm"
  }
  tags_all = {
    Name = "vm"
  }
  tenancy                     = "default"
  user_data                   = null
  user_data_base64            = null
  user_data_replace_on_change = null
  volume_tags                 = null
  vpc_security_group_ids      = ["sg-0cf00a5f2745417de"]
  credit_specification {
    cpu_credits = "standard"
  }
  metadata_options {
    http_endpoint               = "enabled"
    http_protocol_ipv6          = "disabled"
    http_put_response_hop_limit = 1
    http_tokens                 = "optional"
    instance_metadata_tags      = "disabled"
  }
  root_block_device {
    delete_on_termination = true
    encrypted             = false
    iops                  = 0
    kms_key_id            = null
    tags                  = {}
    tags_all              = {}
    throughput            = 0
    volume_size           = 8
    volume_type           = "gp2"
  }
}

# __generated__ by Terraform
resource "aws_vpc" "x" {
  assign_generated_ipv6_cidr_block     = false
  cidr_block                           = "10.5.0.0/16"
  enable_dns_hostnames                 = false
  enable_dns_support                   = true
  enable_network_address_usage_metrics = false
  instance_tenancy                     = "default"
  ipv4_ipam_pool_id                    = null
  ipv4_netmask_length                  = null
  ipv6_cidr_block                      = null
  ipv6_cidr_block_network_border_group = null
  ipv6_ipam_pool_id                    = null
  ipv6_netmask_length                  = 0
  tags = {
    Name = "net"
  }
  tags_all = {
    Name = "net"
  }
}

# __generated__ by Terraform from "bucket-a-1"
resource "aws_s3_bucket" "x" {
  bucket              = "bucket-a-1"
  bucket_prefix       = null
  force_destroy       = null
  object_lock_enabled = false
  tags                = {}
  tags_all            = {}
}
