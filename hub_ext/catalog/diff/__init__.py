"""What users will notice when one catalog takes the place of another.

`catalogs.diff` compares, `report.markdown` writes it for a pull request.

Pure: no clock, no network.
"""
