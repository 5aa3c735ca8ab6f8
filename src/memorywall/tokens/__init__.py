"""Numbers of tokens: a calibrated estimate, exact counts with an extra, and models' windows."""
