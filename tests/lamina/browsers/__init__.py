"""The console and other tools as a browser has them: over HTTP, and in Chromium.

`pictures.py` and `real_tools.py` are run by hand.
"""
