"""What work is done with: a worker's memory, arrays that go to local disk when they grow, worker
processes.
"""
