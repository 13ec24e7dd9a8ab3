"""AL-QASIDA's sets from corpora of the upstream layouts, and what is refused."""

import csv
import json
from string import ascii_lowercase

import pytest

from cultureval.prompts.alqasida.rows import (
    prepare_translation,
)
from cultureval.prompts.preparation import Preparation
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import BadRow, CulturevalError, MissingColumn, SourceUnavailable
from cultureval.tasks.alqasida.sets import (
    COUNTRIES,
    PublishedSet,
    dialects_of,
    prompts_hash,
    published_sets,
    shuffled,
    which_prompts,
)
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import BrokenRows, forget_files, prepare_subset

pytestmark = pytest.mark.usefixtures("own_cache")

SAMPLES = samples_root() / "JHU-CLSP" / "al-qasida" / "data_processing"


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "root" / "JHU-CLSP" / "al-qasida"
    folder.mkdir(parents=True)
    return folder


def rows_of(name, root):
    forget_files()
    subset = prepare_subset(all_tasks()[name], DataOptions(root=root))
    return [json.loads(line) for line in (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()]


def write_madar(folder, city, sentences, ids=None, split="test"):
    lines = [f"{ids[n] if ids else n}\tcorpus-6-test-corpus-26-{split}\tX\t{text}" for n, text in enumerate(sentences)]
    lines.append("900\tcorpus-6-test-corpus-26-train\tX\tno")
    text = "sentID.BTEC\tsplit\tlang\tsent\n" + "".join(line + "\n" for line in lines)
    (folder / f"MADAR.corpus.{city}.tsv").write_text(text, encoding="utf-8")


def test_translation_sets_take_the_first_200_of_the_shuffled_corpus(repository, tmp_path):
    write_madar(repository, "Cairo", [f"جملة {n}" for n in range(250)])
    write_madar(repository, "English", [f'a "lone quote {n}' for n in range(250)])
    rows = rows_of("alqasida_mt:btec_egy_to_eng", tmp_path / "root")
    assert [row["source"] for row in rows] == [f"جملة {n}" for n in shuffled(250)[:200]]
    assert rows[0]["answer"] == f'a "lone quote {shuffled(250)[0]}'
    assert rows[0]["prompt"] == (
        "Translate from Egyptian Arabic into English. Output only the translation, do NOT output anything else before "
        f"nor after it.\n{rows[0]['source']}\nTranslation:"
    )
    again = prepare_translation({"prompt": rows[0]["prompt"], "completion": "x"}, Preparation())
    assert again["source"] == rows[0]["source"]


def test_two_sides_of_other_sentences_are_refused(repository, tmp_path):
    write_madar(repository, "Cairo", ["أ", "ب"], ids=[1, 2])
    write_madar(repository, "English", ["a", "b"], ids=[1, 3])
    with pytest.raises(CulturevalError, match="same sentences in the same order"):
        rows_of("alqasida_mt:btec_egy_to_eng", tmp_path / "root")


def test_development_sets_are_another_split(repository, tmp_path):
    for city in ("Cairo", "English"):
        write_madar(repository, city, [f"{city} {n}" for n in range(3)], split="dev")
    assert len(rows_of("alqasida_dev_mt:btec_egy_to_eng", tmp_path / "root")) == 3
    with pytest.raises(CulturevalError, match="no row is left"):
        rows_of("alqasida_mt:btec_egy_to_eng", tmp_path / "root")
    with (SAMPLES / "monotexts" / "HABIBI" / "arabicLyrics_cleaned.csv").open(encoding="utf-8", newline="") as file:
        head, *lyrics = csv.reader(file)
    with (repository / "arabicLyrics_cleaned.csv").open("w", encoding="utf-8", newline="") as file:
        egyptian = [row for row in lyrics if row[8] == "Egypt"][0]
        csv.writer(file).writerows([head, *(egyptian[:7] + [f"غنوة {n}"] + egyptian[8:] for n in range(151))])
    (repository / "dial8.json").write_bytes((SAMPLES / "prompt_templates" / "json" / "dial8.json").read_bytes())
    test = rows_of("alqasida_mono:habibi_egy", tmp_path / "root")
    dev = rows_of("alqasida_dev_mono:habibi_egy", tmp_path / "root")
    assert (len(test), len(dev)) == (100, 51)
    assert not {row["source_row"] for row in test} & {row["source_row"] for row in dev}


def test_flores_without_the_repository(tmp_path):
    folder = tmp_path / "root" / "facebook" / "flores" / "flores200_dataset" / "devtest"
    folder.mkdir(parents=True)
    for code, word in {"apc_Arab": "شامي", "eng_Latn": "english"}.items():
        (folder / f"{code}.devtest").write_text("".join(f" {word} {n} \n" for n in range(3)), encoding="utf-8")
    rows = rows_of("alqasida_mt:flores_eng_to_syr", tmp_path / "root")
    assert [(row["source"], row["answer"]) for row in rows] == [(f"english {n}", f"شامي {n}") for n in shuffled(3)]
    with pytest.raises(SourceUnavailable, match="flores200_dataset.tar.gz"):
        rows_of("alqasida_mt:flores_eng_to_pse", tmp_path / "root")


def test_tweets_under_both_names_of_their_columns(repository, tmp_path):
    (repository / "dial8.json").write_bytes((SAMPLES / "prompt_templates" / "json" / "dial8.json").read_bytes())
    table = repository / "NADI2023_Subtask1_DEV.tsv"
    for head in ("id\tcontent\tlabel", "#1_id\t#2_content\t#3_label"):
        table.write_text(f"{head}\n1\tتغريدة\tEgypt\n2\tثانية\tSyria\n", encoding="utf-8")
        (row,) = rows_of("alqasida_mono:tweet_egy", tmp_path / "root")
        assert '"تغريدة"' in row["prompt"]
    got_by_id = "#1_id\t#2_tweet_id\t#3_label\t#4 Tweet Text\n1\t77\tEgypt\t"
    table.write_text(f"{got_by_id}تغريدة\n", encoding="utf-8")
    (row,) = rows_of("alqasida_mono:tweet_egy", tmp_path / "root")
    assert '"تغريدة"' in row["prompt"]
    table.write_text(f"{got_by_id}<UNAVAILABLE>\n", encoding="utf-8")
    with pytest.raises(BrokenRows, match="is not available"):
        rows_of("alqasida_mono:tweet_egy", tmp_path / "root")
    table.write_text("id\ttext\tlabel\n1\tتغريدة\tEgypt\n", encoding="utf-8")
    with pytest.raises(MissingColumn, match="'content'.*columns found: id, text, label"):
        rows_of("alqasida_mono:tweet_egy", tmp_path / "root")


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """All corpora in the layouts in which their owners have them, with invented sentences: the data root."""
    root = tmp_path_factory.mktemp("owner") / "root"
    folder = root / "JHU-CLSP" / "al-qasida" / "data_processing"
    madar = folder / "bitexts" / "MADAR.Parallel-Corpora-Public-Version1.1-25MAR2021" / "MADAR_Corpus"
    flores = folder / "bitexts" / "flores200_dataset" / "devtest"
    tweets, lyrics = folder / "monotexts" / "NADI2023_Release_Train" / "Subtask1", folder / "monotexts" / "HABIBI"
    for place in (madar, flores, tweets, lyrics, folder / "json"):
        place.mkdir(parents=True)
    for city in ("Algiers", "Cairo", "Fes", "Jerusalem", "Riyadh", "Khartoum", "Damascus"):
        write_madar(madar, city, [f"{city} {n}" for n in range(200)])
    for code in ("arz", "ary", "ajp", "ars", "apc"):
        (flores / f"{code}_Arab.devtest").write_text("".join(f"{code} {n}\n" for n in range(1012)), encoding="utf-8")
    rows = [f"{n}\ttweet {country} {n}\t{country}\n" for country in COUNTRIES.values() for n in range(100)]
    (tweets / "NADI2023_Subtask1_DEV.tsv").write_text("id\tcontent\tlabel\n" + "".join(rows), encoding="utf-8")
    sizes = {"Algeria": 87, "Palestine": 78, "Sudan": 93}
    rows = [f"lyrics {one} {n},{one}\n" for one in COUNTRIES.values() for n in range(sizes.get(one, 151))]
    (lyrics / "arabicLyrics_cleaned.csv").write_text("Lyrics,SingerNationality\n" + "".join(rows), encoding="utf-8")
    templates = {code: {"all": [f'{letter} "{{}}"' for letter in ascii_lowercase[:24]]} for code in COUNTRIES}
    (folder / "json" / "dial8.json").write_text(json.dumps(templates), encoding="utf-8")
    return root


@pytest.mark.parametrize(
    "name", [f"alqasida_mono:{one}" for one in ("btec_egy", "flores_pse", "tweet_kwt", "habibi_sdn")]
)
def test_owners_of_the_corpora_get_the_published_templates_in_the_published_order(corpora, name):
    """Their invented sentences are told from the paper's by the hash of the published prompts."""
    corpus, code = name.partition(":")[2].split("_")
    subset = prepare_subset(all_tasks()[name], DataOptions(root=corpora))
    rows = [json.loads(line) for line in (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()]
    count = {"btec": 200, "flores": 1012, "tweet": 100}.get(corpus) or {"dza": 87, "pse": 78, "sdn": 93}.get(code, 151)
    assert [int(row["prompt"].rstrip('"').split()[-1]) for row in rows] == shuffled(count)[:100]
    places = published_sets()[f"{corpus}_{code}"].templates
    assert [row["prompt"][0] for row in rows] == [ascii_lowercase[place] for place in places]
    assert subset.report["prompt"] == "not the published prompts"
    shared = [f"{corpus}:{place}" for place in range(len(rows))]
    assert [row["cluster"] for row in rows] == (shared if corpus in ("btec", "flores") else [""] * len(rows))


def test_published_prompts_are_known_by_their_order_and_wording(monkeypatch):
    prompts = ["ا  ب\u00a0ج", "د\nه"]
    monkeypatch.setitem(published_sets(), "btec_egy", PublishedSet((), prompts_hash(["ا ب ج", "د ه"])))
    rows = [{"prompt": prompt, "genre": "btec", "dialect": "egy"} for prompt in prompts]
    assert which_prompts(rows) == "published"
    for others in (rows[::-1], rows[:1], [rows[0], rows[1] | {"prompt": "د ة"}], [rows[0] | {"dialect": "kwt"}]):
        assert which_prompts(others) == "not the published prompts"
    assert dialects_of("flores") == ("egy", "mar", "pse", "sau", "syr") and "kwt" not in dialects_of("btec")


def test_a_broken_prefix_and_a_broken_prompt_are_refused(repository, tmp_path):
    for name in ("dial8.json", "arabicLyrics_cleaned.csv"):
        (repository / name).write_bytes(next(SAMPLES.rglob(name)).read_bytes())
    (repository / "5shot_prefixes.json").write_text(
        '{"monolingual": {"egy": "Q: a\\nB: b\\n\\nQ: "}}', encoding="utf-8"
    )
    with pytest.raises(CulturevalError, match="not a series of questions and answers"):
        rows_of("alqasida_mono:habibi_egy", tmp_path / "root")
    with pytest.raises(BadRow, match="not a request for a translation"):
        prepare_translation({"prompt": "ترجم", "completion": "x"}, Preparation())
