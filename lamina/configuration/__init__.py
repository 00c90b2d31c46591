"""Settings from the environment and `lamina.toml`: text comes in, typed and checked values go out."""
