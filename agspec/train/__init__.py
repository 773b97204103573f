"""Teaching a model to write copy programs: records for supervised fine-tuning, and a pilot run of it."""
