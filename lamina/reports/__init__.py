"""Reports about a deployment: its state is read here, and put into lines, JSON and metrics."""
