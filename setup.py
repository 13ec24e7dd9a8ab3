"""The packages of the wheel: each room (a folder beside this file) and the folders in it, as `cultureval.<room>`."""

from setuptools import find_packages, setup

ROOMS = ("tasks", "prompts", "metrics", "judge_prompts", "models", "runtime", "reports", "scripts", "samples")

setup(packages=[f"cultureval.{name}" for name in find_packages(include=[*ROOMS, *(f"{room}.*" for room in ROOMS)])])
