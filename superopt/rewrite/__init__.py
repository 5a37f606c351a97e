"""What a rule is: its text, its parts, sets of rules."""
