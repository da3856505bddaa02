"""Rules over relations: evaluation, what is left to do on rows, explanations, the logged trace."""
