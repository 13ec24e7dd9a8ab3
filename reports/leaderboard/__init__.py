"""The leaderboard: a static site and tables for papers from any number of results files."""
