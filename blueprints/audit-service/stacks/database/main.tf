variable "environment" {
  type = string
}

resource "aws_db_instance" "audit" {
  identifier                  = "audit-${var.environment}"
  engine                      = "postgres"
  instance_class              = "db.t4g.micro"
  allocated_storage           = 20
  storage_encrypted           = true
  db_name                     = "audit"
  username                    = "audit_admin"
  manage_master_user_password = true # no password is in the state
  skip_final_snapshot         = false
  final_snapshot_identifier   = "audit-${var.environment}-final"

  lifecycle {
    # An import does not read it: an instance that was adopted would be modified, to no effect.
    ignore_changes = [manage_master_user_password]
  }
}

output "endpoint" {
  value = aws_db_instance.audit.endpoint
}
