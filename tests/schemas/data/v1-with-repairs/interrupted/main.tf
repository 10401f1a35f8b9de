resource "terraform_data" "a" {
  input = "one"
}

resource "terraform_data" "b" {
  count = 2
  input = count.index
}

output "said" {
  value = terraform_data.a.output
}

resource "terraform_data" "slow" {
  depends_on = [terraform_data.a]
  provisioner "local-exec" {
    command = "sleep 20"
  }
}
