"""The local web application: from two files to a signed report without typing commands."""
