"""How bytes come from an origin, whole and once: slots, retries, workers, and what a killed fetch left behind."""
