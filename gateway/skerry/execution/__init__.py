"""Which rows of a stream are whose, and what each user sees of them."""
