"""The only package that configures and starts Spark."""
