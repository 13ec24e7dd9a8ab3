"""Signatures of a run: for each group of tasks all that its scores depend on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cultureval.runs.record import SignatureRecord
from cultureval.runtime.data.image_store import PREPARED
from cultureval.runtime.doc_fields import PAPER, REASONED
from cultureval.runtime.errors import escaped
from cultureval.runtime.patches.lighteval.stock_runs import stock_facts
from cultureval.runtime.settings import current_settings
from cultureval.runtime.signatures import combined_hash, installed_versions, signature
from cultureval.tasks.catalogue import all_suites, all_tasks, group_of, groups, kind_of, name_and_shots
from cultureval.tasks.running import FinishedRun


def signature_record(group: str, **fields: object) -> SignatureRecord:
    """The signature of a group (`group|k`) as data and text, with fields in order; None is left out."""
    known = {name: value for name, value in fields.items() if value is not None}
    return SignatureRecord(group=group, fields=known, text=signature(**known))


def signature_of_line(group: str, line: str) -> SignatureRecord:
    """The signature from its line (`runtime.signatures.signature`); all values are texts."""
    parts = (part.partition(":") for part in line.split("|"))
    return SignatureRecord(group=group, fields={name: value.replace("%7C", "|") for name, _, value in parts}, text=line)


def signatures_of(run: FinishedRun) -> tuple[SignatureRecord, ...]:
    """One signature per group of tasks and number of few-shot examples, in the order of their texts."""
    reports: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    generated: dict[str, bool] = {}
    for name, task in run.tasks.items():
        report = getattr(task.config, "rows_report", None)
        if report is None:  # another package's task
            continue
        bare, shots = name_and_shots(name)
        parity, prompt = asked_in_run(run.model, name, report)
        report = report | {"parity": parity, "prompt": prompt}
        group = group_of(bare)
        reports.setdefault((group, shots, task.version), []).append(report)
        generated[group] = (task.config.generation_size or 0) > 0
    backends = {way: _backend(run.model, way) for way in {True, *generated.values()}}
    renders_chats = backends[True].get("backend") == "server" and backends[True].get("chat") == "on"
    prepares = not stock_facts(run.model)["signature"]  # LightEval's own backends open the files themselves
    signed = [
        signature_record(
            f"{group}|{shots}",
            task=f"{group}/{shots}-shot/v{version}",
            subsets=len(members),
            rows=sum(report["rows"] for report in members),
            limit=run.limit,
            data=",".join(sorted({f"{report['source']}@{report['revision'][:8]}" for report in members})),
            manifest=manifest_field(members),
            form=",".join(sorted({report["form"] for report in members})),
            rows_hash=combined_hash(report["fingerprint"] for report in members),
            prompt=",".join(sorted({report["prompt"] for report in members})),
            parity=_parity(members, renders_chats and generated[group]),
            scorer=scorer_of(group),
            options=options_of(group),
            judges=judge_signatures(group),
            images=PREPARED if prepares and all_tasks()[groups()[group][0]].images else None,
            **backends[generated[group]],
            **installed_versions(),
        )
        for (group, shots, version), members in reports.items()
    ]
    return tuple(sorted(signed, key=lambda record: record.text))


def manifest_field(reports: list[dict[str, Any]]) -> str | None:
    """The manifest's hash and the number of rows that it left out of the group; None without a manifest."""
    found = [manifest for report in reports if (manifest := report.get("manifest"))]
    if not found:
        return None
    hashes, discarded = (
        sorted({manifest["hash"] for manifest in found}),
        sum(manifest["discarded"] for manifest in found),
    )
    return f"{'+'.join(hashes)}-{discarded}"


def _backend(model: Any, generated: bool) -> dict[str, str]:
    """The backend's signature fields for generated texts, or for scores of choices."""
    of_server = getattr(model, "signature_fields_of", None)
    if of_server:
        return of_server(generated)
    return getattr(model, "signature_fields", dict)() or stock_facts(model)["signature"]


def _parity(reports: list[dict[str, Any]], bos_of_server: bool) -> str | None:
    """The tokenization of a group's prompts; None for tasks without the option `parity`."""
    found = ",".join(sorted({report["parity"] for report in reports} - {""}))
    return f"{found} but for the server's BOS" if bos_of_server and found == PAPER else found or None


def asked_in_run(model: Any, task: str, report: Mapping[str, Any]) -> tuple[str, str]:
    """The actual tokenization of a task's prompts (with `|k`), and the prompts' hash.

    Each of LightEval's own backends has one tokenization. Scores by first tokens or after reasoning are told
    instead; after reasoning labels are still tokenized as the parity says.
    """
    parity, prompt = report.get("parity", ""), report.get("prompt", "")
    if way := getattr(model, "scored_by", {}).get(task):
        return way, prompt if way == REASONED else prompt.removesuffix(f"+{PAPER}")
    stock = stock_facts(model)["signature"].get("backend")
    if parity and stock:
        parity = PAPER if "VLLM" in stock else f"that of {stock}"
    return parity, prompt


def scorer_of(group: str) -> str | None:
    """The scoring models or programs of a group; None without any."""
    instrument = kind_of(groups()[group][0]).instrument
    return instrument.name() if instrument else None


def options_of(group: str) -> str | None:
    """The options of a group's suite that differ from their defaults, without secrets and unsigned ones."""
    settings, suite = current_settings(), all_suites()[all_tasks()[groups()[group][0]].suite]
    values = [(option, option.read(settings)) for option in suite.part("options") if option.signed]
    return ",".join(f"{option.name}={_plain(value)}" for option, value in values if value != option.default) or None


def _plain(value: object) -> str:
    """A value in a list of options; a text with commas, control characters or a first quote is JSON."""
    text = str(value)
    clear = "," not in text and not text.startswith('"') and escaped(text) == text
    return text if clear or not isinstance(value, str | Path) else escaped(json.dumps(text, ensure_ascii=False))


def judge_signatures(group: str) -> str | None:
    """The signature of a group's judges; None without a judge."""
    from cultureval.metrics.judges.judge import signatures_of_judges

    templates = dict.fromkeys(name for task in groups()[group] for name in kind_of(task).judge_templates)
    return signatures_of_judges(*templates) if templates else None
