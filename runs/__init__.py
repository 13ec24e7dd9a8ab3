"""What a finished run is: its files, its record, and one frame of item scores."""
