"""How private a release is in fact: attacks and empirical lower bounds on epsilon."""
