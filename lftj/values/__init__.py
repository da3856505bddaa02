"""Values and their codes: domains, dictionaries, schemas, arithmetic, comparisons, spelling, semigroups."""
