"""The service: models in over HTTP, jobs in a database, results out.

api, routes/       what clients see
jobs, claims       the life of a job, and who may write to it
worker, runner     who does the work, each job in a process of its own
store, database    what outlives every process
"""
