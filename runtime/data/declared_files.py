"""The data files that the README of a data set declares, for the plain declarations that nearly all data sets have.

The `datasets` library gives the same files, but takes a second to load and looks at every subset anew. Folders that its
`save_to_disk` wrote declare their files likewise, in `state.json`.
"""

import json
import re
from collections import Counter
from functools import lru_cache
from glob import has_magic
from pathlib import Path
from typing import Any

import yaml

from cultureval.runtime.errors import CulturevalError

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".arrow")
FRONT_MATTER = re.compile(r"^\s*---[\r\n]+([\S\s]*?)[\r\n]+---(\r\n|\n|$)")  # as in huggingface_hub
SPLIT = re.compile(r"\w+(\.\w+)*")
MORE_SETTINGS = ".huggingface.yaml"  # a second place of declarations

DESCRIPTIONS = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}  # hold no rows
IGNORED = DESCRIPTIONS | {"README.md", "config.json"}  # by patterns

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
    names = Counter(str(one.get("config_name")) for one in configs if isinstance(one, dict))
    if twice := [name for name, count in names.items() if count > 1]:
        raise CulturevalError(
            f"{folder / 'README.md'} declares the config {twice[0]!r} {names[twice[0]]} times: which one is meant is "
            "not clear. Keep one, or list all files in it."
        )
    found: dict[str, DataFiles] = {}
    for config in configs:
        splits = _splits(config, folder)
        if splits is None:
            return None
        found[config["config_name"]] = splits
    formats = {format_of(Path(path)) for splits in found.values() for paths in splits.values() for path in paths}
    return found if len(formats) == 1 and "" not in formats else None


@lru_cache(maxsize=256)
def front_matter(folder: Path) -> dict[str, Any]:
    """The front matter of a folder's README; {} without one. Kept, since every subset of a source asks several times.

    Raises:
        CulturevalError: It is no YAML, or the README is no UTF-8: what it declares would be lost.
    """
    try:
        found = FRONT_MATTER.match((folder / "README.md").read_text(encoding="utf-8-sig"))
        content = yaml.load(found[1], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if found else {}
    except OSError:
        return {}
    except UnicodeDecodeError as error:
        raise CulturevalError(f"{folder / 'README.md'} is not UTF-8 ({error.reason}): save it as UTF-8.") from error
    except yaml.YAMLError as error:
        raise CulturevalError(f"The front matter of {folder / 'README.md'} cannot be read: {error}") from error
    return content if isinstance(content, dict) else {}


@lru_cache(maxsize=256)
def saved_files(folder: Path) -> dict[str, DataFiles] | None:
    """The files of what `save_to_disk` wrote: into the folder itself (the config "default"), or one folder a config.

    Raises:
        CulturevalError: A description cannot be read, or a file that it names is not there.
    """
    if (alone := _saved_splits(folder)) is not None:
        return {"default": alone}
    below = sorted(one for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []
    found = {one.name: splits for one in below if (splits := _saved_splits(one)) is not None}
    return found or None


def _saved_splits(folder: Path) -> DataFiles | None:
    try:
        if (folder / "dataset_dict.json").is_file():
            names = json.loads((folder / "dataset_dict.json").read_text(encoding="utf-8"))["splits"]
            return {name: _saved_shards(folder / name)[1] for name in names}
        if (folder / "state.json").is_file() and not (folder.parent / "dataset_dict.json").is_file():
            split, files = _saved_shards(folder)
            return {split: files}
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise CulturevalError(
            f"{folder} looks like a data set that `save_to_disk` wrote, and its description cannot be read ({error}): "
            "save it anew, or as parquet."
        ) from error
    return None


def _saved_shards(folder: Path) -> tuple[str, list[str]]:
    """The split and the files that a `state.json` names."""
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    files = [folder / Path(one["filename"]).name for one in state["_data_files"]]
    if missing := [file for file in files if not file.is_file()]:
        raise CulturevalError(f"{folder} lacks {missing[0].name}, which its state.json names: fetch it.")
    if state.get("_indices_files"):
        raise CulturevalError(
            f"{folder} holds indices besides its rows: write it by `flatten_indices()`, or as parquet."
        )
    return str(state.get("_split") or "train").split("[")[0], [str(file.absolute()) for file in files]


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
