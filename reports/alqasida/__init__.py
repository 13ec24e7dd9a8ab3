"""Analysis of AL-QASIDA's runs and of human judgements."""
