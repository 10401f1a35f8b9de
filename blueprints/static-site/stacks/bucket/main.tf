variable "bucket" {
  type = string
}

variable "url" {
  type    = string
  default = null
}

resource "aws_s3_bucket" "site" {
  bucket = var.bucket
}

resource "aws_s3_bucket_website_configuration" "site" {
  bucket = aws_s3_bucket.site.id

  index_document {
    suffix = "index.html"
  }

  error_document {
    key = "missing.html"
  }
}

# Everybody may read the site: the policy says so, and no block stands against it.
resource "aws_s3_bucket_public_access_block" "site" {
  bucket                  = aws_s3_bucket.site.id
  block_public_acls       = true
  ignore_public_acls      = true
  block_public_policy     = false
  restrict_public_buckets = false
}

resource "aws_s3_bucket_policy" "site" {
  bucket = aws_s3_bucket.site.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = "*"
      Action    = "s3:GetObject"
      Resource  = "${aws_s3_bucket.site.arn}/*"
    }]
  })

  depends_on = [aws_s3_bucket_public_access_block.site]
}

output "bucket" {
  value = aws_s3_bucket.site.bucket
}

output "url" {
  value = coalesce(var.url, "http://${aws_s3_bucket_website_configuration.site.website_endpoint}")
}
