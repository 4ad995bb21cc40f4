"""Many replies at once from one model: who runs when, and what runs them."""
