"""QIMMA's ten multiple-choice and multi-select benchmarks with generated answers; not in the paper."""

from cultureval.tasks.choice_replies import generative_kinds, in_generative_form
from cultureval.tasks.qimma.benchmarks import BENCHMARKS as SCORED

BENCHMARKS = in_generative_form(SCORED, "qimma")
KINDS = generative_kinds("ar")
