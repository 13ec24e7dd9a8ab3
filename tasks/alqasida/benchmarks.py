"""AL-QASIDA: dialectal Arabic in monolingual and cross-lingual requests and in translation, eight dialects.

Paper: "AL-QASIDA: Analyzing LLM Quality and Accuracy Systematically in Dialectal Arabic", arXiv 2412.04193; metrics
from section 3; data and templates from JHU-CLSP/al-qasida at 34e4dba.
Verified: sets, sizes, templates and sampling (released files), metrics of the released outputs.
Inferred from its program: the paper's models wrote 128 new tokens without stop strings.
Ours: the prompts of the development sets, with the templates of the test sets; HABIBI's development set, the lyrics
that are not in the test set; the names of the profiles.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from cultureval.metrics.alqasida import names
from cultureval.metrics.alqasida.dialect_models import check_models, model_names, models_signature
from cultureval.metrics.alqasida.translation import check_flores200, flores200_signature, flores200_source
from cultureval.metrics.declared import Metrics
from cultureval.prompts.alqasida import rows
from cultureval.prompts.preparation import Prepare
from cultureval.runtime.dotted_names import lazy_call
from cultureval.runtime.errors import all_of
from cultureval.tasks.alqasida import sets
from cultureval.tasks.alqasida.sets import which_prompts
from cultureval.tasks.suite import Benchmark, Instrument, Kind, Source, Subset, Suite

METRICS = "cultureval.metrics.alqasida.lighteval"
NEW_TOKENS = 128  # as the paper's program, which has no stop string


def request_signature(metrics: Metrics = names.FIDELITY) -> str:
    """The models that score replies to requests, and the profiles, for score signatures."""
    return f"{models_signature()},profiles={'+'.join(names.profiles_of(metrics, names.chosen_profiles()))}"


CLASSIFIERS = Instrument(request_signature, check_models, sources=model_names, needs="dialect classifiers")
CROSS_LINGUAL = Kind(
    *("alqasida_cross", "generation", names.FIDELITY, rows.request_prompt, lazy_call(f"{METRICS}:fidelity_metrics")),
    generation_size=NEW_TOKENS,
    instrument=CLASSIFIERS,
    few_shot_prompt=rows.request_prompt_few_shot,
)
MONOLINGUAL = replace(
    CROSS_LINGUAL,
    name="alqasida_mono",
    declared=names.MONOLINGUAL,
    metrics=lazy_call(f"{METRICS}:monolingual_metrics"),
    instrument=replace(CLASSIFIERS, name=partial(request_signature, names.MONOLINGUAL)),
)
TRANSLATION = Kind(
    "alqasida_mt",
    "translation",
    names.CORPUS_SCORES | names.FIDELITY_OF_TRANSLATIONS,
    rows.translation_prompt,
    lazy_call(f"{METRICS}:translation_metrics"),
    NEW_TOKENS,
    instrument=Instrument(
        lambda: f"{flores200_signature()},{models_signature()}",
        lambda: all_of([check_flores200, check_models]),
        sources=lambda: (*model_names(), *flores200_source()),
        needs="spBLEU's tokenizer, dialect classifiers",
    ),
)
KINDS = {kind.name: kind for kind in (CROSS_LINGUAL, MONOLINGUAL, TRANSLATION)}  # by the group

REPOSITORY = "JHU-CLSP/al-qasida"
COMMIT = "34e4dba"
GITHUB = "https://github.com/{}/archive/{}.tar.gz"
FLORES_FILES = "https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz"
FLORES_LICENCE = "CC-BY-SA-4.0; its authors ask not to re-host it as text that crawlers read"
MADAR_FORM = (
    "MADAR-26 by the form at https://camel.abudhabi.nyu.edu/madar-parallel-corpus (MADAR.corpus.*.tsv, any sub-folder)"
)
TWEETS = (
    "NADI2023_Subtask1_DEV.tsv from the organisers of NADI 2023, or the tweets by the ids that the repository holds "
    "(columns #3_label and #4 Tweet Text, or content and label; any sub-folder)"
)


def _source(repo: str, licence: str, prepare: Prepare, **more: Any) -> Source:
    fields: dict[str, Any] = {"form": "original", "as_curated": True, "on_hub": False}
    fields |= {"find": sets.find_corpus, "read": sets.read_corpus}
    fields |= {"prompts": which_prompts} if prepare is rows.prepare_request else {}
    return Source(repo, prepare=prepare, licence=licence, **fields | more)


def _sources(corpus: str, prepare: Prepare) -> tuple[Source, ...]:
    """The ready-made file, then the corpora from which it is built."""
    ready = _source(
        REPOSITORY,
        "none stated; HABIBI CC-BY-NC, cross-lingual prompts Apache-2.0",
        prepare,
        form="original" if corpus in sets.CROSS_LINGUAL else "curated",
        find=sets.find_ready,
        read=sets.read_ready,
        archive=GITHUB.format(REPOSITORY, COMMIT),
        archive_files=("data_processing/*", "eval/5shot_prefixes.json", "humevals/results/*"),
        revision=COMMIT,
        how_to_get=f"the files of https://github.com/{REPOSITORY}",
    )
    if corpus == "btec":
        terms, madar = "MADAR's own; its English side CC-BY", {"how_to_get": MADAR_FORM, "gated": True}
        return ready, _source(REPOSITORY, terms, prepare, **madar)
    if corpus == "tweet":
        return ready, _source(REPOSITORY, "X's terms: only ids are public", prepare, how_to_get=TWEETS, gated=True)
    if corpus == "habibi":
        return ready, _source(REPOSITORY, "CC-BY-NC per the repository, CC-BY-4.0 per drelhaj/Habibi", prepare)
    if corpus == "flores":
        archive = {"archive": FLORES_FILES, "archive_files": ("*_Arab.*", "*eng_Latn.*")}
        fairseq = _source(REPOSITORY, FLORES_LICENCE, prepare, how_to_get=FLORES_FILES)
        return ready, fairseq, _source("facebook/flores", FLORES_LICENCE, prepare, **archive)
    return (ready,)


def _requests(corpus: str, name: str, group: str, kind: Kind, sizes: dict[str, int]) -> Benchmark:
    return Benchmark(
        name=name,
        domain="Fidelity",
        group=group,
        sources=_sources(corpus, rows.prepare_request),
        subsets=tuple(Subset(f"{corpus}_{code}", rows=count, register="dialectal") for code, count in sizes.items()),
        kind=kind,
        template="alqasida/templates/as_given",
        shared_items="" if corpus in sets.OWN_ITEMS else corpus,
    )


def _translations(corpus: str, name: str, group: str) -> Benchmark:
    directions = [
        pair
        for code in sets.dialects_of(corpus)
        for pair in ((code, "eng"), ("eng", code), (code, "msa"), ("msa", code))
    ]
    return Benchmark(
        name=name,
        domain="Translation",
        group=group,
        sources=_sources(corpus, rows.prepare_translation),
        subsets=tuple(
            Subset(
                f"{corpus}_{a}_to_{b}", rows=200, register="dialectal", mean=f"{group}:_{corpus}_{direction_of(a, b)}"
            )
            for a, b in directions
        ),
        kind=TRANSLATION,
        template="alqasida/templates/translation",
        shared_items=corpus,
    )


def direction_of(source: str, target: str) -> str:
    """The direction of a translation, such as `dialect_to_eng`; means are over dialects, not over directions."""
    return "_to_".join(code if code in ("eng", "msa") else "dialect" for code in (source, target))


def _rows(corpus: str, count: int = 100, **counts: int) -> dict[str, int]:
    return {code: counts.get(code, count) for code in sets.dialects_of(corpus) if counts.get(code, count)}


BENCHMARKS = (
    _requests("btec", "BTEC", "alqasida_mono", MONOLINGUAL, _rows("btec")),
    _requests("flores", "FLORES", "alqasida_mono", MONOLINGUAL, _rows("flores")),
    _requests("tweet", "TWEET", "alqasida_mono", MONOLINGUAL, _rows("tweet")),
    _requests("habibi", "HABIBI", "alqasida_mono", MONOLINGUAL, _rows("habibi", dza=87, pse=78, sdn=93)),
    _requests("okapi", "Okapi", "alqasida_cross", CROSS_LINGUAL, _rows("okapi")),
    _requests("sharegpt", "ShareGPT", "alqasida_cross", CROSS_LINGUAL, _rows("sharegpt")),
    _requests("cohere", "Cohere", "alqasida_cross", CROSS_LINGUAL, _rows("cohere", 99)),
    _translations("btec", "BTEC", "alqasida_mt"),
    _translations("flores", "FLORES", "alqasida_mt"),
)
# The development sets are a separate suite, so that no average mixes them with the test sets. Tweets and cross-lingual
# requests have no development set.
DEV_BENCHMARKS = (
    _requests("btec", "BTEC", "alqasida_dev_mono", MONOLINGUAL, _rows("btec")),
    _requests("flores", "FLORES", "alqasida_dev_mono", MONOLINGUAL, _rows("flores")),
    _requests("habibi", "HABIBI", "alqasida_dev_mono", MONOLINGUAL, _rows("habibi", 51, dza=0, pse=0, sdn=0)),
    _translations("btec", "BTEC", "alqasida_dev_mt"),
    _translations("flores", "FLORES", "alqasida_dev_mt"),
)

TEST = Suite(
    name="alqasida",
    title="AL-QASIDA: fidelity, understanding and quality of Arabic in eight dialects",
    benchmarks=BENCHMARKS,
    options=names.OPTIONS,
    analysis="cultureval.reports.alqasida.analysis:write_analysis",
    ratings="cultureval.reports.alqasida.ratings:RATINGS",
    outputs="cultureval.reports.alqasida.scored_outputs:score_outputs",
    tables="cultureval.reports.alqasida.table:tables",
    page="docs/alqasida.md",
)
DEVELOPMENT = Suite(
    name="alqasida_dev",
    title="AL-QASIDA's development sets",
    benchmarks=DEV_BENCHMARKS,
    options=names.OPTIONS,
    tables="cultureval.reports.alqasida.table:development_tables",
    page="docs/alqasida.md",
)
SUITE = (TEST, DEVELOPMENT)
