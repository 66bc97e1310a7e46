"""The controller: observes, plans, applies; level-triggered, and the only one who hands work to the queue."""
