"""How the sdist is packed, and README as a package index shows it; all else is in pyproject.toml."""

import os
import re
import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist

runpy.run_path("tests/python_needed.py")
import tomllib  # noqa: E402  # which an older Python lacks


class LinkedSdist(sdist):
    """Packs the rooms as the repository has them: folders at the top, links to them in src/cultureval.

    Setuptools alone would pack copies in place of the links, and nothing at the top, where tests and docs look.
    """

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copies each file to where it really lies, then makes the links."""
        super().make_release_tree(base_dir, sorted({os.path.relpath(os.path.realpath(file)) for file in files}))
        for link in Path("src/cultureval").iterdir():
            if link.is_symlink():
                Path(base_dir, link).symlink_to(link.readlink())


def index_page() -> str:
    """README with links that work outside the repository, where relative ones lead nowhere.

    They lead to this version in the repository that [project.urls] names (addresses as GitHub has them); without one,
    the texts of links and pictures are left.
    """
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    home = project.get("urls", {}).get("Repository")

    def linked(found: re.Match[str]) -> str:
        picture, text, place = found.groups()
        way = f"{home}/{'raw' if picture else 'blob'}/v{project['version']}"
        return f"{picture}[{text}]({way}/{place})" if home else text

    return re.sub(r"(!?)\[([^\]]+)\]\((?!https?:)([^)]+)\)", linked, Path("README.md").read_text("utf-8"))


setup(
    cmdclass={"sdist": LinkedSdist},
    long_description=index_page(),
    long_description_content_type="text/markdown",
)
