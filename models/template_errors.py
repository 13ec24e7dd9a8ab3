"""What chat templates raise, which are programs of a checkpoint: errors of jinja2, and of what they compute."""

from jinja2 import TemplateError

TEMPLATE_ERRORS = (
    *(TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError, MemoryError),
)
