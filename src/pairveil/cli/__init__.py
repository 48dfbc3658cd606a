"""The command line, thin: each module has the commands of one subject and registers them with the app.

Options are read, checked and shown here; the work is done by the packages that commands import when they run.
"""
