"""AL-QASIDA's evaluation sets: the ready-made files, or the same sets built from their corpora.

Ready-made files are read unchanged. Built sets follow the paper's program: it shuffles the table of sentences and
takes the first rows. Each row gets the template of the published row (`published_prompts.csv`). Sets without published
prompts (development sets, other numbers of sentences) get the same templates in the same order.

`published_prompts.csv` has a row for each set of requests. `templates` has a letter for each row in published order:
its template's index (a: 0) in the dialect's list `all` of `dial8.json`. `prompts` is a hash of the prompts, without
their text. Both come from the released outputs (2,758 monolingual and 2,392 cross-lingual prompts of
JHU-CLSP/al-qasida at 34e4dba). No single run of the program gives the published templates.
"""

import csv
import hashlib
import io
import json
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, NamedTuple

from cultureval.prompts.alqasida.rows import LANGUAGES
from cultureval.runtime.data.row_files import PlacedRow, read_rows, utf8_text
from cultureval.runtime.errors import CulturevalError, MissingColumn
from cultureval.tasks.suite import Task

Row = dict[str, Any]
Files = tuple[list[Path], list[Path]]

ORDER_SEED = sum(b"mena")  # 417
MONOLINGUAL_ROWS, TRANSLATION_ROWS = 100, 200

# Columns of NADI 2023's tables, and of the output of the repository's `MADAR-Obtain-Tweets.py`.
NUMBERED = {"content": ("#2_content", "#4 Tweet Text"), "label": ("#3_label",)}
CROSS_LINGUAL = ("okapi", "sharegpt", "cohere")
READY_FOLDERS = {
    "btec": "btec/madar26",
    "flores": "wiki/flores",
    "tweet": "tweets/nadi2023",
    "habibi": "music/habibi",
    "okapi": "okapi",
    "sharegpt": "sharegpt",
    "cohere": "hehe",
}
# Dialect -> its country in tables of tweets and lyrics, its city in MADAR, its code in FLORES ("": none).
PLACES = {
    "dza": ("Algeria", "Algiers", ""),
    "egy": ("Egypt", "Cairo", "arz_Arab"),
    "kwt": ("Kuwait", "", ""),
    "mar": ("Morocco", "Fes", "ary_Arab"),
    "pse": ("Palestine", "Jerusalem", "ajp_Arab"),
    "sau": ("Saudi_Arabia", "Riyadh", "ars_Arab"),
    "sdn": ("Sudan", "Khartoum", ""),
    "syr": ("Syria", "Damascus", "apc_Arab"),
}
DIALECTS = tuple(PLACES)
COUNTRIES = {code: country for code, (country, _, _) in PLACES.items()}
CITIES = {code: city for code, (_, city, _) in PLACES.items() if city} | {"msa": "MSA", "eng": "English"}
FLORES_CODES = {code: flores for code, (_, _, flores) in PLACES.items() if flores}
FLORES_CODES |= {"msa": "arb_Arab", "eng": "eng_Latn"}
OWN_ITEMS = ("habibi", "tweet")  # corpora with different items in each dialect
INSTRUCTION_ENDS = (3, 7, 10, 13, 16, 18, 21, 24)  # index after the last template of each of the 8 instructions
TEMPLATES, PREFIXES = "dial8.json", "5shot_prefixes.json"


class SetName(NamedTuple):
    """A task's name, parsed: `btec_egy` or `btec_egy_to_eng`; `source` of a monolingual set is its dialect."""

    corpus: str
    source: str
    target: str
    dev: bool

    @property
    def is_translation(self) -> bool:
        """Whether sentences are translated."""
        return self.source != self.target


def set_of(task: Task) -> SetName:
    """The set of a task, by its name and suite."""
    corpus, source, *rest = task.subset.split("_")
    return SetName(corpus, source, rest[-1] if rest else source, task.suite.endswith("_dev"))


def dialects_of(corpus: str) -> tuple[str, ...]:
    """The dialects that a corpus has, in the paper's order."""
    codes: Mapping[str, object] = {"btec": CITIES, "flores": FLORES_CODES}.get(corpus, COUNTRIES)
    return tuple(code for code in DIALECTS if code in codes)


# --- published prompts ----------------------------------------------------------------------------------------------

PUBLISHED, NOT_PUBLISHED = "published", "not the published prompts"


class PublishedSet(NamedTuple):
    """The templates of a published set's prompts, and a hash of the prompts.

    Attributes:
        templates: Indices in the dialect's list, from 0; () for cross-lingual sets.
    """

    templates: tuple[int, ...]
    prompts: str


@cache
def published_sets() -> dict[str, PublishedSet]:
    """The 28 monolingual and 24 cross-lingual sets, by corpus and dialect: `btec_egy`."""
    with package_files(__package__).joinpath("published_prompts.csv").open(encoding="utf-8", newline="") as stream:
        return {
            row["set"]: PublishedSet(tuple(ord(letter) - ord("a") for letter in row["templates"]), row["prompts"])
            for row in csv.DictReader(stream)
        }


def prompts_hash(prompts: Iterable[str]) -> str:
    """First sixteen hexadecimal digits of the SHA-256 of prompts in their order; white space counts as one space."""
    text = "\n".join(" ".join(prompt.split()) for prompt in prompts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def which_prompts(rows: Sequence[Mapping[str, Any]]) -> str:
    """`PUBLISHED` if a set's prepared rows (`prompt`, `genre`, `dialect`) have the published prompts in order."""
    published = published_sets().get(f"{rows[0]['genre']}_{rows[0]['dialect']}")
    same = published is not None and published.prompts == prompts_hash(str(row["prompt"]) for row in rows)
    return PUBLISHED if same else NOT_PUBLISHED


# --- ready-made files -----------------------------------------------------------------------------------------------


def find_ready(folder: Path, task: Task) -> Files:
    """The set's csv file, the file of templates if it exists, and the published few-shot examples."""
    name = set_of(task)
    data = folder / "data_processing" / "data"
    if name.corpus in CROSS_LINGUAL:
        file = data / "xling" / READY_FOLDERS[name.corpus] / f"{name.target}.csv"
    else:
        place = READY_FOLDERS[name.corpus] + ("-dev" if name.dev else "")
        pair = f"{name.source}-{name.target}" if name.is_translation else name.target
        file = data / ("bi" if name.is_translation else "mono") / place / f"{pair}.csv"
    if not file.is_file():
        return [], []
    return [file, *_files_named(folder, TEMPLATES)], _examples(folder, name)


def read_ready(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """Rows of a ready-made file with the features of the analysis, or the few-shot examples."""
    name = set_of(task)
    if files and files[0].name == PREFIXES:
        yield from _read_examples(files[0], name)
        return
    templates = _templates(files[1:], name.target) if not name.is_translation else []
    for file in files[:1]:
        rows = read_rows(file)
        clusters = same_requests(rows, name) if rows and "phrasing" in rows[0] else range(len(rows))
        for number, (row, place) in enumerate(zip(rows, clusters, strict=True)):
            cluster = {"cluster": _cluster(name, place)}
            yield PlacedRow(file.name, number, row | cluster | features_of(row, name, templates))


# --- sets built from corpora ------------------------------------------------------------------------------------------


def find_corpus(folder: Path, task: Task) -> Files:
    """The files of a corpus, one for each language, anywhere below the folder, and the templates."""
    name = set_of(task)
    languages = [name.source, name.target] if name.is_translation else [name.target]
    files = [found[0] for code in languages if (found := _corpus_files(folder, name, code))]
    templates = [] if name.is_translation else _files_named(folder, TEMPLATES)[:1]
    complete = len(files) == len(languages) and (name.is_translation or _has_dialect(files[0], templates, name))
    return ([*files, *templates], _examples(folder, name)) if complete else ([], [])


def _has_dialect(file: Path, templates: list[Path], name: SetName) -> bool:
    """Whether the templates, and the table of a corpus of several countries, have the dialect."""
    if not templates or name.target not in json.loads(utf8_text(templates[0])):
        return False
    least = MONOLINGUAL_ROWS if _leftover(name) else 0
    return name.corpus not in OWN_ITEMS or len(_sentences(file, name)) > least


def read_corpus(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """The set built from its corpus, in the published order.

    Raises:
        CulturevalError: The two sides of a translation set differ in length or ids.
        MissingColumn: A column is missing.
    """
    name = set_of(task)
    if files and files[0].name == PREFIXES:
        yield from _read_examples(files[0], name)
    elif files and name.is_translation:
        yield from _build_translations(files, name)
    elif files:
        yield from _build_requests(files, name)


def shuffled(count: int) -> list[int]:
    """The published order of a table of `count` rows: pandas' `sample(frac=1, random_state=417)`."""
    import numpy as np

    return np.random.RandomState(ORDER_SEED).choice(count, count, replace=False).tolist()


def _build_requests(files: Sequence[Path], name: SetName) -> Iterator[PlacedRow]:
    templates = _templates(files[1:], name.target)
    sentences = [sentence for _, sentence in _sentences(files[0], name)]
    published = published_sets()[f"{name.corpus}_{name.target}"].templates
    order = shuffled(len(sentences))
    chosen = order[MONOLINGUAL_ROWS:] if _leftover(name) else order[:MONOLINGUAL_ROWS]
    for place, number in enumerate(chosen):
        template = templates[published[place % len(published)] % len(templates)]
        row = {"prompt": template.replace("{}", sentences[number]), "cluster": _cluster(name, place)}
        yield PlacedRow(files[0].name, number, row | features_of(row, name, templates), _of_set(files[0], name))


def _of_set(file: Path, name: SetName) -> Path:
    """The file name of a set in manifests of audits; several sets use the same records of one file."""
    languages = f"{name.source}_to_{name.target}" if name.is_translation else name.target
    return file.with_name(f"{file.name}@{name.corpus}_{languages}{'_dev' * name.dev}")


def _leftover(name: SetName) -> bool:
    """HABIBI has one table: its development set is the rows that the test set does not use."""
    return name.dev and name.corpus == "habibi"


def _build_translations(files: Sequence[Path], name: SetName) -> Iterator[PlacedRow]:
    source, target = (_sentences(file, name) for file in files)
    if len(source) != len(target) or any(a != b for (a, _), (b, _) in zip(source, target, strict=True)):
        raise CulturevalError(
            f"{files[0].name} and {files[1].name} do not have the same sentences in the same order "
            f"({len(source)} and {len(target)} in this split): use the two files of one release."
        )
    for place, number in enumerate(shuffled(len(source))[:TRANSLATION_ROWS]):
        row = {"sentence": source[number][1], "completion": target[number][1], "from": name.source}
        about = {"dialect": name.target, "genre": name.corpus, "cluster": _cluster(name, place)}
        yield PlacedRow(files[0].name, number, row | about, _of_set(files[0], name))


def _corpus_files(folder: Path, name: SetName, code: str) -> list[Path]:
    if name.corpus == "btec":
        return _files_named(folder, f"MADAR.corpus.{CITIES[code]}.tsv")
    if name.corpus == "tweet":
        return [] if name.dev else _files_named(folder, "NADI2023_Subtask1_DEV.tsv")
    if name.corpus == "habibi":
        return _files_named(folder, "arabicLyrics_cleaned.csv")
    split = "dev" if name.dev else "devtest"
    return _files_named(folder, f"{FLORES_CODES[code]}.{split}")


def _sentences(file: Path, name: SetName) -> list[tuple[str, str]]:
    """Ids and sentences of the split or country in a corpus file, in its order."""
    if name.corpus == "flores":
        lines = utf8_text(file).replace("\r\n", "\n").removesuffix("\n").split("\n")
        return [(str(number), line.strip()) for number, line in enumerate(lines)]
    table = _table(file)
    if name.corpus == "btec":
        split = "dev" if name.dev else "test"
        rows = [row for row in table if _cell(row, file, "split").endswith(f"corpus-26-{split}")]
        return [(_cell(row, file, "sentID.BTEC"), _cell(row, file, "sent")) for row in rows]
    column, label = ("Lyrics", "SingerNationality") if name.corpus == "habibi" else ("content", "label")
    country = COUNTRIES[name.target]
    rows = [(number, row) for number, row in enumerate(table) if _cell(row, file, label) == country]
    return [(str(number), _cell(row, file, column)) for number, row in rows]


def _table(file: Path) -> list[Row]:
    """The rows of a table of texts; a single quote inside a text is harmless."""
    csv.field_size_limit(10_000_000)
    lines = io.StringIO(utf8_text(file), newline="")
    return list(csv.DictReader(lines, delimiter="\t" if file.suffix == ".tsv" else ","))


def _cell(row: Row, file: Path, column: str) -> str:
    """A cell; NADI's tables, and those of its program for tweets, number their columns."""
    for name in (column, *NUMBERED.get(column, ())):
        if name in row:
            return row[name] or ""
    raise MissingColumn(f"{file.name}: no column {column!r}; columns found: {', '.join(map(str, row))}")


# --- features and examples ------------------------------------------------------------------------------------------


def same_requests(rows: Sequence[Row], name: SetName) -> list[int]:
    """For each row, the index of the first row with the same request; only the place of the language's name differs.

    Two prompts are one request if they share 80 % of their words, without the words for the language. In the released
    prompts, one request's prompts share at least 0.9, others at most 0.3, and short prompts of one pattern (the capital
    of two countries) about 0.7.
    """
    firsts: dict[int, frozenset[str]] = {}
    found = []
    for number, row in enumerate(rows):
        phrasing = str(row.get("phrasing") or "{language_requested}")
        language = phrasing.format(language_requested=LANGUAGES[name.target])
        bare = re.sub(re.escape(language), " ", str(row.get("prompt") or ""), flags=re.IGNORECASE)
        words = frozenset(re.findall(r"\w+", bare.lower()))
        same = (
            first
            for first, other_words in firsts.items()
            if 5 * len(words & other_words) >= 4 * len(words | other_words)
        )
        found.append(next(same, number))
        firsts.setdefault(found[-1], words)
    return found


def _cluster(name: SetName, place: int) -> str:
    """The cluster of a request or sentence, which all dialects share; "" if each dialect has its own items."""
    return "" if name.corpus in OWN_ITEMS else f"{name.corpus}{'_dev' * name.dev}:{place}"


def instruction_of(prompt: str, templates: Sequence[str]) -> str:
    """`type_0` to `type_7`: the instruction of the longest template that matches a prompt; "" if none matches."""
    best, found = -1, ""
    for number, template in enumerate(templates):
        start, _, end = template.partition("{}")
        size = len(start) + len(end)
        if best < size <= len(prompt) and prompt.startswith(start) and prompt.endswith(end):
            best, found = size, f"type_{bisect(INSTRUCTION_ENDS, number)}"
    return found


def features_of(row: Mapping[str, Any], name: SetName, templates: Sequence[str]) -> Row:
    """A row's fields for the analysis: `dialect`, `genre`; for a monolingual prompt also `template`, `location`."""
    prompt = str(row.get("prompt") or "")
    features = {"dialect": name.target, "genre": name.corpus}
    if name.is_translation or "phrasing" in row:
        return features
    location = "beginning" if prompt.startswith('"') else "end" if prompt.endswith('"') else "middle"
    return features | {"template": instruction_of(prompt, templates), "location": location}


def _templates(files: Sequence[Path], dialect: str) -> list[str]:
    """The dialect's templates, each with one slot; [] without the file of templates."""
    if not files:
        return []
    try:
        templates = json.loads(utf8_text(files[0]))[dialect]["all"]
    except (KeyError, ValueError) as error:
        raise CulturevalError(f"{files[0]} has no templates for {dialect} ({error}).") from error
    if not templates or any(template.count("{}") != 1 for template in templates):
        raise CulturevalError(f"{files[0]}: a template for {dialect} must have {{}} exactly once.")
    return templates


def _examples(folder: Path, name: SetName) -> list[Path]:
    if name.is_translation:
        return []
    files = _files_named(folder, PREFIXES)[:1]
    return files if files and name.target in json.loads(utf8_text(files[0]))["monolingual"] else []


def _read_examples(file: Path, name: SetName) -> Iterator[PlacedRow]:
    """The few-shot examples in a dialect's published prefix.

    Raises:
        CulturevalError: The prefix is not a series of `Q: ...`, `A: ...` with blank lines between.
    """
    prefix = json.loads(utf8_text(file))["monolingual"][name.target]
    pairs = re.findall(r"Q: (.*?)\nA: (.*?)\n\n", prefix, flags=re.DOTALL)
    if "".join(f"Q: {question}\nA: {answer}\n\n" for question, answer in pairs) + "Q: " != prefix:
        raise CulturevalError(f"{file}: the prefix for {name.target} is not a series of questions and answers.")
    for number, (question, answer) in enumerate(pairs):
        row = {"prompt": question, "answer": answer, "dialect": name.target}
        yield PlacedRow(file.name, number, row, file.with_name(f"{file.name}@{name.target}"))


def _files_named(folder: Path, name: str) -> list[Path]:
    return sorted(path for path in folder.rglob(name) if path.is_file())
