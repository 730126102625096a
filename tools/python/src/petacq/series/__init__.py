"""What ``petlm frames`` or ``petlm image`` made, in the formats of others."""
