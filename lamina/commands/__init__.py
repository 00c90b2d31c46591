"""The commands. Each opens the parts it needs, calls one function of a layer, and shows the result."""
