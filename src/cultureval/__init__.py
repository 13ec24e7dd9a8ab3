"""Culturally and dialectally grounded Arabic and Chinese benchmarks as LightEval custom tasks.

The sub-packages beside this file are links to the folders at the top of the repository.
"""

__version__: str


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version  # reads the installed metadata only when asked

        return version("cultureval")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
