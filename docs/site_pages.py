"""Pages of the site from elsewhere in the repository: README, CONTRIBUTING, CHANGELOG and what `make demo` wrote."""

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from record_fields import record_fields  # noqa: E402

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CITATION.cff": "CITATION.cff",
}
DEMO = {
    "demo/leaderboard": (
        ROOT / "results" / "demo-leaderboard",
        "The page, as `cultureval leaderboard` writes it",
    ),
    "demo/answers": (ROOT / "results" / "demo-answers", "Every answer, as `cultureval show --bundle` writes it"),
}
FIELDS = "The site lists the fields here: the docstrings of `runs/record.py` describe them."  # of results.md
EXAMPLES = """# Live examples

They show what `make demo` has written, of a few rows that we made up: SmolLM2-135M-Instruct, a real model, and beside
it a tiny one of random weights answer the text suites, tiny random models the vision suites. No score is comparable
with a paper's. `make docs` makes them and this site.
"""


class Copied(File):
    """A file that is copied as it is, a table in Markdown too, which pages link."""

    def is_documentation_page(self) -> bool:
        """No."""
        return False


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages, and the demo's leaderboard and answers (`make docs` makes them first)."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    examples = EXAMPLES
    for place, (folder, what) in DEMO.items():
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            name = f"{place}/{file.relative_to(folder).as_posix()}"
            files.append(Copied.generated(config, name, abs_src_path=str(file)))
        examples += f"\n- [{what}]({place}/index.html)" if folder.is_dir() else ""
    files.append(File.generated(config, "examples.md", content=examples))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links between the repository's files as links between the site's pages; the record's fields from their types."""
    if FIELDS in markdown:
        markdown = markdown.replace(FIELDS, record_fields())
    for source, target in PAGES.items():
        markdown = re.sub(rf"\]\((\.\./)?{re.escape(source)}", f"]({target}", markdown)
    return re.sub(r"\]\(docs/", "](", markdown) if page.file.src_uri in PAGES.values() else markdown
