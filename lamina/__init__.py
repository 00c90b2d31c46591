"""Everything a person meets is here: the command line, settings, the Spark session and the embedded services.

What comes in are commands and `lamina.toml`; what goes out are the layers' own calls. No promise about data is kept
in this package: it starts things, shows things and says what failed.
"""

__version__ = "0.1.0"
