"""What is known of a model before it loads: its settings, from a YAML file below the environment's; checks."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from cultureval.runtime.data_options import expanded
from cultureval.runtime.errors import CulturevalError, ProblemList, did_you_mean, may_be_secret
from cultureval.runtime.servers.providers import HUB, server_settings_of
from cultureval.runtime.settings import current_settings
from cultureval.runtime.smollm2 import SHORT, smollm2


@dataclass(frozen=True)
class CheckedModel:
    """A model that can be loaded."""

    file: Path  # with its class, as `lighteval custom` takes it
    no_images: str | None = None  # why tasks with images cannot be run, as a sentence
    no_likelihoods: str | None = None  # the same of tasks with log-likelihoods
    model_type: str = ""  # of its configuration, such as `qwen3_vl`; "" where unknown, as behind a server


# (whether tasks show images, whether tasks need log-likelihoods, whether libraries may be loaded) -> the model; raises
# CulturevalError
ModelCheck = Callable[[bool, bool, bool], CheckedModel]


def read_model_settings(model: str, base_url: str | None = None) -> dict[str, Any]:
    """Read the user's settings of a model; CULTUREVAL_MODEL_SETTINGS and the command's options override its file.

    Args:
        model: A YAML file (its keys at the top or under `model_parameters`, as in LightEval's own), or the model
            itself, which becomes the setting `model`. One that names a server (`openai/gpt-4o`, `http://HOST/v1#NAME`)
            also gives `base_url` and the like; `smollm2` is the model in the wheel, unless a folder has this name.
        base_url: An address that the command gives; the model's name is then what that server calls it.

    Raises:
        CulturevalError: The file is unreadable or holds no mapping, or the model's name is no model's.
    """
    if not model.endswith((".yaml", ".yml")):
        return _with_server({"model": model, **current_settings().model_settings}, base_url)
    content = read_yaml(Path(model), "The model settings")
    if set(content) == {"model_parameters"} and isinstance(content["model_parameters"], dict):
        content = content["model_parameters"]
    return _with_server(content | current_settings().model_settings, base_url)


def read_yaml(file: Path, what: str) -> dict[str, Any]:
    """The `name: value` lines of a YAML file; raises a CulturevalError that begins with `what`."""
    import yaml

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise CulturevalError(f"{what} {str(file)!r} cannot be read: {yaml_problem(error)}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CulturevalError(f"{what} {str(file)!r} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise CulturevalError(f"{what} {str(file)!r} must be `name: value` lines.")
    return content


def yaml_problem(error: Exception) -> str:
    """The problem of a YAMLError with its line and column, without the line itself, which may hold a key."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return "it is not YAML"
    return f"{getattr(error, 'problem', None) or 'not YAML'} (line {mark.line + 1}, column {mark.column + 1})"


def _with_server(settings: dict[str, Any], base_url: str | None) -> dict[str, Any]:
    """The settings with what the model's name says of its server (`providers.server_settings_of`), if it names one."""
    name = next((settings[key] for key in ("model", "model_name") if isinstance(settings.get(key), str)), "")
    if "base_url" in settings or base_url or not name:
        return settings
    try:
        expanded(name)
    except ValueError as error:
        raise CulturevalError(f"The model {name!r} {error}.") from error
    if implied := server_settings_of(name):
        others = {key: value for key, value in settings.items() if key not in ("model", "model_name")}
        return implied | others
    found = str(smollm2()) if name == SHORT and not Path(name).is_dir() else name.removeprefix(f"{HUB}:")
    return {key: found if value == name else value for key, value in settings.items()}


def refuse_unknown(
    settings: Mapping[str, Any], known: Collection[str], where: str, elsewhere: Collection[str] = ()
) -> None:
    """Refuses settings that are not among the known ones, with the nearest of those and of `elsewhere`.

    `where` is the subject of the message, such as the settings' file. Keys are refused as `refuse_keys` does.
    """
    problems = ProblemList()
    with problems.collecting():
        refuse_keys(settings)
    refused = {*_keys(settings)}
    for name in settings:
        if name not in known and name not in refused:
            hint = did_you_mean(str(name), {*known, *elsewhere}) or f" The settings are: {', '.join(sorted(known))}."
            problems.add(CulturevalError(f"{where} has no setting {name!r}.{hint}"))
    problems.raise_if_any()


def refuse_keys(settings: Mapping[str, Any]) -> None:
    """Refuses API keys and the like at any depth of settings, since results and journals hold the settings."""
    problems = ProblemList()
    for path in _keys(settings):
        sentence = f"{path} looks like a key: give it by api_key_env, the name of an environment variable."
        problems.add(CulturevalError(sentence))
    problems.raise_if_any()


def _keys(value: Any, path: str = "") -> Iterator[str]:
    """The dotted names of texts in nested settings whose names are those of keys or passwords."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            below = f"{path}.{name}".lstrip(".")
            texts = inner if isinstance(inner, list | tuple) else [inner]
            named = may_be_secret(str(name)) and below != "api_key_env"
            if named and any(isinstance(text, str) for text in texts):
                yield below
            else:
                yield from _keys(inner, below)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _keys(inner, path)


def load_model_file(name: str, file: Path) -> Any:
    """The model of the one class that a file of `cultureval.models` has for `lighteval custom`."""
    from lighteval.models.abstract_model import LightevalModel
    from lighteval.models.custom.custom_model import CustomModelConfig

    module = import_module(f"cultureval.models.{file.stem}")
    classes = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, LightevalModel)]
    (own,) = [one for one in classes if one.__module__ == module.__name__]
    return own(CustomModelConfig(model_name=name, model_definition_file_path=str(file)))
