"""The catalog: one versioned, reviewed list of workspaces, from which everything else is rendered.

`model` is the vocabulary, `load` reads it and reports every mistake at once, `compose` turns a profile and
a user's choices into one concrete workspace, `versions` resolves saved choices, `diff` says what users will
notice.

Pure: no clock, no network; `load` alone reads files.
"""
