"""What is evaluated: the catalogue of tasks, and LightEval's TASKS_TABLE built from it on demand."""
