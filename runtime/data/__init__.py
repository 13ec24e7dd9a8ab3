"""Where data come from and where they are kept: roots, row files, the user cache, stores."""
