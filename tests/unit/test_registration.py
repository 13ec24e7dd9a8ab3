"""Suites of other packages: by entry point, by path, by name; clashes, and one that cannot be loaded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from forked_commands import own_variables, run_forked

from cultureval.runtime.dotted_names import load_attribute
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import Settings
from cultureval.tasks.catalogue import all_suites, all_tasks, suites
from cultureval.tasks.harnesses.lm_eval_files import task_files
from cultureval.tasks.new_suite import write_suite as write_new_suite
from cultureval.tasks.options import read_data_options
from cultureval.tasks.registration import find_suites
from cultureval.tasks.suite import FUNCTIONS

SUITE = """
from cultureval.runtime.settings import Option
from cultureval.tasks.suite import Benchmark, MetricSet, Source, Subset, Suite

SOURCE = Source("lab/persian", "original", lambda row, preparation: row)
BENCHMARK = Benchmark(
    "Persian", "Knowledge", {group!r}, (SOURCE,), (Subset("fars"), Subset("tehran")),
    MetricSet("choice", "MCQ", ("acc",)), template="as_given", language="fa",
)
KINDS = {{}}
ORTHOGRAPHY = Option("orthography", "CULTUREVAL_PERSIAN_ORTHOGRAPHY", "modern", "how it is written", ("modern", "old"))
SUITE = Suite({name!r}, "Persian culture", (BENCHMARK,), "{module}:KINDS", options=(ORTHOGRAPHY,))
"""
MODULE = "persian_of_tests"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("persian_")]:
        del sys.modules[name]


def write_suite(folder: Path, module: str = MODULE, name: str = "persian", group: str = "persian_culture") -> Path:
    package = folder / module
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(SUITE.format(module=module, name=name, group=group), encoding="utf-8")
    return package


def install(folder: Path, value: str = f"{MODULE}:SUITE") -> None:
    """What pip leaves of a package with an entry point."""
    info = folder / "persian_suite-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: persian-suite\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[cultureval.suites]\npersian = {value}\n", encoding="utf-8")


def test_our_suites_are_listed_in_their_order():
    assert suites() == ["qimma", "qimma_gen", "jeem", "m2cqa", "aynvqa", "cvlue", "alqasida", "alqasida_dev"]
    assert list(dict.fromkeys(task.suite for task in all_tasks().values())) == suites()


def test_an_installed_suite_is_found_by_its_entry_point(folder):
    write_suite(folder)
    install(folder)
    found = find_suites()
    assert list(found.suites) == [*suites(), "persian"]
    assert [name for name, task in found.tasks.items() if task.suite == "persian"] == [
        "persian_culture:fars",
        "persian_culture:tehran",
    ]
    assert found.suites["persian"].part("kinds") == {}
    with pytest.raises(CulturevalError, match="'persian' has no kind 'choice'"):
        found.suites["persian"].kind("choice")


def test_a_suite_that_is_not_installed_is_named_by_module_file_or_folder(folder):
    elsewhere = folder / "not_on_the_path"
    package = write_suite(elsewhere, "persian_folder")
    file = elsewhere / "persian_file.py"
    file.write_text((package / "__init__.py").read_text(encoding="utf-8").replace("_folder", "_file"), encoding="utf-8")
    write_suite(folder)
    for place in (MODULE, str(package), str(file)):
        found = find_suites([place])
        assert len(found.tasks) == len(all_tasks()) + 2
        assert found.suites["persian"].part("kinds") == {}


def test_the_options_of_a_suite_are_read_with_ours(folder, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_PERSIAN_ORTHOGRAPHY", "old")
    named = Settings().with_(custom_suites=str(write_suite(folder)))
    assert read_data_options(named).suite == {**read_data_options().suite, "orthography": "old"}


def test_one_suite_named_twice_is_one(folder):
    write_suite(folder)
    install(folder)
    assert len(find_suites([MODULE, str(folder / MODULE)]).suites) == len(suites()) + 1


def test_two_suites_of_one_name_are_refused(folder):
    write_suite(folder)
    install(folder)
    other = write_suite(folder / "not_on_the_path", "persian_other", group="other_group")
    with pytest.raises(CulturevalError, match="Two suites are named 'persian'") as caught:
        find_suites([str(other)])
    assert "the package persian-suite" in str(caught.value)
    assert f"--custom-suites {other}" in str(caught.value)


def test_a_task_or_group_that_two_suites_share_is_refused(folder):
    package = write_suite(folder, group="qimma_aratrust")
    with pytest.raises(CulturevalError, match="'qimma_aratrust': 'qimma' of cultureval and 'persian' of --custom"):
        find_suites([str(package)])


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("persian_nowhere", "no such file or module"),
        ("persian_nowhere.py", "no such file"),
        ("./persian nowhere", "give the name of a module"),
        ("json", "has no SUITE"),
        ("{folder}/json.py", "another module named 'json'"),
        ("{folder}/persian_broken.py", "ZeroDivisionError"),
        ("{folder}/persian_odd.py", "must be a cultureval.tasks.suite.Suite, not int"),
    ],
)
def test_what_is_wrong_with_a_custom_suite_is_told(folder, place, message):
    for name, text in {"json": "", "persian_broken": "1 / 0", "persian_odd": "SUITE = 3"}.items():
        (folder / "files").mkdir(exist_ok=True)
        (folder / "files" / f"{name}.py").write_text(text, encoding="utf-8")
    place = place.format(folder=folder / "files")
    with pytest.raises(CulturevalError, match=message) as caught:
        find_suites([place])
    assert f"--custom-suites {place}" in str(caught.value)


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    own = own_variables(folder) | {"PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"} | variables
    return run_forked("cultureval.scripts.main", list(arguments), folder, own, loaded="ours")


def test_an_installed_suite_that_fails_breaks_none_of_ours(folder):
    (folder / f"{MODULE}.py").write_text("import persian_missing", encoding="utf-8")
    install(folder)
    listed = run(folder, "tasks", "--json")
    assert [record["task"] for record in json.loads(listed.stdout)] == list(all_tasks())
    told = "'persian' of the package persian-suite (persian_of_tests:SUITE) cannot be loaded: ModuleNotFoundError"
    assert told in listed.stderr
    asked = run(folder, "eval", "MODEL", "persian_culture:fars", "--data", "samples")
    assert asked.returncode == 2
    assert "no task, group or suite 'persian_culture:fars'" in asked.stderr
    assert asked.stderr.count(told) == 2  # where it is listed, and where the name is not found


def test_the_command_lists_a_custom_suite(folder, run_here):
    package = write_suite(folder / "not_on_the_path")
    expected = ["persian_culture:fars", "persian_culture:tehran"]
    by_option = run_here("tasks", "--suite", "persian", "--json", "--custom-suites", str(package))
    by_variable = run_here("tasks", "--suite", "persian", "--json", CULTUREVAL_CUSTOM_SUITES=str(package))
    project = folder / "projects" / package.name  # the package is in its folder src
    write_suite(project / "src")
    by_project = run(folder, "tasks", "--suite", "persian", "--json", "--custom-suites", str(project))
    for listed in (by_option, by_variable, by_project):
        assert [record["task"] for record in json.loads(listed.stdout)] == expected, listed.stderr


def test_a_suite_whose_kinds_cannot_be_used_is_listed_with_the_others(folder):
    """Its kinds are empty: what its tasks need cannot be known."""
    listed = run(folder, "tasks", "--custom-suites", str(write_suite(folder / "not_on_the_path")))
    assert listed.returncode == 0 and "'persian' has no kind 'choice'" in listed.stderr
    assert [name for name in [*suites(), "persian"] if f"\n{name} " not in listed.stdout] == []
    assert "cannot be loaded" in " ".join(listed.stdout.partition("persian")[2].split())


def test_the_options_of_suites_are_options_of_eval(folder, run_here):
    package = write_suite(folder / "not_on_the_path")
    text = (package / "__init__.py").read_text(encoding="utf-8")
    limit = 'Option("limit", "CULTUREVAL_PERSIAN_LIMIT", "5", "how many")'
    text = text.replace("(ORTHOGRAPHY,)", f"(ORTHOGRAPHY, {limit})") + BEFORE_RUN
    (package / "__init__.py").write_text(text, encoding="utf-8")
    custom = ("--custom-suites", str(package))
    listed = run_here("eval", "--help", *custom).stdout
    assert "--box-format" in listed and "--dialogue-layout <lines|one_line>" in listed and "--location" in listed
    assert "--orthography <modern|old>" in listed and "persian: how it is written." in listed
    assert "--orthography" not in run_here("eval", "--help").stdout
    asked = run_here("eval", "M", "persian_culture:fars", "--orthography", "old", *custom)
    assert "persian_culture:fars|0 is asked in the old way" in asked.stderr
    assert "--limit is another option of" in asked.stderr and "CULTUREVAL_PERSIAN_LIMIT" in asked.stderr
    refused = run_here("eval", "M", "persian_culture:fars", "--orthography", "new", *custom)
    assert refused.returncode == 2 and "'--orthography': 'new' is not one of 'modern', 'old'" in refused.stderr


def test_signatures_have_the_options_of_a_suite_that_nothing_else_shows(folder, monkeypatch):
    from cultureval.runs.signature import options_of

    monkeypatch.setenv("CULTUREVAL_CUSTOM_SUITES", str(write_suite(folder / "not_on_the_path")))
    monkeypatch.setenv("CULTUREVAL_BOX_FORMAT", "xyxy")
    assert options_of("persian_culture") is None
    monkeypatch.setenv("CULTUREVAL_PERSIAN_ORTHOGRAPHY", "old")
    assert options_of("persian_culture") == "orthography=old"
    assert options_of("cvlue_vg") is None  # the hash of the prompt shows it


def test_lm_eval_has_the_task_of_a_new_suite_which_has_the_suite_s_name(folder, monkeypatch):
    suite = write_new_suite("persian_riddles", list("1234"), "fa", folder)
    monkeypatch.setenv("CULTUREVAL_CUSTOM_SUITES", str(suite))
    files = task_files(["qimma", "persian_riddles"])
    assert [path for path in files if path.startswith("persian")] == ["persian_riddles/persian_riddles.yaml"]
    assert "task: persian_riddles\n" in files["persian_riddles/persian_riddles.yaml"]


@pytest.mark.parametrize("name", suites())
def test_all_that_our_suites_name_is_there(name):
    suite = all_suites()[name]
    for field in FUNCTIONS:
        assert getattr(suite, field) is None or callable(suite.part(field))
    assert suite.title
    assert suite.page.startswith("docs/") and (Path(__file__).parents[2] / suite.page).is_file()


BEFORE_RUN = """
from dataclasses import replace
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings


def refuse(tasks):
    raise CulturevalError(f"{tasks[0]} is asked in the {ORTHOGRAPHY.read(current_settings())} way")


SUITE = replace(SUITE, before_run=refuse)
"""

COMMANDS = """
from cultureval.reports.submissions import ScoredRow, ScoredSubmissions, ScoredTask


def compare(results: list[str]) -> None:
    \"\"\"Two runs of Persian.\"\"\"
    print("compared", *results)


def score(gold, pred, output_dir):
    rows = [ScoredRow(str(number), {"acc": float(number % 2)}) for number in range(4)]
    tasks = {"persian_culture:fars": ScoredTask(rows)}
    return ScoredSubmissions(f"scored {gold} {len(pred)} {output_dir}", [(pred, tasks)])


def only_text(gold, pred, output_dir):
    return "scored"


def score_outputs(pred, output_dir):
    return f"{len(pred)} files of outputs"


FORMATS = {"persian-essays": score, "persian-texts": only_text}
"""


def test_a_suite_brings_its_commands_along(folder, run_here):
    package = write_suite(folder / "not_on_the_path")
    with (package / "__init__.py").open("a", encoding="utf-8") as file:
        file.write("from dataclasses import replace\n")
        file.write(
            f"SUITE = replace(SUITE, comparison='{MODULE}.commands:compare', analysis='{MODULE}.lost:it', "
            f"submissions='{MODULE}.commands:FORMATS', outputs='{MODULE}.commands:score_outputs', ratings=5)\n"
        )
    (package / "commands.py").write_text(COMMANDS, encoding="utf-8")
    custom, variables = ("--custom-suites", str(package)), {"CULTUREVAL_CUSTOM_SUITES": str(package)}
    listed = run_here("compare", *custom, "--help").stdout
    assert "m2cqa" in listed
    assert "Two runs of Persian." in listed
    assert run_here("compare", "persian", "a", "b", *custom).stdout == "compared a b\n"
    assert "persian" in run_here("analyze", "--help", **variables).stdout
    (folder / "g").touch()
    files = ("--gold", "g", "--pred", "g", "--output-dir", "o")
    scored = run_here("score", "persian-essays", *files, "--model-name", "../me", *custom)
    assert scored.stdout.splitlines()[0] == "scored g 1 o", scored.stderr
    shown = run_here("show", "o", f"--custom-suites={package}").stdout
    assert shown.startswith("me, 20"), shown
    assert "persian_culture  0.5000 ±" in shown, shown
    refused = run_here("score", "persian-texts", *files, **variables)
    assert refused.returncode == 2 and "returned 'scored', not ScoredSubmissions" in refused.stderr
    outputs = run_here("score", "persian", "--pred", "g", "--output-dir", "o", *custom)
    assert outputs.stdout == "1 files of outputs\n" == (folder / "o/persian.txt").read_text(encoding="utf-8")
    near = run_here("compare", "persain", **variables).stderr
    assert (
        "No such file, folder or command 'persain'. Did you mean persian? There are runs, m2cqa, cvlue, persian."
        in near
    )
    rated = run_here("agreement", *custom, "persian", "human.csv").stderr
    assert "The suite 'persian' has no `ratings` of the type reports.human_ratings.HumanRatings." in rated
    lost = run_here("analyze", "persian", "a", "--b", **variables)
    assert (lost.returncode, lost.stderr) == (
        2,
        "cultureval: The suite 'persian', analysis: persian_of_tests.lost:it: it cannot be loaded: "
        "ModuleNotFoundError: No module named 'persian_of_tests.lost'\n",
    )


@pytest.mark.parametrize(
    "command", [("compare", "persian", "a"), ("analyze", "persian"), ("mirror", "persian", "--output-dir", "d")]
)
def test_commands_say_how_a_suite_is_named_that_is_not_installed(folder, run_here, command):
    done = run_here(*command)
    assert done.returncode == 2
    assert "CULTUREVAL_CUSTOM_SUITES" in done.stderr and "--custom-suites" in done.stderr


@pytest.mark.parametrize("name", ["json", "json:", "json:no such", "json:nothing", "persian_nowhere:SUITE"])
def test_a_dotted_string_that_names_nothing_is_told(name):
    with pytest.raises(CulturevalError, match=name):
        load_attribute(name)


def test_a_suite_that_exits_at_import_is_an_error_and_not_a_success(folder):
    (folder / "persian_exits.py").write_text("raise SystemExit(0)", encoding="utf-8")
    with pytest.raises(CulturevalError, match="--custom-suites persian_exits: it cannot be loaded: SystemExit: 0"):
        find_suites(["persian_exits"])
    with pytest.raises(CulturevalError, match="it cannot be loaded: SystemExit"):
        load_attribute("persian_exits:KINDS")
    install(folder, "persian_exits:SUITE")
    assert list(find_suites().suites) == suites()
    assert run(folder, "tasks").stderr.count("cannot be loaded: SystemExit") == 1


SUBSET = 'Subset("fars")'
REPLACED = [  # (text of the suite, what replaces it, what is said)
    ("options=(ORTHOGRAPHY,)", "options=5", "`options` is 5, not a list"),
    ("options=(ORTHOGRAPHY,)", 'order="first"', "`order` is 'first', not a whole number"),
    ('"orthography", "CULT', '"shuffle", "CULT', "Two options have the name 'shuffle'"),
    ('"CULTUREVAL_PERSIAN_ORTHOGRAPHY"', '"CULTUREVAL_DATA"', "Two options have the variable 'CULTUREVAL_DATA'"),
    ('"CULTUREVAL_PERSIAN_ORTHOGRAPHY"', '"PERSIAN"', "not of the form CULTUREVAL_NAME"),
    ("Suite('persian'", "Suite('qimma'", "Two suites are named 'qimma'"),
    ("Suite('persian'", "Suite('../x'", "means another folder"),
    ("Suite('persian'", "Suite('all'", "which LightEval uses"),
    ("'persian_culture'", "'jeem'", "Two suites have a task or group 'jeem'"),
    ("'persian_culture'", "'a:b'", "holds ':'"),
    (SUBSET, 'Subset("a/b|c")', r"holds '/' '|'"),
    (SUBSET, 'Subset("a\\x1bb")', "holds control characters"),
    (SUBSET, 'Subset("")', "is '', not a text"),
    (SUBSET, 'Subset("fars", aliases="f")', "`aliases` is 'f'"),
    (SUBSET, "5", "not a list of Subset"),
    ('"original"', '"curated"', "holds none of the form"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "told"), REPLACED)
def test_a_wrong_suite_is_left_out_where_installed_and_an_error_where_asked_for(folder, caplog, old, new, told):
    file = write_suite(folder) / "__init__.py"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(CulturevalError) as caught:
        find_suites([MODULE])
    assert told in str(caught.value) and f"--custom-suites {MODULE}" in str(caught.value)
    install(folder)
    found = find_suites()
    assert list(found.suites) == suites()
    (reason,) = found.failures.values()
    assert told in reason and "persian-suite" in reason
    assert reason in caplog.text


def test_all_that_is_wrong_with_a_suite_is_told_at_once(folder):
    file = write_suite(folder) / "__init__.py"
    text = file.read_text(encoding="utf-8").replace("options=(ORTHOGRAPHY,)", "options=5, order=None")
    file.write_text(text.replace('"fars"', '"a/b"'), encoding="utf-8")
    with pytest.raises(CulturevalError, match=r"`order` is None.*holds '/'.*`options` is 5"):
        find_suites([MODULE])


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        ('{"choice": 5}', "its kind 'choice' is 5"),
        ("5", "its kinds are 5"),
        ('{"choice": Kind(print, lambda: 1 / 0)}', "its kinds cannot be used: ZeroDivisionError"),
        ('{"choice": Kind(print, lambda: exit(0))}', "its kinds cannot be used: SystemExit"),
    ],
)
def test_an_installed_suite_with_wrong_kinds_has_no_place_in_the_table(folder, caplog, monkeypatch, kinds, told):
    from cultureval.tasks import catalogue, registration, task_table

    file = write_suite(folder) / "__init__.py"
    text = file.read_text(encoding="utf-8").replace("KINDS = {}", f"KINDS = {kinds}")
    file.write_text(f"from cultureval.tasks.kinds import Kind\n{text}", encoding="utf-8")
    ours = list(all_tasks())
    install(folder)
    found = find_suites()
    for module in (catalogue, registration, task_table):
        monkeypatch.setattr(module, "registered", lambda settings=None: found)
    assert [config.name for config in task_table.build_tasks_table()] == ours
    assert "'persian'" in caplog.text and told in caplog.text
    assert told in registration.unknown_name_hint()
    found.installed.clear()  # as if it were named by --custom-suites
    with pytest.raises(CulturevalError, match="'persian'"):
        task_table.build_tasks_table()


def test_a_link_is_loaded_and_a_module_that_is_a_file_is_hinted_at(folder, monkeypatch):
    package = write_suite(folder, "persian_folder")
    text = (package / "__init__.py").read_text(encoding="utf-8").replace("_folder", "_link")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "persian_link.txt").write_text(text, encoding="utf-8")
    (elsewhere / "persian_link.py").symlink_to(elsewhere / "persian_link.txt")
    monkeypatch.chdir(elsewhere)
    with pytest.raises(CulturevalError, match=r"give its path, \./persian_link\.py"):
        find_suites(["persian_link"])
    assert "persian" in find_suites(["./persian_link.py"]).suites


def test_a_suite_that_hangs_at_import_is_named(folder, monkeypatch, capsys):
    monkeypatch.setattr("cultureval.tasks.registration.SLOW_S", 0.05)
    package = write_suite(folder)
    (package / "slow.py").write_text("import time\ntime.sleep(0.5)\n", encoding="utf-8")
    text = (package / "__init__.py").read_text(encoding="utf-8")
    (package / "__init__.py").write_text(f"import {MODULE}.slow\n{text}", encoding="utf-8")
    assert "persian" in find_suites([MODULE]).suites
    assert f"still loading --custom-suites {MODULE}; if it hangs" in capsys.readouterr().err


def test_a_persian_name_may_hold_zero_width_non_joiners_inside_words(folder):
    file = write_suite(folder) / "__init__.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('Subset("fars")', 'Subset("ضرب‌المثل\u200cها")'), encoding="utf-8")
    assert "persian_culture:ضرب‌المثل‌ها" in find_suites([MODULE]).tasks
    file.write_text(text.replace('Subset("fars")', 'Subset("ها\u200c")'), encoding="utf-8")
    del sys.modules[MODULE]
    with pytest.raises(CulturevalError, match="holds"):
        find_suites([MODULE])


def test_the_hint_for_data_that_are_missing_fits_the_suite(folder):
    package = write_suite(folder / "not on the path")
    custom = ("--custom-suites", str(package))
    missing = run(folder, "eval", "M", "persian_culture:fars", "--data", "samples", *custom).stderr
    assert f"`cultureval mirror persian --custom-suites '{package}' --output-dir DIR` fetches it" in missing
    text = (package / "__init__.py").read_text(encoding="utf-8")
    (package / "__init__.py").write_text(
        "from cultureval.tasks.kinds import Kind\n"
        + text.replace("preparation: row)", "preparation: row, on_hub=False)").replace(
            "KINDS = {}", 'KINDS = {"choice": Kind(prompt=dict, metrics=list)}'
        ),
        encoding="utf-8",
    )
    missing = run(folder, "eval", "M", "persian_culture:fars", "--data", "samples", *custom).stderr
    assert "It is not on the hub: get it from its authors, put it below DIR/lab/persian" in missing
    mirrored = run(folder, "mirror", "persian", "--output-dir", str(folder / "mirror"), *custom)
    assert "lab/persian: not on the hub" in mirrored.stdout


def test_control_characters_of_errors_are_escaped(folder):
    (folder / "persian_bell.py").write_text(r"raise ValueError('a\x1b[2Jb\u202e')", encoding="utf-8")
    with pytest.raises(CulturevalError) as caught:
        find_suites(["persian_bell"])
    assert r"ValueError: a\x1b[2Jb\u202e" in str(caught.value)
