"""The local web application: from two files to a release and its report without typing commands.

Everything that reads private data is a command of its own (`commands`), run as a user would run it; this
process keeps a folder (`project`), shows pages and watches. Of a table it reads the header alone.
So the command line can continue at any step.
"""
