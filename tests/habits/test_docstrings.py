"""Every example in a docstring runs and is true. The algebra has its own test."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import batch_layer
import benchmarks
import interchange
import lamina
import master_log
import serving_layer
import speed_layer

MODULES = [
    module.name
    for package in (batch_layer, benchmarks, interchange, lamina, master_log, serving_layer, speed_layer)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__") and ".migrations" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_an_example_in_a_docstring_is_true(name: str) -> None:
    module = importlib.import_module(name)
    examples = doctest.testmod(module, verbose=False)
    assert examples.failed == 0
    assert examples.attempted == inspect.getsource(module).count(">>> ")
