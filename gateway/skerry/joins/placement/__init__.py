"""Where pairs of motes are joined: what each way costs by estimate, and which one costs least."""
