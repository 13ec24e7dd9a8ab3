"""What models, judges and commands share: the data root, the journal, the client of OpenAI-compatible servers."""
