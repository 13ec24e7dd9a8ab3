"""Score signatures: one line that says what a number depends on, as in sacrebleu.

Two scores may be compared only if their signatures differ in nothing but the model.
"""

import hashlib
from collections.abc import Iterable
from importlib.metadata import version

PACKAGES = ("cultureval", "lighteval", "transformers", "torch")


def signature(**fields: object) -> str:
    """`name:value|name:value`, in the order given; a field that is None is left out, a `|` in a value becomes `%7C`."""
    values = {name: str(value).replace("|", "%7C") for name, value in fields.items() if value is not None}
    return "|".join(f"{name}:{value}" for name, value in values.items())


def combined_hash(hashes: Iterable[str]) -> str:
    """One hash of several, in any order: the first eight hexadecimal digits of a SHA-256."""
    return hashlib.sha256("\n".join(sorted(hashes)).encode("utf-8")).hexdigest()[:8]


def installed_versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Versions of the packages that scores depend on."""
    return {name: version(name) for name in packages}
