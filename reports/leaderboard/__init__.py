"""The leaderboard: a static site, and tables for papers, of any number of results files."""
