"""The data files that the README of a data set declares, for the plain declarations that nearly all data sets have.

The `datasets` library gives the same files, but takes a second to load and looks at every subset anew.
"""

import re
from functools import lru_cache
from glob import has_magic
from pathlib import Path
from typing import Any

import yaml

from cultureval.runtime.errors import CulturevalError

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
FRONT_MATTER = re.compile(r"^\s*---[\r\n]+([\S\s]*?)[\r\n]+---(\r\n|\n|$)")  # as in huggingface_hub
SPLIT = re.compile(r"\w+(\.\w+)*")
MORE_SETTINGS = ".huggingface.yaml"  # a second place of declarations

IGNORED = {"README.md", "config.json", "dataset_info.json", "dataset_infos.json", "dataset_dict.json"}  # by patterns

DataFiles = dict[str, list[str]]  # paths by split


def format_of(path: Path) -> str:
    """The suffix that tells a file's format, in lower case and without a final `.gz`."""
    name = path.name.lower().removesuffix(".gz")
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def declares_configs(folder: Path) -> bool:
    """Whether a folder's README, or the file beside it that may replace it, declares configs."""
    return (folder / MORE_SETTINGS).exists() or front_matter(folder).get("configs") is not None


@lru_cache(maxsize=256)
def declared_files(folder: Path) -> dict[str, DataFiles] | None:
    """The files of each config and split, in the README's order.

    Args:
        folder: A data set's folder.

    Returns:
        Config -> split -> absolute paths. None where the README declares no configs, or in a way that is left to
        `datasets`: files that are missing, outside the folder or of several formats, and patterns other than `*` in a
        file's name.
    """
    if (folder / MORE_SETTINGS).exists():
        return None
    configs = front_matter(folder).get("configs")
    if not isinstance(configs, list) or not configs:
        return None
    found: dict[str, DataFiles] = {}
    for config in configs:
        splits = _splits(config, folder)
        if splits is None or config["config_name"] in found:
            return None
        found[config["config_name"]] = splits
    formats = {format_of(Path(path)) for splits in found.values() for paths in splits.values() for path in paths}
    return found if len(formats) == 1 and "" not in formats else None


@lru_cache(maxsize=256)
def front_matter(folder: Path) -> dict[str, Any]:
    """The front matter of a folder's README; {} without one. Kept, since every subset of a source asks several times.

    Raises:
        CulturevalError: It is no YAML.
    """
    try:
        found = FRONT_MATTER.match((folder / "README.md").read_text(encoding="utf-8"))
        content = yaml.load(found[1], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if found else {}
    except (OSError, UnicodeDecodeError):
        return {}
    except yaml.YAMLError as error:
        raise CulturevalError(f"The front matter of {folder / 'README.md'} cannot be read: {error}") from error
    return content if isinstance(content, dict) else {}


def _splits(config: Any, folder: Path) -> DataFiles | None:
    if not isinstance(config, dict) or not isinstance(config.get("config_name"), str) or "data_dir" in config:
        return None
    found: DataFiles = {}
    declared = config.get("data_files")
    if not isinstance(declared, list) or not declared:
        return None
    for entry in declared:
        if not isinstance(entry, dict) or set(entry) != {"split", "path"}:
            return None
        split, given = entry["split"], entry["path"]
        patterns = given if isinstance(given, list) else [given]
        paths = [_matching(pattern, folder) for pattern in patterns]
        if not isinstance(split, str) or not SPLIT.fullmatch(split) or split in found or not all(paths):
            return None
        found[split] = [path for some in paths for path in some]
    return found


def _matching(pattern: Any, folder: Path) -> list[str]:
    """The files of a path, or of a pattern with `*` in the file's name; [] where there are none, or for others."""
    if not isinstance(pattern, str) or pattern.startswith(("/", "~")) or ":" in pattern:
        return []
    parts = pattern.split("/")
    if not all(parts) or any(part.startswith((".", "__")) for part in parts) or "**" in pattern:
        return []
    if has_magic("/".join(parts[:-1])) or has_magic(parts[-1].replace("*", "")):
        return []
    place = folder.absolute().joinpath(*parts)
    if "*" not in parts[-1]:
        return [str(place)] if place.is_file() else []
    found = sorted(path for path in place.parent.glob(parts[-1]) if path.name not in IGNORED)
    return [str(path) for path in found if path.is_file() and not path.name.startswith(".")]
