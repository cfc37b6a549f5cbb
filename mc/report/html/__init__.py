"""Reports: what a folder of results holds as one page of HTML with its pictures in it."""
