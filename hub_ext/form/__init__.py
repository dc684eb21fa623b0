"""The spawn page: `page` decides what is on it, `facts` words it, `view` is its shape, `render` makes HTML.

Pure but for `render`, which reads its own template.
"""
