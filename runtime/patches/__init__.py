"""All changes of other libraries and uses of their private parts, a module for each library."""
