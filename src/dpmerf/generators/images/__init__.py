"""Networks that draw pictures."""
