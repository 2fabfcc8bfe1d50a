"""What bench/run and bench/plot are made of (../README.md)."""
