"""Analysis of AL-QASIDA's runs and of the human judgements of its texts."""
