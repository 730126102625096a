"""What ``petlm frames`` made, in the formats of others."""
