"""Jobs: what can be asked for, as dataclasses of options that command line, studio and Python share."""
