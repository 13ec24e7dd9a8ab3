"""The sandbox of generated code: jail, worker, codec, system-call filter."""
