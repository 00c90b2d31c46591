"""The part of Lamina that people meet: the command line, settings, the Spark session and the embedded services.

Commands and `lamina.toml` come in, and calls of the layers go out. This package keeps no promise about data: it starts
things, shows things and says what failed.
"""

__version__ = "0.1.0"
