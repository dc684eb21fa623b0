"""The GPU doctor: why a workspace does not compute on its GPU, and who can mend it.

It observes devices, driver, libraries, variables and frameworks from inside the workspace; judges from the
ground up, so that the first layer that is broken is the cause and the others are told as its followers; and
changes nothing. It needs nothing but Python's own library: it runs where hardly anything works.
"""
