"""Samples and plots of AL-QASIDA's runs."""
