"""Rules from the graphs that people have: parts of models, recognized by what they compute."""
