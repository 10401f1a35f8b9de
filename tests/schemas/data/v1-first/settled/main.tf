resource "terraform_data" "a" {
  input = "two"
}

resource "terraform_data" "b" {
  count = 2
  input = count.index
}

output "said" {
  value = terraform_data.a.output
}
