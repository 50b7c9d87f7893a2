"""Run by Alembic: migrates over the connection that `engine.store.migrate` hands in."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
