"""`cultureval audit`: its sub-commands under one name."""

from cultureval.scripts.audit import check, code, review, run
from cultureval.scripts.suite_options import WithCustomSuites, command_group

audit = command_group("Finds bad items before they mislead. Example: cultureval audit check qimma --data DIR")
audit.command("check", cls=WithCustomSuites)(check.check)
audit.command("run", cls=WithCustomSuites)(run.run)
audit.command("export", cls=WithCustomSuites)(review.export)
audit.command("review", cls=WithCustomSuites)(review.review)
audit.command("import", cls=WithCustomSuites)(review.import_verdicts)
audit.command("report", cls=WithCustomSuites)(run.report)
audit.command("code", cls=WithCustomSuites)(code.code)
