"""The commands: each opens the parts it needs, calls one function of a layer, and shows what it gave."""
