"""Output and errors for people: data on stdout, narration on stderr, every error with its way out."""
