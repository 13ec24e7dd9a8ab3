"""How the sdist is packed; all else is in pyproject.toml."""

import os
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist


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


setup(cmdclass={"sdist": LinkedSdist})
