"""A run whose answers come from batch files (`runtime/servers/batch_files.py`) instead of from a server."""

from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path

from lighteval.tasks.requests import Doc

from cultureval.models.server.settings import ServerModelConfig
from cultureval.runtime import processes
from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import BatchWritten, CulturevalError
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse, name_of
from cultureval.runtime.printing import print_note
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.batch_files import (
    DIFFERENT,
    MISSING,
    BatchRequest,
    BatchWriter,
    Recorder,
    custom_id,
    read_answers,
)
from cultureval.runtime.servers.errors import ModelChanged
from cultureval.runtime.servers.journalled_answers import Question
from cultureval.runtime.settings import current_settings

BATCH_KINDS = {MISSING: "batch_missing", DIFFERENT: "batch_different"}
MIXED = (
    "The batch's answers, with those of earlier runs, are of more than one model ({models}). Give files of one model, "
    "or pass --no-resume, which passes over earlier answers"
)
BOTH = "; or pass --on-change continue (CULTUREVAL_ON_CHANGE=continue), which marks the results as mixed"
OTHER = (
    "than are kept of this model and these requests: it is of another batch, or of another model under "
    "its name. To score the file pass --no-resume, which passes over earlier answers; to score what is kept leave "
    "--batch-in out."
)


class RunBatch:
    """The batch files of one run: takes answers out of some, and writes requests to others."""

    def __init__(self, config: ServerModelConfig) -> None:
        """Reads the answers.

        Raises:
            CulturevalError: A file cannot be read or exists already, or several processes share the run.
        """
        if processes.process_count() > 1:
            raise CulturevalError("A run with batch files is one process: start it without accelerate launch.")
        self._asks = config.batch_missing == "ask"
        self._choices, self._reads = config.n, bool(config.batch_in)
        self._answers = read_answers([Path(file).expanduser() for file in config.batch_in])
        size = int(config.batch_mib * 2**20)
        out = config.batch_out
        self._writer = BatchWriter(Path(out).expanduser(), config.batch_requests, size) if out else None

    def answer(
        self,
        docs: Sequence[Doc],
        asked: Sequence[Mapping[str, Question]],
        known: Mapping[str, Answer],
        others: Container[str],
        file: Callable[[Mapping[str, Answer]], None],
        waste: Callable[[str, Sequence[Answer]], None],
    ) -> dict[str, RefusedResponse]:
        """Takes the batch's answers, and puts the requests that have none into the files.

        Args:
            docs: The docs.
            asked: The requests of each: key of the answer -> question.
            known: The journal's answers, which are not asked for again, by their keys.
            others: Those of them that another model gave, which give way to the batch's.
            waste: Called with a key and the answers to it that were paid and are of no use.
            file: Called with the batch's answers by their keys, to put them into the journal; raises to refuse them.

        Returns:
            Keys that are not to be asked of a server -> what stands for their answers.

        Raises:
            ModelChanged: They, and those of the journal, are of more than one model, and the run does not go on.
            CulturevalError: The files have other answers than the journal.
        """
        found: dict[str, Answer] = {}
        other: dict[str, Answer] = {}
        reasons: dict[str, RefusedResponse] = {}
        rows: dict[str, str] = {}
        for doc, own in zip(docs, asked, strict=True):
            row = f"{specific_of(doc).get('source_row', doc.id)}\n{doc.query}"
            for key, question in own.items():
                if key in found or key in reasons:
                    continue
                identifier = custom_id(doc.task_name, row, key)
                if key in known and key not in others:
                    other |= self._other(identifier, question, known[key])
                elif answer := self._answers.take(identifier, self._wanted(question)):
                    found[key] = answer | {"batch": True}
                elif key in known:
                    continue
                elif self._writer:
                    recorded = _recorded(question)
                    self._writer.add(BatchRequest(identifier, recorded["url"], recorded["body"]))
                    reasons[key] = RefusedResponse(reason="its request is in a batch file", kind="batch_missing")
                elif not self._asks:
                    why = self._answers.failed[identifier]
                    reasons[key] = RefusedResponse(reason=why, kind=BATCH_KINDS.get(why, "batch_failed"))
                waste(key, self._answers.unused.get(identifier, ()))
                rows[identifier if identifier in other else key] = name_of(doc)
        _require_one_model({**known, **found, **other}, rows, "" if other else BOTH)
        if other:
            raise CulturevalError(f"The file has other answers ({len(other):,}, such as {next(iter(other))}) {OTHER}")
        file(found)
        return reasons

    def _other(self, identifier: str, question: Question, kept: Answer) -> dict[str, Answer]:
        """The files' answer by its id, if it is another one than is kept, whatever was counted and billed."""
        self._answers.asked.add(identifier)
        answer = self._answers.take(identifier, self._wanted(question)) if identifier in self._answers.bodies else None
        self._answers.unused.pop(identifier, None)  # counted with the kept one
        told = {name for name, value in (answer or {}).items() if value is not None and kept.get(name) is not None}
        same = answer is None or all(answer[name] == kept[name] for name in told - {"batch", "usage"})
        return {} if same else {identifier: answer}

    def _wanted(self, question: Question) -> int:
        return 1 if self._choices == 1 else _recorded(question)["body"].get("n") or 1

    def finish(self) -> None:
        """Says what did not fit, and ends the run where requests were written.

        Raises:
            BatchWritten: Requests were written.
        """
        for warning in self._answers.warnings() if self._reads else ():
            print_note(warning)
        if self._writer and (files := self._writer.close()):
            raise BatchWritten(files, self._writer.count)


def _require_one_model(answers: Mapping[str, Answer], rows: Mapping[str, str], more: str) -> None:
    """Raises ModelChanged where answers are of several models, and the run does not go on; `more` it may advise.

    `rows` are the names of rows, by the keys of the answers.
    """
    models: dict[str, list[str]] = {}
    for key, answer in answers.items():
        if answer.get("model"):
            models.setdefault(answer["model"], []).append(rows.get(key, key))
    if len(models) > 1 and current_settings().on_change != "continue":
        ranked = sorted(models.items(), key=lambda one: -len(one[1]))
        told = "; ".join(f"{len(named):,} of {model}, such as {named[0]}" for model, named in ranked)
        raise ModelChanged(f"{MIXED.format(models=told)}{more}.")


def _recorded(question: Question) -> Answer:
    return run_coroutine(question(Recorder()))  # type: ignore[arg-type]
