"""What tests and benches of the prepuller share on a real API server."""
