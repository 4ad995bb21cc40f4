"""What a delta costs, always as a ratio to a floor measured in the same run."""
