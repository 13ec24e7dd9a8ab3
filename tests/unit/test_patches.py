"""Every patch of another library has an entry whose canary passes; nothing reaches into a library anywhere else."""

import pytest

from cultureval.runtime.patches import all_patches

PATCHES = {patch.target: patch for patch in all_patches()}


@pytest.mark.parametrize("target", PATCHES)
def test_the_library_is_as_the_patch_needs_it_and_still_needs_it(target):
    patch = PATCHES[target]
    if patch.installed() is None:
        pytest.skip(f"{patch.library} is not installed")
    patch.canary()
