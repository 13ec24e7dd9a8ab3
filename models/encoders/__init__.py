"""Dual encoders of images and texts, for retrieval."""
