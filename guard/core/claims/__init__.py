"""Claims of completion: what an agent says of its own work, held against what git and the log say."""
