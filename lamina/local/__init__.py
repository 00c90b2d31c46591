"""A whole Lamina in one folder: its setup, its start and stop, and the demo."""
