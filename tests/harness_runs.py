"""The same tasks, rows and model in LightEval's own command line, in ours and in lm-eval's, item by item."""

import json
from pathlib import Path

from forked_commands import own_variables, run_forked
from result_files import details_of, results_of
from stock_lighteval import stock_lighteval

from cultureval.tasks.harnesses.lm_eval_files import harness_name, write_task_files

SHORT = 16  # new tokens: random weights never end an answer
TIMEOUT = 3600  # seconds of a command


class Runs:
    """Runs of one model in a folder.

    Args:
        folder: Where the runs write.
        model: The model's folder.
        variables: Environment variables: data, scoring models.
        length: New tokens at most; None: as the tasks say. LightEval's own backend cuts prompts to that length.
    """

    def __init__(self, folder: Path, model: Path, variables: dict[str, str], length: int | None = SHORT) -> None:
        self.folder, self.model, self.length = folder, model, length
        self.variables = own_variables(folder) | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"} | variables

    def ours(self, tasks: list[str], *options: str, out: str = "ours") -> tuple[dict, dict]:
        """(results, details) of `cultureval eval`."""
        settings = (
            {}
            if self.length is None
            else {"CULTUREVAL_MODEL_SETTINGS": json.dumps({"generation_parameters": {"max_new_tokens": self.length}})}
        )
        command = [
            "eval",
            str(self.model),
            *tasks,
            "--output-dir",
            out,
            "--model-args",
            "device=cpu,dtype=float32",
            *options,
        ]
        run = self.command(command, settings)
        assert run.returncode == 0, run.stderr[-3000:]
        return results_of(self.folder / out)["results"], details_of(self.folder / out)

    def command(self, arguments: list[str], more: dict[str, str] | None = None, network: bool = False):
        """`cultureval ARGUMENTS`, with further variables, where it ended."""
        variables, main = self.variables | (more or {}), "cultureval.scripts.main"
        return run_forked(main, arguments, self.folder, variables, network, TIMEOUT, loaded="ours")

    def lighteval(self, tasks: list[str], *options: str, out: str = "stock") -> tuple[dict, dict]:
        """(results, details) of `lighteval accelerate`."""
        own = {name: value for name, value in self.variables.items() if name.startswith("CULTUREVAL_")}
        model = f"model_name={self.model},dtype=float32,batch_size=4"
        command = ("accelerate", model, ",".join(tasks), "--custom-tasks", "cultureval.tasks", "--save-details")
        stock_lighteval(self.folder, *command, "--output-dir", out, *options, **own)
        return results_of(self.folder / out)["results"], details_of(self.folder / out)

    def lm_eval(
        self,
        tasks: list[str],
        *options: str,
        kind: str = "hf",
        out: str = "lm_eval",
        group: str = "",
        served: str = "",
    ) -> tuple[dict, dict]:
        """(results, samples by task) of `lm_eval`, by LightEval's names of the tasks; a group replaces its tasks.

        Args:
            tasks: LightEval's names.
            *options: Of `lm_eval`.
            kind: Of its models.
            out: Folder of its output.
            group: Asked for in the place of its tasks.
            served: Its arguments of a model on a server of this machine, in the place of the folder.
        """
        arguments = served or f"pretrained={self.model},dtype=float32"
        model = ["--model", kind, "--model_args", arguments, "--device", "cpu"]
        names = [harness_name(task.partition("|")[0]) for task in tasks]
        named = [name for name in names if not (group and name.startswith(f"{group}_"))] + [group] * bool(group)
        command = [*model, "--include_path", str(write_task_files()), "--tasks", *named, "--batch_size", "4"]
        command += ["--output_path", out, "--log_samples", *options]
        command += [] if self.length is None else ["--gen_kwargs", f"max_gen_toks={self.length}"]
        run = run_forked("lm_eval", command, self.folder, self.variables, bool(served), TIMEOUT, loaded="lm_eval")
        assert run.returncode == 0, run.stderr[-3000:]
        (file,) = (self.folder / out).glob("**/results_*.json")
        results = json.loads(file.read_text(encoding="utf-8"))
        samples = {}
        for task, name in zip(tasks, names, strict=True):
            (file,) = (self.folder / out).glob(f"**/samples_{name}_20*.jsonl")
            rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
            samples[task] = sorted(rows, key=lambda row: row["doc_id"])
        return results, samples
