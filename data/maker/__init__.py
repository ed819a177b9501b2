"""What `data/make_samples.py` is made of: records, a client, the topics, and their description."""
