"""What comes in: people, pairs and their labels, from files, tables and arrays.

Readers (one file a layout) turn what users have into `PairSet`: features stored once, pairs as row numbers,
in one canonical order that depends on ids alone. Nothing here is learned from, and nothing goes out.
"""
