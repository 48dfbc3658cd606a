"""The command line, thin: `app` makes a command of each job (`pairveil.jobs`), `terminal` shows what it says.

Options are read here. Jobs check what they mean, and import what does the work when they run.
"""
